#!/usr/bin/env bash
# On the machine: containerd, kubelet and kubeadm, of the right version and running.
#
# Inputs (environment): SOFTWARE (apt or present), KUBERNETES_VERSION (1.36.3), KUBERNETES_REPO, CONTAINERD_REPO, TIME_SYNC.
#   ROOT, a directory in which files are looked for instead: for tests.
# Changes, for apt only: packages and their repositories, containerd's configuration. Before that, for release.sh, it is noted in /var/lib/assay:
#   packages  those that were not there
#   removed   those that were there and that one of ours replaces: systemd-timesyncd by chrony, Debian's containerd by containerd.io
#   files/    copies of the files that are written; PATH.absent for one that was not there
# and after it, in software, for which Kubernetes and which clock all of it was installed.
set -euo pipefail

root=${ROOT:-}
notes=$root/var/lib/assay

refuse() {
	printf 'refused: %s\n' "$*" >&2
	exit 1
}

version() { kubeadm version -o short 2>/dev/null || echo none; }

# quietly COMMAND...: its output only if it fails.
quietly() {
	local out
	out=$("$@" 2>&1) || {
		printf '%s\n' "$out" | tail -n 20 >&2
		return 1
	}
}

# keep FILE: as it was before we wrote it for the first time.
keep() {
	local copy=$notes/files$1
	[[ ! -e $copy && ! -e $copy.absent ]] || return 0
	mkdir -p "${copy%/*}"
	if [[ ! -e $root$1 ]]; then
		: >"$copy.absent"
	else
		cp -p "$root$1" "$copy.part"
		mv "$copy.part" "$copy"
	fi
}

add_repository() { # NAME KEY-URL LINE
	local key=/etc/apt/keyrings/$1.asc list=/etc/apt/sources.list.d/$1.list
	keep "$key"
	keep "$list"
	mkdir -p "$root/etc/apt/keyrings"
	curl -fsSL --retry 3 --max-time 60 "$2" -o "$root$key" || refuse "$2 cannot be had: does this machine reach it? A mirror may be named in preparation"
	printf 'deb [signed-by=%s] %s\n' "$key" "$3" >"$root$list"
}

# apt ARGUMENT...: without questions. A configuration file that is there stays.
apt() { apt-get -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@"; }

# note_packages PACKAGE...: what installing these will add and take away.
note_packages() {
	local p
	mkdir -p "$notes"
	for p in "${@%%=*}"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || echo "$p" >>"$notes/packages"
	done
	# What we have brought ourselves, in an earlier version, is nothing to put back.
	apt -s install -y --no-install-recommends --allow-change-held-packages "$@" 2>/dev/null | awk '$1 == "Remv" { print $2 }' |
		grep -vxFf <(cat "$notes/packages" 2>/dev/null) >>"$notes/removed" || true
}

install_by_apt() {
	local minor=${KUBERNETES_VERSION%.*} id codename config=/etc/containerd/config.toml packages
	# shellcheck source=/dev/null
	id=$(. "$root/etc/os-release" && echo "$ID")
	# shellcheck source=/dev/null
	codename=$(. "$root/etc/os-release" && echo "$VERSION_CODENAME")
	export DEBIAN_FRONTEND=noninteractive
	# What was begun when a machine was switched off; until then apt does nothing else. If another one holds the lock, it is not that.
	dpkg --force-confdef --force-confold --configure -a >/dev/null 2>&1 || true
	quietly apt update || refuse "apt-get update failed"
	quietly apt install -y --no-install-recommends ca-certificates curl gpg || refuse "apt-get install failed"
	add_repository kubernetes "$KUBERNETES_REPO/v$minor/deb/Release.key" "$KUBERNETES_REPO/v$minor/deb/ /"
	add_repository containerd "$CONTAINERD_REPO/$id/gpg" "$CONTAINERD_REPO/$id $codename stable"
	packages=("kubelet=$KUBERNETES_VERSION-*" "kubeadm=$KUBERNETES_VERSION-*" containerd.io kubectl cri-tools iptables conntrack ethtool)
	[[ $TIME_SYNC != chrony ]] || packages+=(chrony)
	quietly apt update || refuse "apt-get update failed"
	note_packages "${packages[@]}"
	keep "$config"
	quietly apt install -y --no-install-recommends --allow-change-held-packages "${packages[@]}" || refuse "apt-get install failed"
	apt-mark hold kubelet kubeadm >/dev/null
	# The packaged configuration switches off the part that the kubelet speaks to.
	if grep -qs '^disabled_plugins.*cri' "$root$config" || [[ ! -s $root$config ]]; then
		mkdir -p "$root${config%/*}"
		# containerd 2.4 asks the shims of all containers once a second what they used. The
		# kubelet reads that itself, and the processors are for what is measured.
		containerd config default | sed -e 's/SystemdCgroup = false/SystemdCgroup = true/' -e "s/stats_collect_period = ''/stats_collect_period = '1m'/" >"$root$config"
		systemctl restart containerd
	fi
	systemctl enable --now --quiet containerd
	echo "$KUBERNETES_VERSION $TIME_SYNC" >"$notes/software"
}

# installed: all of it? That kubeadm is there says nothing of what apt would have unpacked after it.
installed() { [[ $(version) = "v$KUBERNETES_VERSION" && $(cat "$notes/software" 2>/dev/null) = "$KUBERNETES_VERSION $TIME_SYNC" ]]; }

main() {
	local p
	if [[ $SOFTWARE = apt ]] && ! installed; then install_by_apt; fi
	for p in containerd ctr kubelet kubeadm; do
		command -v "$p" >/dev/null || refuse "there is no program $p. Install it, or set preparation.software to apt"
	done
	[[ $(version) = "v$KUBERNETES_VERSION" ]] || refuse "kubeadm is $(version), but kubernetes_version is $KUBERNETES_VERSION. Make them the same"
	[[ $(kubelet --version) = "Kubernetes v$KUBERNETES_VERSION" ]] || refuse "the kubelet is $(kubelet --version), but kubernetes_version is $KUBERNETES_VERSION. Make them the same"
	systemctl enable --now --quiet containerd || refuse "containerd does not start, see journalctl -u containerd"
	timeout 60 bash -c 'until ctr version >/dev/null 2>&1; do sleep 0.5; done' || refuse "containerd does not answer, see journalctl -u containerd"
}

main </dev/null
