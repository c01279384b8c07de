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
module_program hotstuff "$name" "$package" "$build"
