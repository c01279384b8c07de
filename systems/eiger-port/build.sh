#!/usr/bin/env bash
# Compiles Eiger-PORT and its baseline Eiger and makes the file tree of the image assay/eiger-port.
#
# usage: build.sh [CHECKOUT]     prints the directory of the file tree
#   CHECKOUT  a clone of princeton-sns/Eiger-PORT that has the pinned commit, or a directory with a
#             clone of that name. Without it, the commit is cloned from GitHub.
# Inputs (environment):
#   ASSAY_CACHE  see hack/cluster/lib.sh
# Output: ASSAY_CACHE/eiger-port. Changes nothing else on the machine. It takes some two minutes on
# two quiet processors. A second run builds again only what is not there.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=${1:-}
[[ -z $checkout ]] || checkout=$(cd "$checkout" && pwd)
cache=$ASSAY_CACHE/eiger-port
source=$cache/source
# shellcheck source=versions.env
. "$here/versions.env"

# get puts the files that are compiled, or that the programs read, into the directory source.
get() {
	local from=https://github.com/princeton-sns/Eiger-PORT
	[[ ! -e $source/complete-$EIGER_PORT ]] || return 0
	if [[ -n $checkout && -e $checkout/Eiger-PORT/.git ]]; then
		from=$checkout/Eiger-PORT
	elif [[ -n $checkout ]]; then
		from=$checkout
	fi
	say "cloning princeton-sns/Eiger-PORT at ${EIGER_PORT:0:12} from $from"
	rm -rf "$source"
	git clone -q --no-checkout "$from" "$source" || die "cannot clone $from"
	git -C "$source" checkout -q "$EIGER_PORT" -- {Eiger-PORT,eiger}/{src,lib,build/lib/jars,interface,conf,tools/stress,LICENSE.txt,NOTICE.txt} ||
		die "$from has no commit $EIGER_PORT (systems/eiger-port/versions.env)"
	touch "$source/complete-$EIGER_PORT"
}

# compile DIRECTORY NAME: does by hand what the artifact's build.xml has ant do, whose Maven tasks fetch
# nothing that is not in the clone.
compile() {
	local from=$source/$1 to=$cache/classes/$2 grammar sources
	local javac=(javac -nowarn -source 8 -target 8 -encoding UTF-8 -proc:none)
	[[ ! -e $to/complete-$EIGER_PORT ]] || return 0
	say "compiling $2"
	rm -rf "$to"
	mkdir -p "$to"/{generated,thrift,main,stress}
	sources=$(mktemp)
	for grammar in cli/Cli cql/Cql; do
		# ANTLR 3.2 writes its files and then fails on every Java since 8, which is why the artifact's README says to run ant again.
		java -cp "$from/lib/*" org.antlr.Tool "$from/src/java/org/apache/cassandra/$grammar.g" -fo "$to/generated/org/apache/cassandra/${grammar%/*}" >/dev/null 2>&1 || true
		[[ -s $to/generated/org/apache/cassandra/${grammar}Parser.java ]] || die "ANTLR made no parser of $grammar.g"
	done
	java -cp "$from/lib/*:$from/build/lib/jars/*" org.apache.avro.tool.Main idl "$from/src/avro/internode.genavro" "$to/internode.avpr" >&2
	java -cp "$from/lib/*:$from/build/lib/jars/*" org.apache.avro.tool.Main compile protocol "$to/internode.avpr" "$to/generated" >&2
	find "$from/interface/thrift/gen-java" -name '*.java' >"$sources"
	"${javac[@]}" -cp "$from/lib/*" -d "$to/thrift" @"$sources" >&2
	find "$from/src/java" "$to/generated" -name '*.java' >"$sources"
	"${javac[@]}" -cp "$from/lib/*:$from/build/lib/jars/*:$to/thrift" -d "$to/main" @"$sources" >&2
	cp -r "$from"/src/resources/* "$to/main/"
	find "$from/tools/stress/src" -name '*.java' >"$sources"
	"${javac[@]}" -cp "$from/lib/*:$to/thrift:$to/main" -d "$to/stress" @"$sources" >&2
	rm "$sources"
	touch "$to/complete-$EIGER_PORT"
}

# system DIRECTORY NAME TREE: the classes and libraries of one system, in one directory each.
system() {
	local to=$3/usr/share/$2
	mkdir -p "$to/lib"
	cp -r "$cache/classes/$2"/{main,thrift,stress} "$to/"
	# The client's zipfian workload reads Hadoop's classes, as the artifact's script has it.
	cp "$source/$1"/lib/*.jar "$source/$1"/build/lib/jars/{hadoop-core,commons-logging,commons-math}-*.jar "$to/lib/"
	cp "$source/$1"/{LICENSE,NOTICE}.txt "$to/"
}

# tree DIRECTORY: both systems, a Java, a shell, sleep, and the libraries of all of them.
tree() {
	local library
	mkdir -p "$1"/{bin,usr/share/assay,usr/lib,etc,lib64}
	system Eiger-PORT eiger-port "$1"
	system eiger eiger "$1"
	jlink --strip-debug --no-header-files --no-man-pages --output "$1/usr/lib/java" \
		--add-modules java.base,java.desktop,java.logging,java.management,java.management.rmi,jdk.management,jdk.management.agent,java.naming,jdk.naming.rmi,java.rmi,java.sql,java.xml,jdk.unsupported
	cp /bin/dash "$1/bin/sh"
	cp /bin/sleep "$1/bin/"
	find "$1/usr/lib/java" "$1/bin" -type f \( -perm -u+x -o -name '*.so' \) -exec ldd {} + 2>/dev/null |
		awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\/.*ld-linux/ {print $1}' | grep -v "^$1" | sort -u >"$1/libraries"
	while read -r library; do
		mkdir -p "$1$(dirname "$library")"
		cp -L "$library" "$1$library"
	done <"$1/libraries"
	echo "hosts: files dns" >"$1/etc/nsswitch.conf"
	echo "openjdk-17-jdk-headless=$(dpkg-query -W -f '${Version}' openjdk-17-jdk-headless)" >"$1/usr/share/assay/packages"
	rm "$1/libraries"
	chmod -R u+rwX,go+rX "$1"
}

need_packages "$here/packages.txt"
mkdir -p "$cache"
get
compile Eiger-PORT eiger-port
compile eiger eiger
rm -rf "$cache/new"
tree "$cache/new"
rm -rf "$cache/tree"
mv "$cache/new" "$cache/tree"
echo "$cache/tree"
