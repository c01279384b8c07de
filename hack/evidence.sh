#!/usr/bin/env bash
# Runs experiments on the cluster of `make deploy` and keeps what came of them in the repository:
# `make evidence FILES="hotstuff/rpc basil/reads"`.
#
# usage: evidence.sh FILE...      files of experiments/, without .yaml
# Inputs (environment): PROFILE of the experiments (smoke), LIMIT of each in seconds (900), FOLDER of
#   experiments/ that keeps the evidence (the file's own).
# Outputs: experiments/FOLDER/evidence/NAME.tar.zst, the bundle, and NAME.txt, the report. Those of
#   another profile than smoke are called NAME-PROFILE. The verdicts do not matter. What does not
#   end in time, or has a bundle that does not verify, leaves nothing. Earlier evidence that left a
#   claim undecided stays as NAME.DAY.tar.zst where the claims are others now. make generate writes the rows of
#   experiments/README.md.
# Changes on the cluster: the namespace evidence, whose experiments are deleted in the end.
# Status: 0 when each experiment has left its evidence.
. "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"

profile=${PROFILE:-smoke}
suffix=
if [[ $profile != smoke ]]; then suffix=-$profile; fi
limit=${LIMIT:-900}
namespace=evidence
[[ $# -gt 0 ]] || die "name files of experiments/, without .yaml"
cd "$repo"
for file; do
	[[ -e experiments/$file.yaml ]] || die "there is no experiments/$file.yaml"
	[[ $file = */* || -n ${FOLDER:-} ]] || die "$file is in no folder of experiments/: say which keeps its evidence, FOLDER=pesto"
done
eval "$("$hack/cluster/tools.sh" kubectl)"
KUBECONFIG=$(kubeconfig)
export KUBECONFIG
mkdir -p bin "$work/evidence"
go build -o bin/ ./operator/cmd/kubectl-assay
kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
kubectl label namespace "$namespace" --overwrite pod-security.kubernetes.io/enforce=privileged >/dev/null

# keep FILE: runs it and keeps its evidence.
keep() {
	local file=$1 name status=0 began=$SECONDS folder made
	folder=experiments/${FOLDER:-$(dirname "$file")}/evidence made=$work/evidence/$(basename "$file")$suffix
	name=$(kubectl create --dry-run=client -f "experiments/$file.yaml" -o json | jq -r '.. | objects | select(.kind == "Experiment") | .metadata.name') || return
	timeout "$limit" bin/kubectl-assay -n "$namespace" run -f "experiments/$file.yaml" --profile "$profile" --wait >"$made.log" 2>&1 || status=$?
	case $status in
	0 | 3 | 4 | 5) ;;
	*)
		say "$file: kubectl assay run ended with exit code $status, see $made.log"
		return 1
		;;
	esac
	bin/kubectl-assay -n "$namespace" bundle "$name" -o "$made.tar.zst" >/dev/null &&
		bin/kubectl-assay verify "$made.tar.zst" >/dev/null &&
		bin/kubectl-assay report --file "$made.tar.zst" >"$made.txt" || return
	mkdir -p "$folder"
	go run ./operator/test/evidence/keep "$folder/$(basename "$made").tar.zst" "$made.tar.zst" || return
	mv "$made.tar.zst" "$made.txt" "$folder/"
	say "$file: $(grep -m 2 -E '^(Complete|Incomplete|[0-9]+ claims?):' "$folder/$(basename "$made").txt" | paste -sd ' ') ($((SECONDS - began)) s)"
}

packages jq=jq
left=0
for file; do
	keep "$file" || left=$((left + 1))
	kubectl -n "$namespace" delete experiments.assay.dev --all --timeout 3m >/dev/null
done
[[ $left = 0 ]] || die "$left of $# experiments have left nothing"
