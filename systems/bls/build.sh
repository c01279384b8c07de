#!/usr/bin/env bash
# Builds the program of the image assay/bls, at most once for the same source.
#
# usage: build.sh [--path] bls-driver     prints the file
#   --path   say where it is or would be; build nothing
# Inputs: ASSAY_CACHE, GOARCH.
# Output: ASSAY_CACHE/bls. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

build=1
if [[ ${1:-} = --path ]]; then
	build=0
	shift
fi
name=${1:?name of a program}
case $name in
bls-driver) module_program bls "$name" "./cmd/$name" "$build" ;;
*) die "$name is no program of systems/bls: its only one is bls-driver" ;;
esac
