#!/usr/bin/env bash
# Builds a program of this module, at most once for the same source: CometBFT as it is, and the two
# programs of this directory.
#
# usage: build.sh [--path] cometbft | cometbft-home | cometbft-driver     prints the file
#   --path   say where it is or would be; build nothing
# Inputs: ASSAY_CACHE, GOARCH.
# Output: ASSAY_CACHE/cometbft. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

build=1
if [[ ${1:-} = --path ]]; then
	build=0
	shift
fi
name=${1:?name of a program}
case $name in
cometbft) package=github.com/cometbft/cometbft/cmd/cometbft ;;
cometbft-home | cometbft-driver) package=./cmd/$name ;;
*) die "$name is no program of systems/cometbft: name cometbft, cometbft-home or cometbft-driver" ;;
esac
module_program cometbft "$name" "$package" "$build"
