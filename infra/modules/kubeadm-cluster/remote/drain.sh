#!/usr/bin/env bash
# On the control plane: drains a node, for DRAIN seconds at most (empty: not at all), and removes it.
#
# Inputs (environment): NODE, DRAIN.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/admin.conf

main() {
	if ! timeout 30 kubectl get --raw /readyz >/dev/null 2>&1; then
		echo "warning: the API server does not answer: $NODE is not drained" >&2
		return
	fi
	[[ -n $(kubectl get node "$NODE" --ignore-not-found -o name) ]] || return 0
	if [[ -n $DRAIN ]]; then
		timeout $((DRAIN + 20)) kubectl drain "$NODE" --ignore-daemonsets --delete-emptydir-data --force --timeout="${DRAIN}s" >/dev/null 2>&1 ||
			echo "warning: not all pods have left $NODE within $DRAIN s: they are ended" >&2
	fi
	timeout 60 kubectl delete node "$NODE" --ignore-not-found >/dev/null
}

main </dev/null
