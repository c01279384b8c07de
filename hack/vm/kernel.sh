#!/usr/bin/env bash
# Provides qemu, and a stock Debian kernel that is never installed: the package is
# downloaded and unpacked.
#
# usage: kernel.sh
# Output: the directory in ASSAY_CACHE that holds vmlinuz, modules/ (all *.ko,
#   decompressed) and version. It is kept under the hash of this script, so that the
#   kernel stays the same until the cache is removed.
# Status: 3 when this machine cannot have them, since it is none of Debian's or no x86-64; the last line on stderr is why.
# Changes on the machine: package qemu-system-x86.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

meta=linux-image-cloud-amd64

# unavailable says why this machine cannot have them, which is not for want of a network.
unavailable() {
	say "$*"
	exit 3
}

log=$ASSAY_CACHE/apt.log

update() { apt_get -o Acquire::http::Timeout=60 update >"$log" 2>&1 || die "apt-get update failed, see $log"; }

# dependency PACKAGE: the kernel that a package without content stands for.
dependency() { apt-cache depends "$1" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n1 || true; }

download() { # PACKAGE DIRECTORY
	say "downloading $1"
	(cd "$2" && timeout 900 apt-get download "$1") >"$log" 2>&1
}

unpack() { # DIRECTORY
	local package modules scratch=$1.part
	shopt -s nullglob
	[[ -n $(dependency "$meta") ]] || update
	package=$(dependency "$meta")
	[[ -n $package ]] || unavailable "apt knows no package $meta (Debian's kernel)"
	rm -rf "$scratch"
	mkdir -p "$scratch/root"
	if ! download "$package" "$scratch"; then
		update # lists of last week name a package that has been replaced
		package=$(dependency "$meta")
		download "$package" "$scratch" || die "apt-get download $package failed, see $log"
	fi
	dpkg -x "$scratch"/*.deb "$scratch/root"
	mv "$scratch"/root/boot/vmlinuz-* "$scratch/vmlinuz"
	modules=("$scratch"/root/{,usr/}lib/modules/*/kernel) # Debian 12, and later ones
	mv "${modules[@]}" "$scratch/modules"
	if [[ -n $(find "$scratch/modules" -name '*.ko.xz' -print -quit) ]]; then
		packages xz=xz-utils
		find "$scratch/modules" -name '*.ko.xz' -exec xz -d {} +
	fi
	basename "$scratch"/*.deb .deb >"$scratch/version"
	rm -rf "$scratch/root" "$scratch"/*.deb
	mv "$scratch" "$1"
}

[[ $(uname -m) = x86_64 ]] || unavailable "the kernel for tests is one for x86_64"
has apt-get || unavailable "the kernel for tests comes by apt-get"
packages qemu-system-x86_64=qemu-system-x86

mkdir -p "$ASSAY_CACHE/vm"
out=$ASSAY_CACHE/vm/$(sha256sum <"${BASH_SOURCE[0]}" | cut -c1-12)
exec 9>"$ASSAY_CACHE/vm/.lock"
timeout 1200 flock 9 || die "another kernel.sh has kept $ASSAY_CACHE/vm/.lock for 20 minutes"
[[ -e $out/version ]] || unpack "$out"
echo "$out"
