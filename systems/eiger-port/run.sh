#!/usr/bin/env bash
# The original Eiger-PORT and Eiger through Assay: `make artifact-eiger-port`.
#
# Builds the image, loads it into the cluster of `make cluster`, installs Assay as it is now, and runs
# the experiment at smoke size. Ends with the report and the bundle in .work/eiger-port/evidence.
#
# Inputs (environment):
#   SOURCE       a clone of the artifact, or a directory with it; see build.sh      (GitHub)
#   NAMESPACE    to run in; it is created                                       (eiger-port)
#   DEPLOY       0 leaves the installed Assay as it is                                   (1)
#   CLUSTER, WORKERS, ASSAY_CACHE, NODE_SOURCE
# Exit status: 0 when the experiment is complete, whatever its verdict is.
. "$(dirname "${BASH_SOURCE[0]}")/../../hack/cluster/lib.sh"

namespace=${NAMESPACE:-eiger-port}
evidence=$work/eiger-port/evidence
status=0
cd "$repo"
make_work
mkdir -p "$evidence"

run_system eiger-port "$namespace"
bin/kubectl-assay -n "$namespace" run -f experiments/eiger-port/threads.yaml --profile smoke --rerun --wait -o "$evidence/eiger-port.txt" || status=$?
case $status in
0 | 3 | 4 | 5) ;; # verdicts are no failure of the platform
*) die "kubectl assay run ended with exit code $status" ;;
esac
bin/kubectl-assay -n "$namespace" report eiger-port -o "$evidence/eiger-port.html" >/dev/null
bin/kubectl-assay -n "$namespace" bundle eiger-port -o "$evidence/eiger-port.tar.gz" >/dev/null
say "done: the report and the bundle are in .work/eiger-port/evidence"
