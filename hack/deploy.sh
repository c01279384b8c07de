#!/usr/bin/env bash
# Installs Assay on the cluster of `make cluster`, or removes it.
#
# usage: deploy.sh install | remove
#   install  the CRDs (helm never upgrades those), then the chart with the image
#            tags of `make images`. A tag names the content of an image, so pods
#            are replaced exactly when their image changed.
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

case ${1:-} in
install)
	kubectl apply --server-side --force-conflicts -f config/crd/bases >&2
	read -ra flags <<<"${HELM_FLAGS:-}"
	helm upgrade --install assay charts/assay --namespace "$namespace" --create-namespace \
		--set-string images.manager.tag="$(image_tag manager)" --set-string images.agent.tag="$(image_tag agent)" \
		--wait --timeout 3m "${flags[@]}" >&2
	;;
remove)
	if kubectl get crd experiments.assay.dev >/dev/null 2>&1; then
		kubectl delete experiments.assay.dev --all --all-namespaces --timeout 5m >&2
	fi
	helm uninstall assay --namespace "$namespace" --ignore-not-found --wait --timeout 3m >&2
	kubectl delete --ignore-not-found -f config/crd/bases >&2
	;;
*) die "usage: deploy.sh install|remove" ;;
esac
