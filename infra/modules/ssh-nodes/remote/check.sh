#!/usr/bin/env bash
# On the machine: refuses what cannot be made a node, what is one already, and what another host of the list is.
#
# Inputs (environment): HOST, its name; SUPPORTED_OS, a list of ID:VERSION_ID as in /etc/os-release; ROOT, a directory in which all files are looked
#   for instead: for tests.
# Changes: /var/lib/assay/host, the name, once nothing is against it.
set -euo pipefail

root=${ROOT:-}
note=$root/var/lib/assay/host

refuse() {
	printf 'refused: %s\n' "$*" >&2
	exit 1
}

# mine: is this machine not another host's? A machine that is listed by its name and by its address would be two hosts to Terraform.
mine() {
	local other
	other=$(cat "$note" 2>/dev/null || echo "$HOST")
	[[ $other = "$HOST" ]] ||
		refuse "this machine is the host $other already: it answers at the addresses of both. Take one of them out of hosts. If there is no $other any more (the state of an earlier apply was lost), remove ${note#"$root"} on this machine"
}

# claim: both may be looked at in the same moment. A link, unlike a file that is written, is there at once and only for one.
claim() {
	mkdir -p "${note%/*}"
	printf '%s\n' "$HOST" >"$note.$$"
	ln "$note.$$" "$note" 2>/dev/null || true
	rm "$note.$$"
	mine
}

main() {
	local os name server arch
	# shellcheck source=/dev/null
	os=$(. "$root/etc/os-release" && echo "${ID:-}:${VERSION_ID:-}")
	# shellcheck source=/dev/null
	name=$(. "$root/etc/os-release" && echo "${PRETTY_NAME:-$os}")
	[[ " $SUPPORTED_OS " = *" $os "* ]] ||
		refuse "the operating system is $name ($os), and this module knows $SUPPORTED_OS. Install one of them, or, if you know that yours will do, add it to preparation.supported_os"
	arch=$(uname -m)
	[[ $arch = x86_64 || $arch = aarch64 ]] || refuse "the processor is $arch; x86_64 or aarch64 is needed"
	[[ -d $root/run/systemd/system ]] || refuse "systemd does not run"

	mine
	# Ours are taken in only once: what is here belongs to somebody else, or to an apply whose state was lost.
	if [[ -e $root/etc/kubernetes/kubelet.conf || -e $root/etc/kubernetes/admin.conf ]]; then
		server=$(sed -n 's/^ *server: *//p' "$root"/etc/kubernetes/{kubelet,admin}.conf 2>/dev/null | head -n 1 || true)
		refuse "this machine is in another cluster already (API server ${server:-unknown}). To take it, remove it there (kubectl drain, kubectl delete node) and run kubeadm reset on it"
	fi
	if [[ -n $(find "$root"/etc/kubernetes/{manifests,pki} -type f 2>/dev/null || true) || -e $root/etc/kubernetes/bootstrap-kubelet.conf ]]; then
		refuse "this machine has half joined another cluster (files in /etc/kubernetes). To take it, run kubeadm reset on it"
	fi
	if command -v k3s >/dev/null || [[ -d $root/var/lib/rancher || -d $root/var/snap/microk8s ]]; then
		refuse "another Kubernetes is installed here (k3s, RKE or MicroK8s). Uninstall it, or take another machine"
	fi
	claim
}

main </dev/null
