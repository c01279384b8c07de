#!/usr/bin/env bash
# On the machine: undoes prepare.sh. Packages that it installed are removed, those that these replaced are installed again, and files that it wrote over
# are put back.
#
# Input (environment): ROOT, a directory in which files are looked for instead: for tests.
set -euo pipefail

root=${ROOT:-}
notes=$root/var/lib/assay
export DEBIAN_FRONTEND=noninteractive

say() { printf '%s\n' "$*" >&2; }

# apt ARGUMENT...: without questions, and without waiting long for a mirror that does not answer.
apt() {
	apt-get -o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10 -o Acquire::Retries=0 -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@"
}

# Under all their names, also the one that the CRI plugin gives them, which is a digest.
remove_images() {
	local list digest name f
	list=$(ctr -n k8s.io images ls 2>/dev/null)
	for f in "$notes"/images/*; do
		[[ -e $f ]] || continue
		while read -r name; do
			digest=$(awk -v n="$name" '$1 == n { print $3 }' <<<"$list")
			[[ -z $digest ]] || awk -v d="$digest" '$3 == d { print $1 }' <<<"$list" | xargs -r ctr -n k8s.io images rm >/dev/null 2>&1
		done <"$f"
	done
}

# restore_packages: see software.sh for the notes.
restore_packages() {
	local packages=() removed=() p
	if [[ -e $notes/packages ]]; then
		mapfile -t packages < <(sort -u "$notes/packages")
		apt-mark unhold kubelet kubeadm >/dev/null || true
		apt purge -y "${packages[@]}" >/dev/null
	fi
	rm -f "$root"/etc/apt/sources.list.d/{kubernetes,containerd}.list "$root"/etc/apt/keyrings/{kubernetes,containerd}.asc
	restore_files # of repositories, from which the others may have come, and of packages that stay
	[[ ! -s $notes/removed ]] || mapfile -t removed < <(sort -u "$notes/removed")
	[[ ${#removed[@]} = 0 ]] || apt update >/dev/null 2>&1 || true
	for p in "${removed[@]}"; do
		apt install -y --no-install-recommends "$p" >/dev/null 2>&1 ||
			say "warning: $p was here before and cannot be installed again. Do so when its repository can be reached: apt-get install $p"
	done
	restore_files # over what came with packages
}

restore_files() {
	local copy file
	[[ -d $notes/files ]] || return 0
	while IFS= read -r -d '' copy; do
		file=$root${copy#"$notes/files"}
		case $file in
		*.part) ;; # it was not written over
		*.absent) rm -f "${file%.absent}" ;;
		*)
			mkdir -p "${file%/*}"
			cp -p "$copy" "$file"
			;;
		esac
	done < <(find "$notes/files" -type f -print0)
}

main() {
	local limit=$root/etc/systemd/system/containerd.service.d/90-assay.conf restart=
	if [[ -d $notes/images ]]; then remove_images; fi
	if [[ -x $root/usr/local/lib/assay/machine.sh ]]; then "$root/usr/local/lib/assay/machine.sh" restore; fi
	systemctl disable --now --quiet assay-machine.service 2>/dev/null || true
	rm -f "$root/etc/systemd/system/assay-machine.service" "$root/etc/chrony/sources.d/assay.sources"
	if [[ -e $limit ]]; then
		restart=yes
		rm -f "$limit"
		rmdir --ignore-fail-on-non-empty "${limit%/*}"
	fi
	if [[ -e $notes/packages || -d $notes/files ]]; then
		restart=yes
		restore_packages
	fi
	systemctl daemon-reload
	if [[ -n $restart ]] && systemctl cat containerd.service >/dev/null 2>&1; then
		systemctl try-restart containerd || say "warning: containerd does not start as it was configured before, see journalctl -u containerd"
	fi
	rm -rf "$root/usr/local/lib/assay" "$root/etc/assay" "$notes" "$root/var/log/assay-kubeadm.log"
}

main </dev/null
