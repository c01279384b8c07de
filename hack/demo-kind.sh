#!/usr/bin/env bash
# From nothing to the verdicts of one paper's figure: `make demo-kind`.
#
# Creates (or uses) the cluster of `make cluster`, builds and loads the images,
# installs the chart, runs one experiment at smoke size. It ends with the
# verdicts, the table that they rest on, and what to do next; the whole report
# is in .work/demo. Changes nothing else; `make cluster-down` takes all of it
# away.
#
# Inputs (environment):
#   EXPERIMENT  name of a file in experiments/, without .yaml  (failure-fp)
#   PROFILE     profile of the experiment                      (smoke)
#   NAMESPACE   to run in; it is created                       (demo)
#   CLUSTER, WORKERS, ASSAY_CACHE, NODE_SOURCE  see hack/cluster/lib.sh
# Exit status: 0 when the platform has worked, whatever the verdicts are, which
# are about the system and the machine. 1 when a step of the demo failed; the
# last line says which.
. "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"

experiment=${EXPERIMENT:-failure-fp}
profile=${PROFILE:-smoke}
namespace=${NAMESPACE:-demo}
file=experiments/$experiment.yaml
folder=$work/demo
cd "$repo"
[[ -e $file ]] || die "EXPERIMENT=$experiment: there is no $file; there are: $(cd experiments && echo *.yaml)"
make_work
mkdir -p "$folder"

steps=4
# shellcheck source=steps.sh
. "$hack/steps.sh"

step "a Kubernetes cluster in containers" "10 seconds" "some eight minutes on two quiet processors"
make cluster || failed
eval "$("$hack/cluster/tools.sh" kubectl)" || failed
KUBECONFIG=$(kubeconfig)
export KUBECONFIG
kubectl get nodes >&2 || failed
done_step

step "Assay's images and its operator on it" "a minute" "some three minutes"
# Only what the experiment runs is built. The chart's notes are for who installs it by hand.
make deploy IMAGES="assay/manager assay/agent assay/basil" 2>&1 | sed -u '/^NOTES:$/,$d' >&2 || failed
done_step

step "the command line, bin/kubectl-assay" "some seconds" "a minute"
mkdir -p bin
go build -o bin/ ./operator/cmd/kubectl-assay || failed
done_step

step "$file, profile $profile, in namespace $namespace" "some five minutes in the profile smoke" "no longer"
kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f - >/dev/null || failed
kubectl label namespace "$namespace" --overwrite pod-security.kubernetes.io/enforce=privileged >/dev/null || failed
if kubectl -n "$namespace" get experiment "$experiment" >/dev/null 2>&1; then
	say "   deleting the experiment of an earlier demo; its results stay"
	kubectl -n "$namespace" delete experiment "$experiment" --timeout 3m >/dev/null || failed
fi
status=0
bin/kubectl-assay -n "$namespace" run -f "$file" --profile "$profile" --wait -o "$folder/report.txt" || status=$?
case $status in
0 | 3 | 4 | 5) ;; # verdicts, and those that are missing, are no failure of the platform
*) failed "kubectl assay run ended with exit code $status; see kubectl --kubeconfig $KUBECONFIG -n $namespace get experiments,trials" ;;
esac
bin/kubectl-assay -n "$namespace" report "$experiment" -o "$folder/report.html" >/dev/null || failed
done_step

# claims: verdict, name and numbers of each claim that the profile judges.
claims() {
	kubectl -n "$namespace" get experiment "$experiment" \
		-o jsonpath='{range .status.claims[*]}{.verdict}{"\t"}{.name}{"\t"}{.message}{"\n"}{end}' |
		awk -F '\t' '
			$1 == "NotEvaluated" && $3 ~ /^profile .* skips it/ { skipped++; next }
			{ printf "  %-14s %s\n", $1, $2; wrap($3) }
			function wrap(text, words, n, i, line) {
				n = split(text, words, " "); line = ""
				for (i = 1; i <= n; i++) {
					if (length(line) + length(words[i]) > 78) { print "                " line; line = "" }
					line = line " " words[i]
				}
				print "                " line
			}
			END { if (skipped) printf "  %d more are left to the evaluation in full size.\n", skipped }'
}

# table: the 10th percentile of latency of each point in each round.
table() {
	kubectl -n "$namespace" get trials -l "assay.dev/experiment=$experiment" \
		-o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Complete")].reason}{"\t"}{.spec.point.index}{"\t"}{.spec.repetition}{"\t"}{.status.headline.p10LatencyMicroseconds}{"\t"}{.spec.point.coordinates}{"\n"}{end}' |
		awk -F '\t' '
			$1 != "Succeeded" { spoilt++; next }
			{
				gsub(/[{}"]/, "", $5); gsub(/:/, "=", $5); gsub(/,/, " ", $5)
				name[$2] = $5; value[$2, $3] = sprintf("%.2f", $4 / 1000); sum[$2] += $4 / 1000; n[$2]++
				if ($2 > points) points = $2
				if ($3 > rounds) rounds = $3
			}
			END {
				printf "  %-34s", "point"
				for (r = 0; r <= rounds; r++) printf "  round %d", r + 1
				print "     mean"
				for (p = 0; p <= points; p++) {
					if (!(p in name)) continue
					printf "  %-34s", name[p]
					for (r = 0; r <= rounds; r++) printf "  %7s", (p, r) in value ? value[p, r] : "-"
					printf "  %7.2f\n", sum[p] / n[p]
				}
				if (spoilt) printf "  %d more trials were disturbed or failed; they are in no number, and were repeated.\n", spoilt
			}'
}

echo
echo "Verdicts on $file, profile $profile"
echo
claims || failed
echo
echo "10th percentile of latency in each round, in ms"
echo
table || failed
[[ $status != 5 ]] || printf '\nSome repetition has no valid trial: this machine is too busy. The report says what disturbed it.\n'
cat <<EOF

Assay worked; the demo took $(spell "$SECONDS"). The report: .work/demo/report.html

Next:
  export KUBECONFIG=$KUBECONFIG PATH=$work/bin:$repo/bin:\$PATH
  kubectl assay report $experiment -n $namespace        # every number, and what disturbed the trials
  kubectl assay plan -f $file      # the evaluation in full size
  make cluster-down                                 # take all of it away
EOF
