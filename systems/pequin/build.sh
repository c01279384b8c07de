#!/usr/bin/env bash
# Builds the programs of the Pequin artifact and, from them, the file tree of the image assay/pequin.
#
# usage: build.sh [CHECKOUT]     prints the directory of the file tree
#   CHECKOUT  a clone of fsuri/Pequin-Artifact that has the pinned commit; or a directory of clones,
#             named as their repositories are (Pequin-Artifact, ed25519-donna, BLAKE3, taopq,
#             libcount, peloton). What is not there is cloned from GitHub.
# Inputs (environment):
#   ASSAY_CACHE  see hack/cluster/lib.sh
#   JOBS         compilers at once                                         (2)
#   PESTO        1 builds Pesto and its SQL engine, too: some 250 files more; never finished yet  (0)
# Output: ASSAY_CACHE/pequin. Changes nothing else on the machine. Basil and Tapir take some ten
# minutes on two quiet processors. A second run continues where the first one ended.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=${1:-}
[[ -z $checkout ]] || checkout=$(cd "$checkout" && pwd)
JOBS=${JOBS:-2}
PESTO=${PESTO:-0}
deps=$ASSAY_CACHE/pequin/dependencies
source=$ASSAY_CACHE/pequin/source
# shellcheck source=versions.env
. "$here/versions.env"

