#!/usr/bin/env bash
# Builds kube-network-policies from its Go module, at most once for the same version, and prints the
# file. It enforces NetworkPolicies on nodes whose own network does not, as those of make cluster.
# On a kernel without CONFIG_NFT_QUEUE it is built with queue.txt.
#
# usage: build.sh
# Inputs: this directory, the Go module proxy; ASSAY_CACHE.
# Output: ASSAY_CACHE/network-policies.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

cd "$hack/without-registry/network-policies"
dir=$ASSAY_CACHE/network-policies/$(LC_ALL=C sha256sum go.mod go.sum queue.txt build.sh | sha256sum | cut -c1-12)-$(go env GOARCH)
if [[ ! -e $dir/kube-network-policies ]]; then
	mkdir -p "$dir"
	say "building kube-network-policies (two minutes with empty Go caches)"
	# The compiler takes no other file for one of a module, but another folder for a module.
	nftables=$(go mod download -json github.com/google/nftables | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	rm -rf "$dir/nftables"
	cp -r "$nftables" "$dir/nftables"
	chmod -R u+w "$dir/nftables"
	cp queue.txt "$dir/nftables/expr/queue.go"
	cp go.mod "$dir/build.mod"
	cp go.sum "$dir/build.sum"
	go mod edit -replace "github.com/google/nftables=$dir/nftables" "$dir/build.mod"
	CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -modfile "$dir/build.mod" -trimpath -ldflags '-s -w' -o "$dir/new" sigs.k8s.io/kube-network-policies/cmd >&2
	rm -rf "$dir/nftables" "$dir"/build.*
	mv "$dir/new" "$dir/kube-network-policies"
fi
echo "$dir/kube-network-policies"
