#!/usr/bin/env bash
# Removes from the kind cluster what tests put beside Assay: Chaos Mesh, Prometheus, and the namespaces of single tests. A run that was cut off leaves them.
#
# usage: clear.sh
# Inputs:  CLUSTER, ASSAY_CACHE; a cluster with Assay on it, whose managers end what runs in these namespaces.
# Changes: that cluster.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

eval "$("$hack/cluster/tools.sh" kubectl)"
KUBECONFIG=$(kubeconfig)
export KUBECONFIG

left=$(kubectl get namespaces -o name | grep -E '^namespace/(e2e|install)-' || true)
for namespace in $left; do
	kubectl delete experiments.assay.dev -n "${namespace#namespace/}" --all --timeout=2m >&2
done
[[ -z $left ]] || xargs kubectl delete --timeout=5m <<<"$left" >&2
"$hack/without-registry/chaos-mesh/install.sh" down
"$hack/without-registry/prometheus/install.sh" down
