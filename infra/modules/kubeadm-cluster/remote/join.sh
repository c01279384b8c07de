#!/usr/bin/env bash
# On a machine: kubeadm join.
#
# Inputs (environment): TOKEN, CA (hash), ENDPOINT (host:port), VERSION, NAME, INTERNAL (address, or empty), TAINTS (JSON), POD_CIDR, PREFLIGHT.
# Changes: the kubelet and /etc/kubernetes; /var/lib/assay/cluster, which is what makes reset.sh undo it.
set -euo pipefail

patches=/etc/assay/kubeadm-patches
log=/var/log/assay-kubeadm.log

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

configuration() {
	cat <<-YAML
		apiVersion: kubeadm.k8s.io/v1beta4
		kind: JoinConfiguration
		discovery:
		  bootstrapToken:
		    apiServerEndpoint: "$ENDPOINT"
		    token: "$TOKEN"
		    caCertHashes: ["sha256:$CA"]
		nodeRegistration:
		  name: "$NAME"
		  criSocket: unix:///run/containerd/containerd.sock
		  ignorePreflightErrors: [$PREFLIGHT]
		  taints: $TAINTS
		$([[ -z $INTERNAL ]] || printf '  kubeletExtraArgs: [{name: node-ip, value: "%s"}]' "$INTERNAL")
		patches: {directory: $patches}
	YAML
}

main() {
	umask 077
	mkdir -p /run/assay /var/lib/assay
	if ! timeout 20 bash -c "until : </dev/tcp/${ENDPOINT%:*}/${ENDPOINT##*:}; do sleep 1; done" 2>/dev/null; then
		refuse "the API server at $ENDPOINT cannot be reached from this machine. Check internal_address of the control plane, routes and firewalls (TCP 6443)"
	fi
	ls -A /etc/cni/net.d >/var/lib/assay/cni-before 2>/dev/null || true
	printf 'pods %s\nca %s\n' "$POD_CIDR" "$CA" >/var/lib/assay/cluster
	(umask 022 && write_patches)
	configuration >/run/assay/join.yaml # in memory
	trap 'rm -f /run/assay/join.yaml' EXIT
	if ! timeout 250 kubeadm join --config /run/assay/join.yaml >"$log" 2>&1; then
		grep -E 'error|ERROR|failed' "$log" | tail -n 15 >&2
		refuse "kubeadm join failed; its log is $log on this machine, the kubelet's is in journalctl -u kubelet"
	fi
	echo ended >>/var/lib/assay/cluster
}

main </dev/null
