#!/usr/bin/env bash
# Builds what the image assay/postgres consists of, at most once for the same source: the programs of
# this module, and a file tree of Debian's PostgreSQL with the libraries and the shell that it needs.
#
# usage: build.sh [--path] postgres-node | postgres-driver | rootfs     prints the file or directory
#   --path   say where it is or would be; build nothing
# Inputs: ASSAY_CACHE, GOARCH; for rootfs packages.txt and the Debian that this runs on.
# Output: ASSAY_CACHE/postgres. Changes nothing else on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

build=1
if [[ ${1:-} = --path ]]; then
	build=0
	shift
fi
name=${1:?name of a program, or rootfs}
cd "$(dirname "${BASH_SOURCE[0]}")"

# packages prints NAME=VERSION of every package, as this Debian would install it.
packages() {
	has apt-cache || die "no Debian: there is no apt-cache"
	grep -v '^#' packages.txt | xargs apt-cache policy | awk '/^[^ ]/ {name = $1} $1 == "Candidate:" {print substr(name, 1, length(name) - 1) "=" $2}'
}

rootfs() {
	local list dir
	list=$(packages)
	[[ $(wc -l <<<"$list") = $(grep -vc '^#' packages.txt) && $list != *"(none)"* ]] ||
		die "apt does not know all packages of systems/postgres/packages.txt; run apt-get update"
	dir=$ASSAY_CACHE/postgres/rootfs-$(sha256sum <<<"$list" | cut -c1-12)
	if [[ $build = 1 && ! -d $dir ]]; then
		say "fetching PostgreSQL from Debian"
		mkdir -p "$ASSAY_CACHE/postgres"
		prune_builds postgres
		new=$(mktemp -d "$ASSAY_CACHE/postgres/new.XXXXXX")
		trap 'rm -rf "$new"' EXIT
		mkdir "$new/deb" "$new/tree"
		# shellcheck disable=SC2086 # a list of words
		(cd "$new/deb" && apt-get download -q -o APT::Sandbox::User=root $list) >&2
		for deb in "$new"/deb/*.deb; do dpkg-deb --extract "$deb" "$new/tree"; done
		# Documents, translations, and the compiler of queries, which needs another 100 MB of LLVM.
		rm -rf "$new"/tree/usr/share/{doc,man,locale,lintian,bug} "$new"/tree/usr/lib/postgresql/*/lib/{bitcode,llvmjit*}
		mkdir -p "$new/tree/usr/share/assay"
		echo "$list" >"$new/tree/usr/share/assay/packages"
		chmod -R u+rwX,go+rX "$new/tree"
		mv "$new/tree" "$dir"
	fi
	echo "$dir"
}

case $name in
rootfs) rootfs ;;
postgres-node | postgres-driver) module_program postgres "$name" "./cmd/$name" "$build" ;;
*) die "$name is nothing of systems/postgres: name postgres-node, postgres-driver or rootfs" ;;
esac
