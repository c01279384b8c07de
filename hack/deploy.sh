#!/usr/bin/env bash
# Installs Assay on the cluster of `make cluster`, or removes it.
#
# usage: deploy.sh install | remove
#   install  the chart with the image tags of `make images`. A tag names the
#            content of an image, so pods are replaced exactly when their image
#            changed. Managers run on the control plane, as those of an owner do
#            who lets workers be reset.
#   remove   experiments first, so that their finalizers find a manager.
# HELM_FLAGS adds flags, for instance --set=replicas=1.
. "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"

namespace=assay-system
eval "$("$hack/cluster/tools.sh" kubectl helm)"
KUBECONFIG=$(kubeconfig)
export KUBECONFIG
cd "$repo"

# image_tag NAME: fields of index.tsv are name, tag, digest, archive.
image_tag() {
	awk -F '\t' -v name="assay/$1" '{ sub(/^docker\.io\//, "", $1) } $1 == name { print $2; found = 1 } END { exit !found }' \
		.work/images/index.tsv || die "make images has not built assay/$1"
}

# nodes_grant_bpf: a docker before 23 does not know the capability BPF (number
# 39), so that its containers, which are kind's nodes, cannot pass it on.
nodes_grant_bpf() {
	local node bounding
	node=$(kubectl get nodes -o jsonpath='{.items[0].metadata.name}')
	bounding=$(docker exec "$node" awk '/^CapBnd:/ {print $2}' /proc/1/status 2>/dev/null) || return 0
	((16#$bounding >> 39 & 1))
}

# adopt gives what was made without the chart to the release, which upgrades it
# from then on.
adopt() {
	local object
	for object in $(kubectl get crd -o name | grep '\.assay\.dev$' || true) lease/manager.assay.dev; do
		[[ $(kubectl get -n "$namespace" "$object" --ignore-not-found -o jsonpath='{.metadata.name} {.metadata.annotations.meta\.helm\.sh/release-name}') = ?*' ' ]] || continue
		kubectl label -n "$namespace" --overwrite "$object" app.kubernetes.io/managed-by=Helm >&2
		kubectl annotate -n "$namespace" --overwrite "$object" meta.helm.sh/release-name=assay meta.helm.sh/release-namespace="$namespace" >&2
	done
}

# force: Helm 4 applies on the server, and must be told that the chart is right
# where somebody has set the same field; Helm 3 does not ask.
force() {
	if [[ $(helm version --short) = v4* ]]; then echo --force-conflicts; fi
}

# let_go ends an upgrade that was killed half way, and a removal that was refused:
# Helm refuses an upgrade as long as there is such a revision. What it has done of
# it stays, and is what the next upgrade begins with.
let_go() {
	kubectl delete secret -n "$namespace" --ignore-not-found -l 'owner=helm,name=assay,status in (pending-install,pending-upgrade,pending-rollback,uninstalling)' >&2
}

# wait_admission: until the API server reaches the webhook. Helm waits for the pods, and nodes need
# another second to learn where a Service leads.
wait_admission() {
	local deadline=$((SECONDS + 120)) said
	until said=$(kubectl apply --dry-run=server -n default -f experiments/systems/etcd.yaml 2>&1); do
		((SECONDS < deadline)) || die "the API server does not admit experiments/systems/etcd.yaml after 120 s: $said"
		sleep 1
	done
}

case ${1:-} in
install)
	adopt
	let_go
	without_bpf=()
	nodes_grant_bpf || without_bpf=(--set agent.bpf=false)
	read -ra flags <<<"$(force) ${HELM_FLAGS:-}"
	manager=$(image_tag manager) agent=$(image_tag agent) # a failure within a command's arguments would be lost
	control="node-role.kubernetes.io/control-plane"
	placed=$(printf '{"nodeSelector": {"%s": ""}, "tolerations": [{"key": "%s", "operator": "Exists", "effect": "NoSchedule"}]}' "$control" "$control")
	helm upgrade --install assay charts/assay --namespace "$namespace" --create-namespace \
		--set-string images.manager.tag="$manager" --set-string images.agent.tag="$agent" \
		--values <(echo "$placed") --wait --timeout 5m "${without_bpf[@]}" "${flags[@]}" >&2
	wait_admission
	;;
remove)
	if kubectl get crd experiments.assay.dev >/dev/null 2>&1; then
		kubectl delete experiments.assay.dev,datasets.assay.dev --all --all-namespaces --timeout 5m >&2
	fi
	helm uninstall assay --namespace "$namespace" --ignore-not-found --wait --timeout 5m >&2
	kubectl delete --ignore-not-found -f config/crd/bases >&2
	;;
*) die "usage: deploy.sh install|remove" ;;
esac
