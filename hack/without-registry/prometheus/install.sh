#!/usr/bin/env bash
# Puts a small Prometheus with its operator on the cluster of `make cluster`, or removes it. For trying Assay with it and for tests; a cluster that has one uses
# its own.
#
# usage: install.sh up | down
#   up     images, the operator's kinds, the operator and one Prometheus in namespace monitoring; waits until it answers, prints the chart's values for it
#   down   all of that but the images, with every PodMonitor, ServiceMonitor and PrometheusRule of the cluster: their kinds go
# Inputs:  this directory, CLUSTER, ASSAY_CACHE.
# Changes: .work/prometheus, that cluster.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

eval "$("$hack/cluster/tools.sh" kubectl)"
KUBECONFIG=$(kubeconfig)
export KUBECONFIG
[[ -e $KUBECONFIG ]] || die "cluster $CLUSTER does not run: make cluster"
manifests=$hack/without-registry/prometheus/manifests

case ${1:-} in
up)
	"$hack/without-registry/prometheus/load.sh"
	crds=$("$hack/without-registry/prometheus/build.sh" prometheus-crds)
	# On the server: the kinds are longer than an annotation may be, in which the client would keep them.
	kubectl apply --server-side -f "$crds" >&2
	kubectl wait --for=condition=Established --timeout=5m -f "$crds" >&2
	kubectl apply -f "$manifests/operator.yaml" >&2
	kubectl rollout status -n monitoring deployment/prometheus-operator --timeout=5m >&2
	kubectl apply -f "$manifests/prometheus.yaml" >&2
	kubectl wait -n monitoring --for=condition=Available --timeout=5m prometheus/small >&2
	cat <<-'END'
		prometheus:
		  url: http://prometheus-operated.monitoring.svc:9090
		  podMonitors:
		    labels: {release: small}
		metrics:
		  serviceMonitor: {enabled: true}
		  interval: 5s
		  labels: {release: small}
		  rules: {enabled: true}
	END
	;;
down)
	# The operator deletes what it made for the Prometheus while it is there.
	if kubectl get crd prometheuses.monitoring.coreos.com >/dev/null 2>&1; then
		kubectl delete -n monitoring --ignore-not-found --timeout=5m prometheus/small >&2
		kubectl wait -n monitoring --for=delete --timeout=5m statefulset/prometheus-small >&2
	fi
	kubectl delete --ignore-not-found --timeout=5m -f "$manifests/operator.yaml" >&2
	kubectl delete --ignore-not-found --timeout=5m clusterrole/small-prometheus clusterrolebinding/small-prometheus >&2
	for kind in prometheuses podmonitors servicemonitors prometheusrules probes; do
		kubectl delete --ignore-not-found --timeout=5m "crd/$kind.monitoring.coreos.com" >&2
	done
	;;
*) die "usage: install.sh up|down" ;;
esac
