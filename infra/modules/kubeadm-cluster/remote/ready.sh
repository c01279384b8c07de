#!/usr/bin/env bash
# On the control plane: waits until a node is Ready, three minutes at most.
#
# Input (environment): NODE.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/admin.conf

main() {
	timeout 190 kubectl wait "node/$NODE" --for=condition=Ready --timeout=180s >/dev/null 2>&1 || {
		printf 'refused: node %s has joined, but is not Ready: %s\n' "$NODE" \
			"$(kubectl get node "$NODE" -o jsonpath='{.status.conditions[?(@.type=="Ready")].message}' 2>&1)" >&2
		exit 1
	}
}

main </dev/null
