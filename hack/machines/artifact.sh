#!/usr/bin/env bash
# From an artifact's folder to the verdicts, on this machine and without a cluster: `make
# ssh-artifact`. It does what docs/guide/ssh-artifacts.md says, and prints how long each step took.
#
# Inputs (environment), which are those of systems/sweep where they are left out:
#   FOLDER    the artifact, with the script                  (systems/sweep/artifact)
#   HOSTS     file in it that names the machines             (machines.txt)
#   RUN       what the authors run                           (./run.sh)
#   RESULTS   where that leaves its numbers                  (~/results/table1.tsv)
#   ROWS      rows that are expected there                   (policy=lock,queue shards=1,4)
#   NUMBERS   lines of results.numbers of the System         (those of systems/sweep)
#   CLAIMS    expressions of claims, with ; between them
#   PACKAGES  of Debian that the script needs                (python3-minimal libpython3-stdlib)
#   NAME      of the experiment                              (table1)
#   FRESH     1: set the image up anew, for its time         ()
# Changes on the machine: what hack/machines/image.sh and make images change; .work/ssh-artifact;
# while it runs, /var/lib/assay/local and the control group assay-local.
# Exit status: 0 with verdicts, whatever they are; 1 when a step failed.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

folder=${FOLDER:-$repo/systems/sweep/artifact}
hosts=${HOSTS:-machines.txt} run=${RUN:-./run.sh} results=${RESULTS:-"~/results/table1.tsv"}
name=${NAME:-table1} rows=${ROWS:-policy=lock,queue shards=1,4}
numbers=${NUMBERS-'- {name: Throughput, column: ops_per_s}
- {name: P50Latency, column: p50_us, unit: us}
- {name: P99Latency, column: p99_us, unit: us}'}
claims=${CLAIMS:-"throughput(policy='lock', parts=4) > 2 * throughput(policy='lock', parts=1); throughput(policy='queue', parts=1) < 1.1 * throughput(policy='lock', parts=1)"}
packages_of=${PACKAGES:-python3-minimal libpython3-stdlib}
[[ $(id -u) = 0 ]] || die "pods on this machine need root: run it as root"
cd "$repo"
make_work
out=$work/ssh-artifact
rm -rf "$out"
mkdir -p "$out"

steps=5
# shellcheck source=../steps.sh
. "$hack/steps.sh"

step "the command line and the image of the agent" "some seconds" "several minutes"
packages runc=runc || failed
mkdir -p bin
go build -o bin/ ./operator/cmd/kubectl-assay || failed
make images IMAGES=assay/agent >&2 || failed
done_step

step "kubectl assay new --ssh" "a second" "no longer"
arguments=()
for row in $rows; do arguments+=(--rows "$row"); done
bin/kubectl-assay new "$name" --ssh --hosts "$folder/$hosts" --run "$run" --results "$results" --dir artifact "${arguments[@]}" -O "$out/$name.yaml" || failed
cp "$out/$name.yaml" "$out/as-written.yaml"
done_step

step "lines that are edited" "a second" "no longer"
# What a person edits: numbers whose columns do not say what they are, how long the script may take,
# and the paper's claims in place of the first one.
awk -v numbers="$numbers" -v claims="$claims" '
	function put(text, indent,  n, lines, i) { n = split(text, lines, "\n"); for (i = 1; i <= n; i++) if (lines[i] != "") print indent lines[i] }
	/^      # numbers:$/ && numbers != "" { print "      numbers:"; put(numbers, "      "); next }
	/^  schedule:/ { print "  schedule: {measure: 5m}"; next }
	/^  claims:/ || /^  # claims:/ {
		print "  claims:"; n = split(claims, all, /; */)
		for (i = 1; i <= n; i++) printf "  - {name: claim-%d, statement: \"The paper says so.\", expr: \"%s\"}\n", i, all[i]
		skip = 1; next
	}
	skip && /^  (#|-|  )/ { next }
	{ skip = 0; print }' "$out/as-written.yaml" >"$out/$name.yaml" || failed
say "  $(diff "$out/as-written.yaml" "$out/$name.yaml" | grep -c '^>') lines are new or different, in $out/$name.yaml"
bin/kubectl-assay plan -f "$out/$name.yaml" --profile laptop --offline >"$out/plan.txt" || failed
done_step

step "the image of the machines" "some seconds" "some three minutes"
PACKAGES=$packages_of "$hack/machines/image.sh" "lab/$name" "$folder" || failed
done_step

step "three runs, verdicts and figure" "some two minutes" "no longer"
status=0
bin/kubectl-assay run --local="$out/results" -f "$out/$name.yaml" --profile laptop --wait >"$out/report.txt" || status=$?
case $status in
0 | 3 | 4 | 5) ;;
*) failed "kubectl assay run ended with exit code $status" ;;
esac
bin/kubectl-assay report --local="$out/results" "$name" -o "$out/report.html" >/dev/null || failed
done_step

sed -n '/^Verdicts$/,/^[A-Z][a-z]* *$/p' "$out/report.txt" | head -n 40
say "from the folder to the verdicts in $(spell "$SECONDS"); the report: $out/report.html"
