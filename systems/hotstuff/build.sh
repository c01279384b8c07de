#!/usr/bin/env bash
# Builds a program of this module, at most once for the same source: the server and the key generator
# of relab/hotstuff as they are, and the driver of this directory.
#
# usage: build.sh [--path] hotstuffserver | hotstuffkeygen | hotstuff-driver     prints the file
#   --path   say where it is or would be; build nothing
# Inputs: ASSAY_CACHE, GOARCH.
# Output: ASSAY_CACHE/hotstuff. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

build=1
if [[ ${1:-} = --path ]]; then
	build=0
	shift
fi
name=${1:?name of a program}
case $name in
hotstuffserver | hotstuffkeygen) package=github.com/relab/hotstuff/cmd/$name ;;
hotstuff-driver) package=./cmd/$name ;;
*) die "$name is no program of systems/hotstuff: name hotstuffserver, hotstuffkeygen or hotstuff-driver" ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")"
key=$(find . -name '*.go' -o -name 'go.*' | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-12)
dir=$ASSAY_CACHE/hotstuff/$key-$(go env GOARCH)
if [[ $build = 1 && ! -x $dir/$name ]]; then
	say "building $name (two minutes with empty Go caches)"
	mkdir -p "$dir"
	find "$ASSAY_CACHE/hotstuff" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +
	CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -trimpath -ldflags '-s -w' -o "$dir/$name.new" "$package" >&2
	mv "$dir/$name.new" "$dir/$name"
fi
echo "$dir/$name"
