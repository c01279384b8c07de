#!/usr/bin/env bash
# Gives one node of a kind cluster its labels and taints, and takes away those of a pool that it is no longer in.
#
# Inputs (environment): KUBECONFIG, NODE; LABELS and TAINTS, one on a line, as kubectl label and kubectl taint take them.
# Changes: that node's labels, its taint assay.dev/pool, and its annotation infra.assay.dev/labels: the keys that we have set, as kubeadm-cluster's.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
eval "$("$root/hack/cluster/tools.sh" kubectl)"
mapfile -t labels < <(printf '%s' "${LABELS:+$LABELS$'\n'}")
mapfile -t taints < <(printf '%s' "${TAINTS:+$TAINTS$'\n'}")

keys_of_ours=infra.assay.dev/labels

kube() { kubectl --request-timeout=30s "$@"; }

keys=" ${labels[*]%%=*} "
old=$(kube get node "$NODE" -o 'jsonpath={.metadata.annotations.infra\.assay\.dev/labels}')
for key in $old; do
	[[ $keys = *" $key "* ]] || labels+=("$key-")
done

if kube get node "$NODE" -o jsonpath='{.spec.taints[*].key}' | grep -qwF assay.dev/pool; then
	kube taint node "$NODE" assay.dev/pool-
fi
kube label node "$NODE" --overwrite "${labels[@]}"
if [[ ${#taints[@]} -gt 0 ]]; then kube taint node "$NODE" --overwrite "${taints[@]}"; fi
kube annotate node "$NODE" --overwrite "$keys_of_ours=${keys:1:-1}"
