#!/usr/bin/env bash
# Provides the command terraform, of at least 1.9. Where none is installed it builds OpenTofu from Go modules, which
# reads the same files, and links it as .work/bin/terraform.
#
# usage: terraform.sh
# Changes on the machine: .work/bin in the repository, ASSAY_CACHE.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

version=v1.12.6

minor() { terraform version 2>/dev/null | sed -n 's/^.* v1\.\([0-9]*\)\..*/\1/p' | head -n1; }

make_work
mkdir -p "$work/bin"
PATH=${PATH//"$work/bin:"/}
if has terraform; then
	have=$(minor)
	[[ ${have:-0} -ge 9 ]] || die "terraform on PATH is older than 1.9: $(command -v terraform)"
	rm -f "$work/bin/terraform"
	exit
fi
has go || die "neither terraform nor go is installed"
out=$ASSAY_CACHE/opentofu/$version-$(go env GOARCH)
mkdir -p "$out"
exec 9>"$out/.lock"
flock 9
if [[ ! -x $out/tofu ]]; then
	say "building OpenTofu $version (some three minutes with empty Go caches)"
	dir=$(go mod download -json "github.com/opentofu/opentofu@$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
	CGO_ENABLED=0 GOFLAGS=-buildvcs=false nice go -C "$dir" build -trimpath -ldflags '-s -w' -o "$out/tofu.part" ./cmd/tofu >&2
	mv "$out/tofu.part" "$out/tofu"
fi
ln -sfn "$out/tofu" "$work/bin/terraform"
