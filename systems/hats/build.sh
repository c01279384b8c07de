#!/usr/bin/env bash
# Compiles HATS, its baselines and its client, and makes the file tree of the image assay/hats.
#
# usage: build.sh [CHECKOUT]     prints the directory of the file tree
#   CHECKOUT  a clone of adslabcuhk/hats that has the pinned commit, or a directory with a clone of
#             the name hats. Without it, the commit is cloned from GitHub.
# Inputs (environment):
#   SCHEMES      the servers that are built       (hats mlsm c3 depart-5.0)
#   ASSAY_CACHE  see hack/cluster/lib.sh
# Output: ASSAY_CACHE/hats, and Maven's own cache. Changes nothing else on the machine. Each server
# takes one and a half minutes of a processor. A second run builds again only what is not there.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=${1:-}
[[ -z $checkout ]] || checkout=$(cd "$checkout" && pwd)
read -ra schemes <<<"${SCHEMES:-hats mlsm c3 depart-5.0}"
cache=$ASSAY_CACHE/hats
source=$cache/source
# Of Java's compilers and collectors those that cost little: a compilation is over soon.
javac=(javac -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -J-Xmx2g -nowarn -proc:none)
# shellcheck source=versions.env
. "$here/versions.env"

# get puts the files that are compiled, or that the programs read, into the directory source.
get() {
	local from=https://github.com/adslabcuhk/hats
	[[ ! -e $source/complete-$HATS ]] || return 0
	if [[ -n $checkout && -e $checkout/hats/.git ]]; then
		from=$checkout/hats
	elif [[ -n $checkout ]]; then
		from=$checkout
	fi
	say "cloning adslabcuhk/hats at ${HATS:0:12} from $from"
	rm -rf "$source"
	git clone -q --no-checkout "$from" "$source" || die "cannot clone $from"
	git -C "$source" checkout -q "$HATS" -- LICENSE LICENSE.txt client scripts/conf servers/{hats,mlsm,c3,depart-5.0}/{src,.build,conf,build.xml,LICENSE.txt,NOTICE.txt} ||
		die "$from has no commit $HATS (systems/hats/versions.env)"
	touch "$source/complete-$HATS"
}

# jars POM SCOPE DIRECTORY: the libraries that a Maven file names.
jars() {
	[[ ! -e $3/complete-$HATS ]] || return 0
	say "fetching libraries: $(basename "$3")"
	rm -rf "$3"
	mkdir -p "$3"
	mvn -B -q -f "$1" dependency:copy-dependencies -DincludeScope="$2" -DoutputDirectory="$3" >&2
	# Native parts for other machines.
	rm -f "$3"/*-{osx,windows,linux-aarch}*.jar
	touch "$3/complete-$HATS"
}

# poms SCHEME: fills in the artifact's templates, as its build.xml does. Prints the file to resolve.
poms() {
	local from=$source/servers/$1 to=$cache/poms/$1 name fill=(-e 's/@version@/1/' -e 's/@final.name@-parent.pom/parent.xml/')
	mkdir -p "$to"
	for name in asm jamm allocation-instrumenter ecj jacoco jflex; do
		fill+=(-e "s/@$name.version@/$(sed -n "s/.*<property name=\"$name.version\" value=\"\([^\"]*\)\".*/\1/p" "$from/build.xml" | head -n 1)/")
	done
	sed "${fill[@]}" "$from/.build/parent-pom-template.xml" >"$to/parent.xml"
	sed "${fill[@]}" "$from/.build/cassandra-deps-template.xml" >"$to/pom.xml"
	echo "$to/pom.xml"
}

# server SCHEME: does by hand what the artifact's build.xml has ant do: a parser, a scanner, javac.
server() {
	local from=$source/servers/$1 to=$cache/classes/$1 sources
	jars "$(poms "$1")" compile "$cache/lib/$1"
	[[ ! -e $to/complete-$HATS ]] || return 0
	say "compiling $1"
	rm -rf "$to"
	mkdir -p "$to"/{generated/org/apache/cassandra/cql3,main}
	(cd "$from" && java -cp "$cache/lib/$1/*" org.antlr.Tool -Xconversiontimeout 10000 src/antlr/Cql.g \
		-fo "$to/generated/org/apache/cassandra/cql3/" -Xmaxinlinedfastates 10 >&2)
	java -cp "$cache/lib/generators/*" jflex.Main -q -d "$to/generated" "$from/src/java/org/apache/cassandra/index/sasi/analyzer/StandardTokenizerImpl.jflex" >&2
	sources=$(mktemp)
	find "$from/src/java" "$to/generated" -name '*.java' >"$sources"
	"${javac[@]}" -g -encoding utf-8 -source 17 -target 17 -XDignore.symbol.file \
		--add-exports java.rmi/sun.rmi.registry=ALL-UNNAMED --add-exports java.rmi/sun.rmi.transport.tcp=ALL-UNNAMED \
		--add-exports java.base/jdk.internal.ref=ALL-UNNAMED --add-exports java.base/sun.nio.ch=ALL-UNNAMED \
		-cp "$cache/lib/$1/*" -d "$to/main" @"$sources" >&2
	cp -r "$from"/src/resources/* "$to/main/"
	mkdir -p "$to/main/org/apache/cassandra/config"
	printf 'CassandraVersion=%s\nGitSHA=%s\n' "$(sed -n 's/.*<property name="base.version" value="\([^"]*\)".*/\1/p' "$from/build.xml")" "$HATS" \
		>"$to/main/org/apache/cassandra/config/version.properties"
	rm -r "$sources" "$to/generated"
	touch "$to/complete-$HATS"
}

