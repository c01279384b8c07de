#!/usr/bin/env bash
# The original HATS and mLSM through Assay: `make artifact-hats`.
#
# Builds the image, loads it into the cluster of `make cluster`, installs Assay as it is now, and runs
# the experiment at smoke size. Ends with the report and the bundle in .work/hats/evidence.
#
# Inputs (environment):
#   SOURCE       a clone of the artifact, or a directory with it; see build.sh      (GitHub)
#   NAMESPACE    to run in; it is created                                       (hats)
#   DEPLOY       0 leaves the installed Assay as it is                                   (1)
#   CLUSTER, WORKERS, ASSAY_CACHE, NODE_SOURCE
# Exit status: 0 when the experiment is complete, whatever its verdict is.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

namespace=${NAMESPACE:-hats}
evidence=$work/hats/evidence
status=0
cd "$repo"
make_work
mkdir -p "$evidence"

run_system hats "$namespace"
bin/kubectl-assay -n "$namespace" run -f experiments/hats/originals.yaml --profile smoke --rerun --wait -o "$evidence/hats.txt" || status=$?
case $status in
0 | 3 | 4 | 5) ;; # verdicts are no failure of the platform
*) die "kubectl assay run ended with exit code $status" ;;
esac
bin/kubectl-assay -n "$namespace" report hats -o "$evidence/hats.html" >/dev/null
bin/kubectl-assay -n "$namespace" bundle hats -o "$evidence/hats.tar.gz" >/dev/null
say "done: the report and the bundle are in .work/hats/evidence"
