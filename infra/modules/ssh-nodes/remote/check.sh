#!/usr/bin/env bash
# On the machine: refuses what cannot be made a node, and what is one already. Changes nothing.
#
# Input (environment): SUPPORTED_OS, a list of ID:VERSION_ID as in /etc/os-release.
set -euo pipefail

refuse() {
	printf 'refused: %s\n' "$*" >&2
	exit 1
}

main() {
	local os name server arch
	os=$(. /etc/os-release && echo "${ID:-}:${VERSION_ID:-}")
	name=$(. /etc/os-release && echo "${PRETTY_NAME:-$os}")
	[[ " $SUPPORTED_OS " = *" $os "* ]] ||
		refuse "the operating system is $name ($os), and this module knows $SUPPORTED_OS. Install one of them, or, if you know that yours will do, add it to preparation.supported_os"
	arch=$(uname -m)
	[[ $arch = x86_64 || $arch = aarch64 ]] || refuse "the processor is $arch; x86_64 or aarch64 is needed"
	[[ -d /run/systemd/system ]] || refuse "systemd does not run"

	# Ours are taken in only once: what is here belongs to somebody else, or to an apply whose state was lost.
	if [[ -e /etc/kubernetes/kubelet.conf || -e /etc/kubernetes/admin.conf ]]; then
		server=$(sed -n 's/^ *server: *//p' /etc/kubernetes/kubelet.conf /etc/kubernetes/admin.conf 2>/dev/null | head -n 1 || true)
		refuse "this machine is in another cluster already (API server ${server:-unknown}). To take it, remove it there (kubectl drain, kubectl delete node) and run kubeadm reset on it"
	fi
	if [[ -n $(find /etc/kubernetes/manifests /etc/kubernetes/pki -type f 2>/dev/null || true) || -e /etc/kubernetes/bootstrap-kubelet.conf ]]; then
		refuse "this machine has half joined another cluster (files in /etc/kubernetes). To take it, run kubeadm reset on it"
	fi
	if command -v k3s >/dev/null || [[ -d /var/lib/rancher || -d /var/snap/microk8s ]]; then
		refuse "another Kubernetes is installed here (k3s, RKE or MicroK8s). Uninstall it, or take another machine"
	fi
}

main </dev/null
