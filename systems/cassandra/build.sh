#!/usr/bin/env bash
# Builds what the image assay/cassandra consists of, at most once for the same source: the driver,
# and a file tree of Cassandra's jars from Maven Central with Debian's Java runtime.
#
# usage: build.sh [--path] cassandra-driver | cassandra-rootfs     prints the file or directory
#   --path   say where it is or would be; build nothing
# Inputs: ASSAY_CACHE, GOARCH; for the tree packages.txt, pom.xml, conf, and the Debian that this
#   runs on, with maven.
# Output: ASSAY_CACHE/cassandra. Changes nothing else on the machine but Maven's own cache.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

build=1
if [[ ${1:-} = --path ]]; then
	build=0
	shift
fi
name=${1:?cassandra-driver or cassandra-rootfs}
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
		die "apt does not know all packages of systems/cassandra/packages.txt; run apt-get update"
	dir=$ASSAY_CACHE/cassandra/rootfs-$( (echo "$list" && cat pom.xml build.sh conf/*) | sha256sum | cut -c1-12)
	if [[ $build = 1 && ! -d $dir ]]; then
		has mvn || die "no mvn: install Debian's maven"
		say "fetching Cassandra from Maven Central and Java from Debian"
		mkdir -p "$ASSAY_CACHE/cassandra"
		prune_builds cassandra
		new=$(mktemp -d "$ASSAY_CACHE/cassandra/new.XXXXXX")
		trap 'rm -rf "$new"' EXIT
		mkdir -p "$new/deb" "$new/tree/cassandra/conf"
		mvn -B -q dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$new/tree/cassandra/lib" >&2
		# Native parts for other systems than Linux.
		rm -f "$new"/tree/cassandra/lib/*-{osx,windows}-*.jar
		cp conf/* "$new/tree/cassandra/conf/"
		# shellcheck disable=SC2086 # a list of words
		(cd "$new/deb" && apt-get download -q -o APT::Sandbox::User=root $list) >&2
		for deb in "$new"/deb/*.deb; do dpkg-deb --extract "$deb" "$new/tree"; done
		rm -rf "$new"/tree/usr/share/{doc,man,locale,lintian,bug}
		ln -s "$(cd "$new/tree" && echo usr/lib/jvm/java-17-openjdk-*)" "$new/tree/java"
		mkdir -p "$new/tree/usr/share/assay"
		echo "$list" >"$new/tree/usr/share/assay/packages"
		chmod -R u+rwX,go+rX "$new/tree"
		mv "$new/tree" "$dir"
	fi
	echo "$dir"
}

case $name in
cassandra-rootfs) rootfs ;;
cassandra-driver) module_program cassandra "$name" "./cmd/$name" "$build" ;;
*) die "$name is nothing of systems/cassandra: name cassandra-driver or cassandra-rootfs" ;;
esac
