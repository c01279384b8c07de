#!/usr/bin/env bash
# From nothing to the verdicts of one paper's figure: `make demo`.
#
# Creates (or uses) the cluster of `make cluster`, builds and loads the images,
# installs the chart, runs experiments/failure-fp.yaml at smoke size, prints its
# report. Changes nothing else; `make cluster-down` takes all of it away.
. "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"

experiment=${EXPERIMENT:-failure-fp}
profile=${PROFILE:-smoke}
namespace=${NAMESPACE:-demo}
cd "$repo"

step() { printf '\n\033[1m== %s\033[0m\n' "$*" >&2; }
assay() { "$repo/bin/kubectl-assay" --namespace "$namespace" "$@"; }

step "A Kubernetes cluster of $((WORKERS + 1)) nodes, Assay's images in it, and its operator"
make deploy
eval "$("$hack/cluster/tools.sh" kubectl)"
KUBECONFIG=$(kubeconfig)
export KUBECONFIG
kubectl get nodes
kubectl -n assay-system get pods

step "The command line: bin/kubectl-assay"
go build -o bin/ ./operator/cmd/kubectl-assay

step "experiments/$experiment.yaml, profile $profile, in namespace $namespace"
kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
kubectl -n "$namespace" apply -f experiments/systems
status=0
assay run -f "experiments/$experiment.yaml" --profile "$profile" --wait || status=$?

step "Report"
assay report "$experiment" || status=$?
assay report "$experiment" -o .work/"$experiment".html && say "with plots: .work/$experiment.html"

cat >&2 <<EOF

To look further:

    export KUBECONFIG=$KUBECONFIG PATH=$work/bin:$repo/bin:\$PATH
    kubectl -n $namespace get experiments,trials
    kubectl -n $namespace describe experiment $experiment
    kubectl assay -n $namespace plan -f experiments/$experiment.yaml     # the full-size evaluation

To clean up: make undeploy, or make cluster-down for the whole cluster.
EOF
exit "$status"
