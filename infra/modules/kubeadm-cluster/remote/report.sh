#!/usr/bin/env bash
# On a machine: how it is prepared, if ssh-nodes has prepared it.
set -euo pipefail

main() {
	if [[ -x /usr/local/lib/assay/machine.sh ]]; then /usr/local/lib/assay/machine.sh report; fi
}

main </dev/null
