#!/usr/bin/env bash
# Has the cluster of `make cluster` enforce NetworkPolicies, or no longer. Its own network does not.
# It is for tests and for trying the chart's networkPolicy; other clusters have a network that does.
#
# usage: install.sh up | down
# Inputs:  this directory, CLUSTER, ASSAY_CACHE.
# Changes: .work/own/lab/network-policies, an image in the nodes' containerd, that cluster. Down
#          removes the DaemonSet and the rules that it made.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

eval "$("$hack/cluster/tools.sh" kubectl)"
KUBECONFIG=$(kubeconfig)
export KUBECONFIG
[[ -e $KUBECONFIG ]] || die "cluster $CLUSTER does not run: make cluster"
here=$hack/without-registry/network-policies

case ${1:-} in
up)
	"$hack/images/own.sh" lab/network-policies "$("$here/build.sh")" >&2
	kubectl apply -f "$here/daemonset.yaml" >&2
	kubectl rollout status -n kube-system daemonset/kube-network-policies --timeout=3m >&2
	;;
down)
	# It removes its rules when it is told to end.
	kubectl delete --ignore-not-found --timeout=3m -f "$here/daemonset.yaml" >&2
	;;
*) die "usage: install.sh up|down" ;;
esac