# clone REPOSITORY COMMIT DIRECTORY: puts the commit there, from the user's clone or from GitHub.
clone() {
	local name=${1#*/} from=https://github.com/$1
	[[ ! -d $3/.git || $(git -C "$3" rev-parse HEAD) != "$2" ]] || return 0
	if [[ -n $checkout && -e $checkout/$name ]]; then
		from=$checkout/$name
	elif [[ -n $checkout && $name = Pequin-Artifact ]]; then
		from=$checkout
	fi
	say "cloning $1 at ${2:0:12} from $from"
	rm -rf "$3"
	git clone -q --no-checkout "$from" "$3" || die "cannot clone $from"
	git -C "$3" checkout -q "$2" || die "$from has no commit $2 (systems/pequin/versions.env)"
}

# archive NAME: whether the static library still has to be built.
archive() { [[ ! -e $deps/lib/lib$1.a ]]; }

# Libraries that Debian does not have, built as the artifact's Installation.md does, but static.
crypto() {
	clone floodyberry/ed25519-donna "$ED25519_DONNA" "$deps/src/ed25519-donna"
	if archive ed25519_donna; then
		gcc -w -fPIC -O3 -m64 -c -o "$deps/src/ed25519.o" "$deps/src/ed25519-donna/ed25519.c"
		ar rcs "$deps/lib/libed25519_donna.a" "$deps/src/ed25519.o"
	fi
	clone BLAKE3-team/BLAKE3 "$BLAKE3" "$deps/src/BLAKE3"
	if archive blake3; then
		(cd "$deps/src/BLAKE3/c" && gcc -fPIC -O3 -c blake3.c blake3_dispatch.c blake3_portable.c blake3_*_x86-64_unix.S &&
			ar rcs "$deps/lib/libblake3.a" ./*.o)
	fi
}

# The server's results of queries are defined in taopq's headers, so all protocols need it.
taopq() {
	clone taocpp/taopq "$TAOPQ" "$deps/src/taopq"
	cp -r "$deps/src/taopq/include/tao" "$deps/include/"
	archive taopq || return 0
	(cd "$deps/src/taopq/src/lib/pq" && find . -name '*.cpp' -print0 |
		xargs -0 -P "$JOBS" -I{} g++ -std=c++17 -O2 -I../../../include -I/usr/include/postgresql -c {} -o {}.o &&
		find . -name '*.o' -exec ar rcs "$deps/lib/libtaopq.a" {} +)
}

# Pesto's SQL engine is Peloton's, with libraries that Peloton brings along.
peloton() {
	local dir third=$deps/src/peloton/third_party
	clone dialtr/libcount "$LIBCOUNT" "$deps/src/libcount"
	if archive count; then
		(cd "$deps/src/libcount" && for file in count/*.cc; do
			[[ $file = *_test.cc ]] || g++ -O2 -I. -c "$file" -o "$file.o"
		done && ar rcs "$deps/lib/libcount.a" count/*.o && cp -r include/count "$deps/include/")
	fi
	clone cmu-db/peloton "$PELOTON" "$deps/src/peloton"
	if archive pg_query; then
		make -C "$third/libpg_query" -j "$JOBS" CFLAGS="-I. -I./src/postgres/include -w -fno-strict-aliasing -fwrapv -fPIC -O2" libpg_query.a >&2
		cp "$third/libpg_query/libpg_query.a" "$deps/lib/"
	fi
	for dir in libpg_query libcuckoo date adaptive_radix_tree; do
		mkdir -p "$deps/include/$dir"
		cp -r "$third/$dir"/. "$deps/include/$dir/"
	done
}

# trim writes the two main programs without what is not built, and only if that changes them.
trim() {
	local file new
	local headers='store/(weakstore|pbftstore|hotstuffstore|pg_SMRstore|pelotonstore|augustusstore|bftsmartstore[a-z_]*|cockroachdb|postgresstore)/.*'
	local cases='PROTO_(WEAK|STRONG|PBFT|HOTSTUFF|PG_SMR|PELOTON_SMR|AUGUSTUS|BFTSMART|AUGUSTUS_SMART|PG|CRDB|POSTGRES)'
	headers+='|store/benchmark/async/(retwis|tpcc/a?sync|sql/[a-z]*|smallbank)/[a-z]*_client.h'
	cases+='|BENCH_(RETWIS|TPCC|TPCC_SYNC|TPCC_SQL|SMALLBANK_SYNC|SEATS_SQL|AUCTIONMARK_SQL|TPCCH_SQL)'
	if [[ $PESTO = 0 ]]; then
		headers+='|store/pequinstore/.*'
		cases+='|PROTO_PEQUIN'
	fi
	for file in store/server.cc store/benchmark/async/benchmark.cc; do
		new=$(mktemp)
		git show "HEAD:src/$file" | awk -v includes="$headers" -v cases="$cases" -f "$here/trim.awk" >"$new"
		cmp -s "$new" "$file" || cp "$new" "$file"
		rm "$new"
	done
}

compile() {
	local empty libraries
	# What belongs to the protocols and benchmarks that are not built is linked from nothing. They brought along what other stores
	# need, too: LIB-store-backend.
	empty=$(printf '%s= ' LIB-{strong,pbft,hotstuff,hotstuff-pg,augustus,bftsmart,bftsmart-augustus,bftsmart-stable,postgres,peloton,cockroachdb}-store \
		LIB-postgres-client OBJS-{strong,weak}-client LIB-{retwis,tpcc,sync-tpcc,async-tpcc,sql-tpcc,smallbank,sql-seats,sql-tpcch,auctionmark})
	libraries="-levent_pthreads -levent -lprotobuf -lgflags -lfmt -l:libcryptopp.a -lsodium -lblake3 -lsecp256k1 -led25519_donna -lssl -lcrypto"
	libraries+=" -ltbb -ltaopq -lpq -lboost_thread -lboost_filesystem -lboost_serialization -latomic"
	if [[ $PESTO = 0 ]]; then
		empty+="LIB-pequin-store= LIB-pequin-client="
	else
		libraries+=" -l:libpg_query.a -lcount"
	fi
	# The artifact's flags, without -g. Its rules preprocess each file once more for the list of its
	# headers; a build of one commit needs no such list.
	# shellcheck disable=SC2086,SC2016 # a list of words, and a variable of make
	make -j "$JOBS" $empty 'LIB-weak-store=$(LIB-store-backend)' DEPFLAGS=--version \
		CFLAGS="-no-pie -pthread -iquote.obj/gen -O2 -w -I$deps/include -I/usr/include/postgresql" CXXFLAGS="-no-pie -std=c++17" \
		LDFLAGS="-no-pie -pthread -L$deps/lib $libraries" \
		store/server store/benchmark/async/benchmark create_keys/create_key >&2
}

# tree DIRECTORY: the programs, a shell that makes the keys, sleep, and the libraries of all of them.
tree() {
	local file library
	mkdir -p "$1"/{bin,usr/bin,usr/lib/pequin,usr/share/assay,etc}
	cp store/server store/benchmark/async/benchmark create_keys/create_key "$1/usr/bin/"
	strip "$1"/usr/bin/*
	cp /bin/dash "$1/bin/sh"
	cp /bin/sleep "$1/bin/"
	gcc -shared -fPIC -O2 -o "$1/usr/lib/pequin/processors.so" "$here/processors.c"
	cp -L /usr/lib/x86_64-linux-gnu/libjemalloc.so.2 "$1/usr/lib/pequin/"
	for file in "$1"/usr/bin/* "$1"/bin/* "$1"/usr/lib/pequin/*; do ldd "$file"; done |
		awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\/.*ld-linux/ {print $1}' | sort -u >"$1/libraries"
	while read -r library; do
		mkdir -p "$1$(dirname "$library")"
		cp -L "$library" "$1$library"
	done <"$1/libraries"
	# shellcheck disable=SC2016 # dpkg-query's own ${...}
	{ xargs readlink -f <"$1/libraries"; echo /bin/dash; echo /bin/sleep; } | while read -r file; do
		dpkg-query -S "$file" "${file#/usr}" 2>/dev/null || true
	done | cut -d: -f1 | sort -u | xargs dpkg-query -W -f '${Package}=${Version}\n' >"$1/usr/share/assay/packages"
	echo "hosts: files dns" >"$1/etc/nsswitch.conf"
	rm "$1/libraries"
	chmod -R u+rwX,go+rX "$1"
}

need_packages "$here/packages.txt"
mkdir -p "$deps"/{lib,include,src}
crypto
taopq
[[ $PESTO = 0 ]] || peloton
clone fsuri/Pequin-Artifact "$PEQUIN_ARTIFACT" "$source"
cd "$source/src"
trim
compile
rm -rf "$ASSAY_CACHE/pequin/new"
tree "$ASSAY_CACHE/pequin/new"
rm -rf "$ASSAY_CACHE/pequin/tree"
mv "$ASSAY_CACHE/pequin/new" "$ASSAY_CACHE/pequin/tree"
echo "$ASSAY_CACHE/pequin/tree"
