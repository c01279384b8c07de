#!/usr/bin/env bash
# Gets the programs of Debian that Chaos Mesh's daemon calls (tc, iptables, ipset, stress-ng, ...), with all that these packages depend
# on, as a layer of an image; at most once for the same list.
#
# usage: tools.sh [--path]     prints the tar file
#   --path   say where it is or would be; fetch nothing
# Inputs: a Debian archive, as root (debootstrap); DEBIAN_SUITE of hack/without-registry/node-image/versions.env; ASSAY_CACHE.
# Output: ASSAY_CACHE/chaos-mesh/tools-KEY-GOARCH.tar, some 100 MB. Nothing is installed but debootstrap, where it is missing.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

include=ebtables,iproute2,ipset,iptables,stress-ng,util-linux

key=$({ echo "$DEBIAN_SUITE" && cat "${BASH_SOURCE[0]}"; } | sha256sum | cut -c1-12)
out=$ASSAY_CACHE/chaos-mesh/tools-$key-$(go env GOARCH).tar

# The packages are unpacked, not configured: none of the programs needs it.
fetch() {
	local root=$tmp/root deb
	debootstrap --variant=minbase --include="$include" --download-only "$DEBIAN_SUITE" "$tmp/debs"
	mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
	ln -s usr/bin usr/sbin usr/lib usr/lib64 "$root/"
	for deb in "$tmp"/debs/var/cache/apt/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink --exclude='./usr/share/*' --exclude='./var/*' --exclude='./usr/lib/*/gconv'
	done
	# What Debian's alternatives would do. The daemon compares what the legacy variants print.
	ln -sf xtables-legacy-multi "$root/usr/sbin/iptables"
	ln -sf ebtables-legacy "$root/usr/sbin/ebtables"
	tar -C "$root" --sort=name --numeric-owner --mtime=@0 -cf "$tmp/tools.tar" .
}

if [[ ${1:-} != --path && ! -e $out ]]; then
	packages debootstrap=debootstrap
	mkdir -p "$ASSAY_CACHE/chaos-mesh"
	find "$ASSAY_CACHE/chaos-mesh" -mindepth 1 -maxdepth 1 -name 'tools-*.tar' -mtime +14 -delete
	tmp=$(mktemp -d "$ASSAY_CACHE/chaos-mesh/tools.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	log=$ASSAY_CACHE/chaos-mesh/tools.log
	say "fetching Debian's packages for Chaos Mesh's daemon, log in $log"
	# In the background, because bash ignores "set -e" inside a condition.
	(fetch) >"$log" 2>&1 &
	wait $! || die "Debian's packages cannot be had: $(tail -n 5 "$log")"
	mv "$tmp/tools.tar" "$out"
fi
echo "$out"
