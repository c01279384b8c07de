#!/usr/bin/env bash
# Runs the same experiment on this machine without a cluster and on the kind
# cluster of `make deploy`, alternating, and compares the two:
# `make bench-local-kind ROUNDS=10`. Which of them comes first alternates, too, so
# that a drift of the machine falls on both.
#
# Inputs (environment):
#   ROUNDS      how often each; three at least, since runs are compared  (10)
#   EXPERIMENT  name of a file in experiments/, without .yaml  (failure-fp)
#   PROFILE     profile of the experiment                      (smoke)
#   TRIALS      trials of each point in a run                  (1)
# Prints the difference of each metric at each point with its 95% interval
# (kubectl assay compare). Bundles of all runs, and the comparison as a table, are
# in .work/bench/local-kind. Changes on the cluster: the namespace
# assay-bench-local, which is removed in the end. The exit status is 0 when both
# ran, whatever the difference is.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

rounds=${ROUNDS:-10}
experiment=${EXPERIMENT:-failure-fp}
profile=${PROFILE:-smoke}
trials=${TRIALS:-1}
namespace=assay-bench-local
file=experiments/$experiment.yaml
[[ $rounds =~ ^[1-9][0-9]*$ && $rounds -ge 3 ]] || die "ROUNDS=$rounds must be a number from 3: fewer runs do not show how runs differ"
cd "$repo"
[[ $trials =~ ^[1-9][0-9]*$ ]] || die "TRIALS=$trials must be a number from 1"
[[ -e $file ]] || die "EXPERIMENT=$experiment: there is no $file"
[[ $(id -u) = 0 ]] || die "pods on this machine need root: run it as root"
[[ -e $work/kubeconfig ]] || die "there is no cluster: run make deploy"
make_work
folder=$work/bench/local-kind
rm -rf "$folder"
mkdir -p "$folder"
eval "$("$hack/cluster/tools.sh" kubectl)"
KUBECONFIG=$work/kubeconfig
export KUBECONFIG
trap 'kubectl delete namespace "$namespace" --ignore-not-found --wait=false >/dev/null' EXIT
kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
kubectl label namespace "$namespace" --overwrite pod-security.kubernetes.io/enforce=privileged >/dev/null

# once WHERE ROUND FLAG...: one run of the experiment, kept as a bundle.
once() {
	local where=$1 round=$2 status began=$SECONDS
	shift 2
	while true; do
		status=0
		"$work/bin/kubectl-assay" run "$@" -f "$file" --profile "$profile" --set "repetitions.min=$trials" --rerun --wait >"$folder/$where-$round.txt" 2>"$folder/$where-$round.log" || status=$?
		# One process at a time runs trials on a machine.
		grep -q 'another kubectl assay --local runs on this machine' "$folder/$where-$round.log" || break
		((SECONDS - began < 1800)) || break
		sleep 5
	done
	case $status in
	0 | 3 | 4 | 5) ;; # verdicts, and those that are missing, are no failure
	*) die "round $round, $where: kubectl assay run ended with exit code $status; see $folder/$where-$round.log" ;;
	esac
	"$work/bin/kubectl-assay" bundle "$@" "$experiment" -o "$folder/$where-$round.tar.gz" >/dev/null
	say "round $round of $rounds, $where: exit code $status after $((SECONDS - began)) s; load average $(cut -d' ' -f1-3 /proc/loadavg)"
}
on_kind() { once kind "$1" -n "$namespace"; }
here() { once local "$1" --local="$folder/results"; }

for ((round = 1; round <= rounds; round++)); do
	if ((round % 2)); then
		here "$round" && on_kind "$round"
	else
		on_kind "$round" && here "$round"
	fi
done

# bundles WHERE: those of all rounds, with commas between them.
bundles() { printf '%s\n' "$folder/$1"-*.tar.gz | paste -sd,; }
compare() { "$work/bin/kubectl-assay" compare "$(bundles local)" "$(bundles kind)" "$@" || [[ $? == 3 || $? == 4 ]]; }
echo "A: $rounds runs on one machine without a cluster. B: $rounds runs on kind."
compare
compare -o "$folder/comparison.csv"