# client: YCSB with the changed driver, and our Cql.
client() {
	local to=$cache/classes/client sources
	jars "$source/client/core/pom.xml" runtime "$cache/lib/client"
	if [[ ! -e $to/complete-$HATS ]]; then
		say "compiling the client"
		rm -rf "$to"
		mkdir -p "$to"
		sources=$(mktemp)
		find "$source"/client/{core,cassandra}/src/main/java -name '*.java' >"$sources"
		"${javac[@]}" -g -encoding utf-8 -source 8 -target 8 -cp "$cache/lib/client/*" -d "$to" @"$sources" >&2
		# Maven fills in the version, which YCSB prints.
		(cd "$source/client/core/src/main/resources" && find . -type f | while read -r file; do
			mkdir -p "$to/$(dirname "$file")"
			sed "s/\${project.version}/0.17.0/" "$file" >"$to/$file"
		done)
		rm "$sources"
		touch "$to/complete-$HATS"
	fi
	mkdir -p "$cache/classes/cql"
	"${javac[@]}" -cp "$to:$cache/lib/client/*" -d "$cache/classes/cql" "$here/Cql.java" >&2
}

# settings SCHEME: the artifact's cassandra.yaml without what its scripts, or Assay, write for each node.
settings() {
	awk '
		/^[^ #]/ {skip = $1 ~ /^(cluster_name|seed_provider|listen_address|rpc_address|storage_port|native_transport_port|all_hosts|initial_token|token_ranges|raft_port|scheduling_initial_delay|scheduling_interval|state_update_interval|enable_hats|enable_fine_schedule|enable_background_schedule|replication_factor):$/}
		!skip && !/^ *(#|$)/
	' "$source/scripts/conf/$1/cassandra.yaml"
}

# tree DIRECTORY: servers, client, a Java, a shell, cat, sleep, and the libraries of all of them.
tree() {
	local to=$1/usr/share/hats scheme jar library
	mkdir -p "$1"/{bin,tmp,usr/share/assay,usr/lib,etc,lib64} "$to"/{lib,client/lib}
	for scheme in "${schemes[@]}"; do
		mkdir -p "$to/$scheme/conf"
		cp -r "$cache/classes/$scheme/main" "$to/$scheme/classes"
		# Most libraries are the same for all schemes. Each has the list of its own, as options of Java.
		cp -u "$cache/lib/$scheme"/*.jar "$to/lib/"
		{
			printf -- '-cp\n/usr/share/hats/%s/conf:/usr/share/hats/%s/classes' "$scheme" "$scheme"
			for jar in "$cache/lib/$scheme"/*.jar; do printf ':/usr/share/hats/lib/%s' "$(basename "$jar")"; done
			echo
		} >"$to/$scheme/conf/classpath.options"
		cat "$source/servers/$scheme"/conf/jvm{,17}-server.options >"$to/$scheme/conf/server.options"
		cat "$source/servers/$scheme"/conf/jvm{,17}-clients.options >"$to/$scheme/conf/nodetool.options"
		cp "$source/servers/$scheme"/conf/logback{,-tools}.xml "$to/$scheme/conf/"
		settings "$scheme" >"$to/$scheme/conf/cassandra.yaml"
		cp "$source/servers/$scheme"/{LICENSE,NOTICE}.txt "$to/$scheme/"
	done
	cp -r "$cache/classes/client" "$to/client/classes"
	cp -r "$cache"/classes/cql/* "$to/client/classes/"
	cp "$cache/lib/client"/*.jar "$to/client/lib/"
	cp -r "$source/client/workloads" "$to/client/"
	cp -r "$here/bin" "$to/"
	cp "$source"/client/{LICENSE,NOTICE}.txt "$to/client/"
	cp "$source/LICENSE" "$to/"
	jlink --strip-debug --no-header-files --no-man-pages --output "$1/usr/lib/java" \
		--add-modules java.se,jdk.attach,jdk.crypto.ec,jdk.management,jdk.management.agent,jdk.naming.dns,jdk.naming.rmi,jdk.net,jdk.nio.mapmode,jdk.unsupported,jdk.zipfs
	cp /bin/dash "$1/bin/sh"
	cp /bin/{cat,sleep,mkdir} "$1/bin/"
	find "$1/usr/lib/java" "$1/bin" -type f \( -perm -u+x -o -name '*.so' \) -exec ldd {} + 2>/dev/null |
		awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\/.*ld-linux/ {print $1}' | grep -v "^$1" | sort -u >"$1/libraries"
	# Libraries in jars, such as RocksDB's for the log of Raft, are linked with these.
	ldconfig -p | awk '$1 ~ /^lib(stdc\+\+|gcc_s|dl|m|pthread|rt)\.so\.[0-9]+$/ && /x86-64/ {print $NF}' >>"$1/libraries"
	while read -r library; do
		mkdir -p "$1$(dirname "$library")"
		cp -L "$library" "$1$library"
	done <"$1/libraries"
	echo "hosts: files dns" >"$1/etc/nsswitch.conf"
	echo "openjdk-17-jdk-headless=$(dpkg-query -W -f '${Version}' openjdk-17-jdk-headless)" >"$1/usr/share/assay/packages"
	rm "$1/libraries"
	chmod -R u+rwX,go+rX "$1"
	chmod 1777 "$1/tmp"
}

need_packages "$here/packages.txt"
mkdir -p "$cache"
get
jars "$here/libraries.xml" runtime "$cache/lib/generators"
for scheme in "${schemes[@]}"; do server "$scheme"; done
client
rm -rf "$cache/new"
tree "$cache/new"
rm -rf "$cache/tree"
mv "$cache/new" "$cache/tree"
echo "$cache/tree"
