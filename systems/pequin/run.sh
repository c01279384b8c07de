#!/usr/bin/env bash
# The original Basil and Tapir (and, with PESTO=1, Pesto) through Assay: `make artifact-pequin`.
#
# Builds the image, loads it into the cluster of `make cluster`, installs Assay as it is now, runs the
# experiments at smoke size, and compares every trial with what the artifact's own clients printed.
# Ends with the report, the bundle and the output of the clients in .work/pequin/evidence.
#
# Inputs (environment):
#   SOURCE       a clone of the artifact, or a directory of clones; see build.sh    (GitHub)
#   EXPERIMENTS  files in experiments/, without .yaml    (pesto/originals basil/beside-the-original)
#   PESTO        1 builds and runs Pesto too: pesto/originals-pesto; never finished yet         (0)
#   NAMESPACE    to run in; it is created                                                 (pequin)
#   DEPLOY       0 leaves the installed Assay as it is                                           (1)
#   KEEP         1 copies the evidence to experiments/pesto/evidence                             (0)
#   CLUSTER, WORKERS, ASSAY_CACHE, NODE_SOURCE, JOBS
# Exit status: 0 when all trials that count agree with the artifact's output, whatever the verdicts are.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

PESTO=${PESTO:-0}
namespace=${NAMESPACE:-pequin}
read -ra experiments <<<"${EXPERIMENTS:-pesto/originals basil/beside-the-original}"
[[ $PESTO = 0 || -n ${EXPERIMENTS:-} ]] || experiments+=(pesto/originals-pesto)
export PESTO
evidence=$work/pequin/evidence
cd "$repo"
make_work
mkdir -p "$evidence"

# follow POD FILE: keeps what the pod's client prints, until it ends. A client that does not run yet leaves no file.
follow() {
	kubectl -n "$namespace" logs -f "$1" -c benchmark >"$2" 2>/dev/null || [[ -s $2 ]] || rm -f "$2"
}

# collect DIRECTORY: follows every client of the artifact that appears, until it is killed. It asks once a second, which costs the API
# server little; the nodes' runtime writes what clients print anyway.
collect() {
	local trial pod program
	while sleep 1; do
		kubectl -n "$namespace" get pods -l assay.dev/part=client --field-selector status.phase=Running \
			-o 'jsonpath={range .items[*]}{.metadata.labels.assay\.dev/trial} {.metadata.name} {.spec.containers[?(@.name=="benchmark")].name}{"\n"}{end}' 2>/dev/null |
			while read -r trial pod program; do
				[[ -n $program && ! -e $1/$trial/$pod.txt ]] || continue
				mkdir -p "$1/$trial"
				follow "$pod" "$1/$trial/$pod.txt" &
			done
	done
}

# pack DIRECTORY FILE: what the clients printed, with the difference of the machine's clocks.
pack() {
	python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC))' >"$1/clock"
	tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - . | gzip -9n >"$2"
}

run() {
	local name status=0 dir collector
	name=$(awk '$1 == "name:" {print $2; exit}' "experiments/$1.yaml")
	dir=$(mktemp -d "$work/pequin/output.XXXXXX")
	collect "$dir" &
	collector=$!
	bin/kubectl-assay -n "$namespace" run -f "experiments/$1.yaml" --profile smoke --rerun --wait -o "$evidence/$name.txt" || status=$?
	kill "$collector"
	case $status in
	0 | 3 | 4 | 5) ;; # verdicts are no failure of the platform
	*) die "kubectl assay run of $1 ended with exit code $status" ;;
	esac
	bin/kubectl-assay -n "$namespace" report "$name" -o "$evidence/$name.html" >/dev/null
	bin/kubectl-assay -n "$namespace" bundle "$name" -o "$evidence/$name.tar.gz" >/dev/null
	pack "$dir" "$evidence/$name-output.tar.gz"
	rm -r "$dir"
}

run_system pequin "$namespace"
for experiment in "${experiments[@]}"; do run "$experiment"; done

say "comparing each trial with what the artifact's clients printed"
EVIDENCE=$evidence go test -count=1 -v ./operator/test/evidence
[[ ${KEEP:-0} = 0 ]] || cp "$evidence"/*.tar.gz "$evidence"/*.txt experiments/pesto/evidence/
say "done: reports, bundles and the clients' output are in .work/pequin/evidence"
