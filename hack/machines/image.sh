#!/usr/bin/env bash
# Makes the image of a machine that answers SSH: a Debian with packages, what an install script does
# there, and the artifact's folder in the home of its user. Set-up runs once for each content of its
# recipe: the suite, the packages, the script and the files beside it. Later calls take its root file
# system from the cache, and so does each trial, by the image.
#
# usage: image.sh NAME FOLDER
#   NAME     of the image, without a tag, such as lab/exp1; its tag is dev
#   FOLDER   the artifact, which goes to ~/artifact of AUTHOR
# Inputs (environment):
#   PACKAGES  of Debian, besides those that every script over SSH needs   (none)
#   INSTALL   script in FOLDER that runs as root in the image, with the network, in
#             ~/artifact of AUTHOR                                        (none)
#   AUTHOR    user of the machines, whose home the folder goes to         (author)
#   DIR       where the folder goes, below that home                      (artifact)
#   FRESH     1: set up anew, also where that was made before             ()
#   SUITE     of Debian                                                   (bookworm)
#   MIRROR    of Debian                            (http://deb.debian.org/debian)
# Changes: ASSAY_CACHE/machines, .work/own, .work/images; images in the nodes' containerd, if a
# cluster runs; Debian's package debootstrap, where it is missing. It needs root.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

(($# == 2)) || die "usage: image.sh NAME FOLDER (make machine-image NAME=lab/exp1 FOLDER=artifact PACKAGES='python3-minimal')"
name=$1 folder=$(cd "$2" && pwd) || die "FOLDER \"$2\" does not exist"
install=${INSTALL:-} dir=${DIR:-artifact} suite=${SUITE:-bookworm} mirror=${MIRROR:-http://deb.debian.org/debian}
[[ $(id -u) = 0 ]] || die "the root of a Debian is made by debootstrap, as root"
[[ -z $install || -f $folder/$install ]] || die "INSTALL \"$install\" is no file in $folder"
author=${AUTHOR:-author}
[[ $author =~ ^[a-z_][-a-z0-9_]*$ ]] || die "AUTHOR is \"$author\"; it must be the name of a user, as in the System's machines"
home=/home/$author
if [[ $author = root ]]; then home=/root; fi
[[ $dir != *..* && $dir != /* ]] || die "DIR is \"$dir\"; it must be a path below $home"
packages=$(tr -s ' ,\n' '\n' <<<"bash openssh-client procps ${PACKAGES:-}" | LC_ALL=C sort -u | paste -sd,)

# With an install script, all files may be part of what it does. Without one they are copied last.
recipe=$({
	echo "$suite $mirror $packages $install"
	if [[ $home != /home/author && -n $install ]]; then echo "$home"; fi
	if [[ -n $install ]]; then (cd "$folder" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum); fi
} | sha256sum | cut -c1-12)
kept=$ASSAY_CACHE/machines/$recipe

# in_root COMMAND...: runs a command as root in the new root, with /proc and the network.
in_root() {
	unshare --mount --pid --fork --mount-proc="$new/root/proc" chroot "$new/root" /usr/bin/env -i \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}

if [[ -e $kept/setup.json && -z ${FRESH:-} ]]; then
	say "set-up $recipe was made before: $(cat "$kept/setup.json")"
else
	packages debootstrap=debootstrap
	new=$kept.new.$$
	trap 'rm -rf "$new"' EXIT
	mkdir -p "$new"
	say "set-up $recipe: Debian $suite with $packages${install:+, then $install}"
	began=$EPOCHREALTIME
	debootstrap --variant=minbase --include="$packages" "$suite" "$new/root" "$mirror" >"$kept.log" 2>&1 || die "debootstrap failed, see $kept.log"
	if [[ -n $install ]]; then
		mkdir -p "$new/root$home/$dir"
		cp -a "$folder/." "$new/root$home/$dir/"
		cp /etc/resolv.conf "$new/root/etc/resolv.conf"
		in_root bash -c "cd $home/$dir && exec bash ./$install" >>"$kept.log" 2>&1 || die "$install failed in the image, see $kept.log"
	fi
	rm -rf "$new/root"/var/cache/apt/archives/*.deb "$new/root"/var/lib/apt/lists/*
	rm -f "$new/root/etc/resolv.conf" # it names resolvers of this machine
	took=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}')
	mkdir -p "$new/root/usr/share/assay"
	printf '{"recipe": "%s", "seconds": %s, "mebibytes": %s, "packages": "%s", "install": "%s"}\n' \
		"$recipe" "$took" "$(du -sm "$new/root" | cut -f1)" "$packages" "$install" | tee "$new/root/usr/share/assay/setup.json" >"$new/setup.json"
	rm -rf "$kept"
	mv "$new" "$kept"
	say "set-up took $took s"
fi

# The image is made anew when the set-up or the artifact has changed.
content=$(cd "$folder" && { echo "$recipe $home/$dir"; find . -type f -printf '%m %p\n' | LC_ALL=C sort; find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; } | sha256sum | cut -c1-12)
archive=$work/images/${name//\//-}.tar
if [[ -z ${FRESH:-} && -e $archive && $(cat "$work/own/$name/content" 2>/dev/null) = "$content" ]]; then
	say "image: $name:dev is as it was"
	# A cluster may have come since.
	[[ -z $(docker ps -q --filter "label=io.x-k8s.kind.cluster=$CLUSTER" 2>/dev/null) ]] || "$hack/images/load.sh" cluster "$work/own/$name"
	exit 0
fi
make_work
top=$work/own/$name/files
rm -rf "$top"
mkdir -p "$top$home/$dir"
cp -a "$folder/." "$top$home/$dir/"
"$hack/images/own.sh" "$name" "$kept/root" "$top"
rm -rf "$top"
echo "$content" >"$work/own/$name/content"
