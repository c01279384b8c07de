#!/usr/bin/env bash
# Builds the programs of the image assay/capnp-rpc, at most once for the same source.
#
# usage: build.sh [--path] capnp-server | capnp-driver     prints the file
#   --path   say where it is or would be; build nothing
# Inputs: ASSAY_CACHE, GOARCH.
# Output: ASSAY_CACHE/capnp-rpc. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

build=1
if [[ ${1:-} = --path ]]; then
	build=0
	shift
fi
name=${1:?name of a program}
case $name in
capnp-server | capnp-driver) module_program capnp-rpc "$name" "./cmd/$name" "$build" ;;
*) die "$name is no program of systems/capnp-rpc: name capnp-server or capnp-driver" ;;
esac
