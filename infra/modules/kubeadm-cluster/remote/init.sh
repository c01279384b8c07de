#!/usr/bin/env bash
# On the control plane: kubeadm init. Its log stays in /var/log/assay-kubeadm.log.
#
# Inputs (environment): CONFIGURATION (kubeadm's YAML, but for this node), VERSION, NAME, INTERNAL (address, or empty), POD_CIDR, PREFLIGHT.
# Changes: /etc/kubernetes, the kubelet, etcd; /var/lib/assay/cluster, which is what makes reset.sh undo it.
set -euo pipefail

patches=/etc/assay/kubeadm-patches
log=/var/log/assay-kubeadm.log
export KUBECONFIG=/etc/kubernetes/admin.conf

refuse() {
	printf 'refused: %s\n' "$*" >&2
	exit 1
}

# The kubelet refuses cgroup v1 unless told otherwise, and that is this machine's affair, not the cluster's.
write_patches() {
	mkdir -p "$patches"
	if [[ $(stat -fc %T /sys/fs/cgroup) != cgroup2fs ]]; then
		echo 'failCgroupV1: false' >"$patches/kubeletconfiguration+merge.yaml"
	fi
}

node_configuration() {
	cat <<-YAML
		apiVersion: kubeadm.k8s.io/v1beta4
		kind: InitConfiguration
		nodeRegistration:
		  name: "$NAME"
		  criSocket: unix:///run/containerd/containerd.sock
		  ignorePreflightErrors: [$PREFLIGHT]
		$([[ -z $INTERNAL ]] || printf '  kubeletExtraArgs: [{name: node-ip, value: "%s"}]\nlocalAPIEndpoint: {advertiseAddress: "%s"}' "$INTERNAL" "$INTERNAL")
		patches: {directory: $patches}
		---
	YAML
}

main() {
	# Nobody else needs it, so that it is not among what preparation looks for.
	command -v kubectl >/dev/null || refuse "there is no program kubectl. Install it, or set preparation.software to apt"
	umask 077
	mkdir -p /run/assay /var/lib/assay
	ls -A /etc/cni/net.d >/var/lib/assay/cni-before 2>/dev/null || true
	printf 'pods %s\n' "$POD_CIDR" >/var/lib/assay/cluster
	(umask 022 && write_patches)
	{ node_configuration && printf '%s' "$CONFIGURATION"; } >/run/assay/init.yaml
	# It would print a command with a token in it: not here.
	if ! timeout 500 kubeadm init --config /run/assay/init.yaml --skip-token-print >"$log" 2>&1; then
		grep -E 'error|ERROR|failed' "$log" | tail -n 15 >&2
		refuse "kubeadm init failed; its log is $log on this machine, the kubelet's is in journalctl -u kubelet"
	fi
	rm -f /run/assay/init.yaml
	# The token that init makes lives for a day. Nobody needs it: each join gets its own.
	kubeadm token list 2>/dev/null | awk 'NR > 1 { print $1 }' | while read -r token; do kubeadm token delete "${token%%.*}" >/dev/null; done
	timeout 120 bash -c 'until kubectl get --raw /readyz >/dev/null 2>&1; do sleep 1; done' || refuse "the API server does not become ready"
	echo ended >>/var/lib/assay/cluster
}

main </dev/null
