#!/usr/bin/env bash
# On the control plane: makes a node's labels and its pool's taint what they should be. Labels that an earlier run has set and that are not wanted
# any more go; others' labels stay.
#
# Inputs (environment): NODE; LABELS and TAINTS, one on a line; NOT_SET, what preparation could not do, or empty.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/admin.conf
keys_of_ours=infra.assay.dev/labels # annotation: the keys that we set
complaints=machine.assay.dev/not-set

kube() { timeout 30 kubectl "$@" >/dev/null; }

main() {
	local wanted tainted keys old k
	mapfile -t wanted < <(grep . <<<"$LABELS" || true)
	mapfile -t tainted < <(grep . <<<"$TAINTS" || true) # none is no failure to report
	keys=" ${wanted[*]%%=*} "
	old=$(timeout 30 kubectl get node "$NODE" -o "jsonpath={.metadata.annotations.infra\.assay\.dev/labels}")
	for k in $old; do
		[[ $keys = *" $k "* ]] || wanted+=("$k-")
	done
	kube label node "$NODE" --overwrite "${wanted[@]}"
	if [[ ${#tainted[@]} -gt 0 ]]; then
		kube taint node "$NODE" --overwrite "${tainted[@]}"
	elif timeout 30 kubectl get node "$NODE" -o 'jsonpath={.spec.taints[*].key}' | grep -qwF assay.dev/pool; then
		kube taint node "$NODE" assay.dev/pool-
	fi
	kube annotate node "$NODE" --overwrite "$keys_of_ours=${keys:1:-1}" "$complaints=$NOT_SET"
}

main </dev/null
