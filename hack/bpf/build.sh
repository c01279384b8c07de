#!/usr/bin/env bash
# Compiles the eBPF programs of the repository, byte for byte the same on every
# machine with the compiler of Debian 12:
#
#	apt-get install clang-14 llvm-14 libbpf-dev
#
#	hack/bpf/build.sh           writes the objects and their checksums
#	hack/bpf/build.sh -check    compiles again and compares with what is committed
#
# Machines without that compiler use what is committed. The checksums are of
# sources and objects: a unit test sees from them that an object is out of date.
set -euo pipefail
cd "$(dirname "$0")/../.."

programs=(operator/internal/node/netem/edt/bpf/edt)

for tool in clang-14 llvm-strip-14; do
	command -v "$tool" >/dev/null || { echo "There is no $tool here. On Debian 12: apt-get install clang-14 llvm-14 libbpf-dev" >&2; exit 1; }
done

# compile NAME OUT: the object of NAME.c. It names no directory, and debug
# information but the BTF, which the kernel wants, is left out.
compile() {
	# The kernel's own headers are where the machine's architecture has them; what
	# is used of them is the same for all.
	clang-14 -target bpfel -mcpu=v3 -O2 -g -Wall -Wextra -Werror \
		-fdebug-prefix-map="$PWD=." -fno-ident \
		-idirafter "/usr/include/$(uname -m)-linux-gnu" -c "$1.c" -o "$2"
	llvm-strip-14 -g "$2"
}

sums() { (cd "$(dirname "$1")" && sha256sum "$(basename "$1").c" "$(basename "$1").o"); }

case ${1:-} in
"")
	for name in "${programs[@]}"; do
		compile "$name" "$name.o"
		sums "$name" >"$name.sha256"
	done
	;;
-check)
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	for name in "${programs[@]}"; do
		compile "$name" "$scratch/object.o"
		cmp "$scratch/object.o" "$name.o" || { echo "$name.o is not what $name.c compiles to: run make bpf" >&2; exit 1; }
	done
	;;
*)
	echo "usage: $0 [-check]" >&2
	exit 2
	;;
esac
