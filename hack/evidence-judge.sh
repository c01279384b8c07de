#!/usr/bin/env bash
# Judges the trials of committed bundles anew, each by its file in experiments/ as it is today, and
# makes its report again. `make evidence-judge`. It needs no cluster and no network.
#
# Where today's file runs other trials, because its workload changed for instance, the file beside the
# bundle judges it: NAME.as-run.yaml beside NAME.tar.zst.
#
# usage: evidence-judge.sh [BUNDLE...]    default: every bundle in experiments/*/evidence
# Outputs: each BUNDLE, in its place, and the report beside it (.txt). What was judged by the same
#   file with the same outcome stays as it is, so that a second call changes nothing. The rows of
#   experiments/catalogue.yaml are yours to edit.
# Status: 0 when each bundle was judged and verifies. Verdicts do not matter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p bin
go build -o bin/ ./operator/cmd/kubectl-assay
bundles=("$@")
if [[ $# = 0 ]]; then
	bundles=(experiments/*/evidence/*.tar.zst)
fi

# file_of NAME: the file of the experiment of this name.
file_of() {
	local file
	for file in experiments/*.yaml experiments/*/*.yaml; do
		if awk -v name="$1" '/^---/ { kind = "" } /^kind:/ { kind = $2 } /^  name:/ && kind == "Experiment" && $2 == name { found = 1 } END { exit !found }' "$file"; then
			echo "$file"
			return
		fi
	done
	return 1
}

failed=0
for bundle in "${bundles[@]}"; do
	name=$(tar tf "$bundle" 2>/dev/null | sed -n '1s,/.*,,p') # the folder in it is called after the experiment
	if [[ -e ${bundle%.tar.zst}.as-run.yaml ]]; then
		file=${bundle%.tar.zst}.as-run.yaml
	elif ! file=$(file_of "$name"); then
		echo "$bundle: no file of experiments/ has an Experiment $name" >&2
		failed=$((failed + 1))
		continue
	fi
	status=0
	bin/kubectl-assay judge -f "$file" -f experiments/systems --bundle "$bundle" -o "$bundle" || status=$?
	case $status in
	0 | 3 | 4) ;;
	*)
		failed=$((failed + 1))
		continue
		;;
	esac
	if bin/kubectl-assay verify "$bundle" >/dev/null; then
		bin/kubectl-assay report --file "$bundle" >"${bundle%.tar.zst}.txt"
	else
		failed=$((failed + 1))
	fi
done
if [[ $failed -gt 0 ]]; then
	echo "$failed of ${#bundles[@]} bundles were not judged" >&2
	exit 1
fi
