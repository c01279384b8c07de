#!/usr/bin/env bash
# Installs Chaos Mesh on the kind cluster, or removes it: the chart of its own Go module, the CRDs of crds.sh, the image of load.sh.
#
# usage: install.sh up | down
#   up    does nothing when just this is installed already; waits until the controller and every daemon are ready
#   down  removes all chaos first, then the release, the namespace and the CRDs
# Inputs:  this directory, CLUSTER, ASSAY_CACHE; what load.sh needs.
# Changes: namespace chaos-mesh and cluster-wide objects of Chaos Mesh; what load.sh changes.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"
# shellcheck source=versions.env
. "$hack/without-registry/chaos-mesh/versions.env"

namespace=chaos-mesh
eval "$("$hack/cluster/tools.sh" kubectl helm)"
KUBECONFIG=$(kubeconfig)
export KUBECONFIG

chart() {
	go mod download -json "github.com/chaos-mesh/chaos-mesh@$CHAOS_MESH_VERSION" | sed -n 's/^\t"Dir": "\(.*\)",$/\1\/helm\/chaos-mesh/p'
}

# installed CONTENT: is that, a hash over image, CRDs and values, what runs?
installed() {
	[[ $(helm list --namespace "$namespace" --deployed --filter '^chaos-mesh$' --output json) = *deployed* ]] &&
		[[ $(kubectl get deployment chaos-controller-manager -n "$namespace" -o jsonpath='{.metadata.labels.assay\.dev/content}') = "$1" ]]
}

up() {
	local tag crds content
	"$hack/without-registry/chaos-mesh/load.sh"
	crds=$("$hack/without-registry/chaos-mesh/crds.sh")
	tag=$(cut -f2 "$work/chaos-mesh/index.tsv")
	content=$({ echo "$tag" "$crds" && cat "$hack/without-registry/chaos-mesh/values.yaml"; } | sha256sum | cut -c1-12)
	if ! installed "$content"; then
		# Server-side: the schemas are larger than an annotation may be. Helm would not change CRDs that are there.
		kubectl apply --server-side --force-conflicts -f "$crds" >/dev/null
		kubectl wait --for=condition=Established --timeout=5m -f "$crds" >/dev/null
		sed "s|PAUSE_IMAGE|registry.k8s.io/pause:$PAUSE_TAG|" "$hack/without-registry/chaos-mesh/values.yaml" |
			helm upgrade --install chaos-mesh "$(chart)" --namespace "$namespace" --create-namespace --skip-crds --values - \
				--set-string "images.tag=$tag,customLabels.assay\.dev/content=$content" --wait --timeout 5m >&2
	fi
	kubectl rollout status -n "$namespace" deployment/chaos-controller-manager --timeout=5m >&2
	kubectl rollout status -n "$namespace" daemonset/chaos-daemon --timeout=5m >&2
	webhook
}

# webhook waits until the API server reaches the controller through its Service, which may be some seconds after the controller is ready.
webhook() {
	local i
	for ((i = 0; i < 60; i++)); do
		if kubectl create --dry-run=server -o name -f - <<-EOF >/dev/null 2>&1; then return; fi
			{apiVersion: chaos-mesh.org/v1alpha1, kind: PodChaos, metadata: {name: probe, namespace: $namespace},
			 spec: {action: pod-kill, mode: all, selector: {namespaces: [$namespace], labelSelectors: {none: such}}}}
		EOF
		sleep 1
	done
	die "Chaos Mesh's webhook does not answer: kubectl logs -n $namespace deployment/chaos-controller-manager"
}

down() {
	local crds crd space name
	crds=$(kubectl get crd -o name | grep '\.chaos-mesh\.org$' || true)
	# With the controller still there, which alone can undo what is in force. A CRD is named as its resource.
	for crd in $crds; do
		crd=${crd##*/}
		kubectl delete "$crd" --all --all-namespaces --timeout=30s >/dev/null 2>&1 && continue
		# What never came into force is never undone. Without the controller its finalizer would hold the CRD, too.
		kubectl get "$crd" --all-namespaces -o jsonpath='{range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}' |
			while read -r space name; do
				say "$crd $space/$name is let go of as it is"
				kubectl patch "$crd" -n "$space" "$name" --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null 2>&1 || true
			done
	done
	helm uninstall chaos-mesh --namespace "$namespace" --ignore-not-found --wait --timeout 5m >&2
	kubectl delete namespace "$namespace" --ignore-not-found --timeout=5m >&2
	[[ -z $crds ]] || xargs kubectl delete --ignore-not-found --timeout=5m <<<"$crds" >&2
}

case ${1:-} in
up) up ;;
down) down ;;
*) die "usage: install.sh up|down" ;;
esac
