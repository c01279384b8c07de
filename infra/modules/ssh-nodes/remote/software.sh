#!/usr/bin/env bash
# On the machine: containerd, kubelet and kubeadm, of the right version and running.
#
# Inputs (environment): SOFTWARE (apt or present), KUBERNETES_VERSION (1.36.3), KUBERNETES_REPO, CONTAINERD_REPO, TIME_SYNC.
# Changes, for apt only: packages and their repositories, containerd's configuration. /var/lib/assay/packages says what was not there before.
set -euo pipefail

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

add_repository() { # NAME KEY-URL LINE
	mkdir -p /etc/apt/keyrings
	curl -fsSL --retry 3 --max-time 60 "$2" -o "/etc/apt/keyrings/$1.asc" || refuse "$2 cannot be had: does this machine reach it? A mirror may be named in preparation"
	printf 'deb [signed-by=/etc/apt/keyrings/%s.asc] %s\n' "$1" "$3" >"/etc/apt/sources.list.d/$1.list"
}

install_by_apt() {
	local minor=${KUBERNETES_VERSION%.*} id codename p new=() packages
	id=$(. /etc/os-release && echo "$ID")
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	export DEBIAN_FRONTEND=noninteractive
	quietly apt-get -o DPkg::Lock::Timeout=120 update || refuse "apt-get update failed"
	quietly apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends ca-certificates curl gpg || refuse "apt-get install failed"
	add_repository kubernetes "$KUBERNETES_REPO/v$minor/deb/Release.key" "$KUBERNETES_REPO/v$minor/deb/ /"
	add_repository containerd "$CONTAINERD_REPO/$id/gpg" "$CONTAINERD_REPO/$id $codename stable"
	packages=(containerd.io kubectl cri-tools iptables conntrack ethtool)
	[[ $TIME_SYNC != chrony ]] || packages+=(chrony)
	for p in kubelet kubeadm "${packages[@]}"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || new+=("$p")
	done
	mkdir -p /var/lib/assay
	[[ ${#new[@]} = 0 ]] || printf '%s\n' "${new[@]}" >>/var/lib/assay/packages
	quietly apt-get -o DPkg::Lock::Timeout=120 update || refuse "apt-get update failed"
	quietly apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends --allow-change-held-packages \
		"kubelet=$KUBERNETES_VERSION-*" "kubeadm=$KUBERNETES_VERSION-*" "${packages[@]}" || refuse "apt-get install failed"
	apt-mark hold kubelet kubeadm >/dev/null
	# The packaged configuration switches off the part that the kubelet speaks to.
	if grep -qs '^disabled_plugins.*cri' /etc/containerd/config.toml || [[ ! -s /etc/containerd/config.toml ]]; then
		containerd config default | sed 's/SystemdCgroup = false/SystemdCgroup = true/' >/etc/containerd/config.toml
		systemctl restart containerd
	fi
	systemctl enable --now --quiet containerd
}

main() {
	local p
	if [[ $SOFTWARE = apt && $(version) != "v$KUBERNETES_VERSION" ]]; then install_by_apt; fi
	for p in containerd ctr kubelet kubeadm; do
		command -v "$p" >/dev/null || refuse "there is no program $p. Install it, or set preparation.software to apt"
	done
	[[ $(version) = "v$KUBERNETES_VERSION" ]] || refuse "kubeadm is $(version), but kubernetes_version is $KUBERNETES_VERSION. Make them the same"
	[[ $(kubelet --version) = "Kubernetes v$KUBERNETES_VERSION" ]] || refuse "the kubelet is $(kubelet --version), but kubernetes_version is $KUBERNETES_VERSION. Make them the same"
	systemctl enable --now --quiet containerd || refuse "containerd does not start, see journalctl -u containerd"
	timeout 60 bash -c 'until ctr version >/dev/null 2>&1; do sleep 0.5; done' || refuse "containerd does not answer, see journalctl -u containerd"
}

main </dev/null
