#!/usr/bin/env bash
# Provides a program that a Go module of its own builds, for an image of ours or a test. It is the one
# that the cluster and envtest use, built at most once for the same source.
#
# usage: program.sh [--path] FOLDER:PROGRAM     prints the file, or the directory of a tree of files
#   FOLDER   hack/without-registry/node-image, or a folder with a build.sh that takes PROGRAM, or a Go module below
#            systems whose main package cmd/PROGRAM it is
#   --path   say where it is or would be; build nothing
# Inputs: ASSAY_CACHE, GOARCH.
# Output: ASSAY_CACHE. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

build=1 path=()
if [[ ${1:-} = --path ]]; then
	build=0 path=(--path)
	shift
fi
folder=${1%%:*} name=${1#*:}
[[ $1 = *?:?* ]] || die "\"$1\" names no program; write FOLDER:PROGRAM, such as hack/without-registry/node-image:etcd"
if [[ $folder = hack/without-registry/node-image ]]; then
	file=$(recipe_out)/bin/$name
	if [[ $build = 1 && ! -x $file ]]; then
		say "building $name (a minute with empty Go caches)"
		recipe_build "$name"
	fi
	echo "$file"
elif [[ -x $repo/$folder/build.sh ]]; then
	exec "$repo/$folder/build.sh" ${path[@]+"${path[@]}"} "$name"
elif [[ $folder = systems/* && -d $repo/$folder/cmd/$name ]]; then
	module_program "${folder#systems/}" "$name" "./cmd/$name" "$build"
else
	die "$folder has neither a build.sh nor a package cmd/$name: nothing builds $name"
fi
