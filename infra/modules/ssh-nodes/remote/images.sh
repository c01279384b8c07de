#!/usr/bin/env bash
# On the machine, where it stays: imports an archive of images, and keeps account of them, so that it is done once and can be undone.
#
# usage: images.sh import SUM <ARCHIVE     SUM is the archive's SHA-256
#        images.sh have SUM...             prints those SUMs whose images are all there
# Changes: containerd's images; /var/lib/assay/images/SUM lists those that the archive has brought.
set -euo pipefail

dir=/var/lib/assay/images

# What the CRI plugin adds by itself, names that are digests, is none of ours.
list() { ctr -n k8s.io images ls -q 2>/dev/null | grep -v '^sha256:' | sort || true; }

# An import that was cut short is begun again: what it had brought by then must not count as having been there before.
import() {
	[[ -e $dir/.before ]] || list >"$dir/.before"
	ctr -n k8s.io images import --all-platforms --label io.cri-containerd.pinned=pinned -
	list | comm -13 "$dir/.before" - >"$dir/$1"
	rm "$dir/.before"
}

have() {
	local sum
	for sum; do
		if [[ -e $dir/$sum && -z $(comm -23 "$dir/$sum" <(list)) ]]; then printf '%s ' "$sum"; fi
	done
}

mkdir -p "$dir"
"$@"
