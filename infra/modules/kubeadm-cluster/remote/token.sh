#!/usr/bin/env bash
# On the control plane: makes a join token for the machine NODE and prints it, or deletes the one with the id DELETE.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/admin.conf

main() {
	if [[ -n ${DELETE:-} ]]; then
		timeout 30 kubeadm token delete "$DELETE" >/dev/null 2>&1 || true # it may have run out
	else
		timeout 30 kubeadm token create --ttl 10m --description "join of $NODE"
	fi
}

main </dev/null
