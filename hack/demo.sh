#!/usr/bin/env bash
# From nothing to the verdicts of one paper's figure: `make demo`.
#
# Creates (or uses) the cluster of `make cluster`, builds and loads the images,
# installs the chart, runs one experiment at smoke size, prints its report.
# Changes nothing else; `make cluster-down` takes all of it away.
#
# Inputs: EXPERIMENT (failure-fp), PROFILE (smoke), NAMESPACE (demo).
# Exit status: of `kubectl assay run`, so 0 only if every claim was reproduced;
# what else it may be is no failure of the demo, and said in words.
. "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"

experiment=${EXPERIMENT:-failure-fp}
profile=${PROFILE:-smoke}
namespace=${NAMESPACE:-demo}
file=experiments/$experiment.yaml
cd "$repo"
[[ -e $file ]] || die "there is no $file"

step() { printf '\n== %s\n' "$*" >&2; }

step "1 of 3: a cluster, Assay's images in it, its operator"
make deploy
eval "$("$hack/cluster/tools.sh" kubectl)"
KUBECONFIG=$(kubeconfig)
export KUBECONFIG
kubectl get nodes >&2

step "2 of 3: the command line, bin/kubectl-assay"
mkdir -p bin
go build -o bin/ ./operator/cmd/kubectl-assay

step "3 of 3: $file, profile $profile, in namespace $namespace"
kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
kubectl label namespace "$namespace" --overwrite pod-security.kubernetes.io/enforce=privileged >/dev/null
if kubectl -n "$namespace" get experiment "$experiment" >/dev/null 2>&1; then
	say "deleting the experiment of an earlier demo"
	kubectl -n "$namespace" delete experiment "$experiment" --timeout 3m >/dev/null
fi
status=0
bin/kubectl-assay -n "$namespace" run -f "$file" --profile "$profile" --wait || status=$?

cat >&2 <<EOF

Look further:

    export KUBECONFIG=$KUBECONFIG PATH=$work/bin:$repo/bin:\$PATH
    kubectl get experiments,trials -n $namespace
    kubectl assay report $experiment -n $namespace -o markdown
    kubectl assay plan -f $file        # the evaluation in full size

Clean up: make undeploy, or make cluster-down for the whole cluster.
EOF
exit "$status"
