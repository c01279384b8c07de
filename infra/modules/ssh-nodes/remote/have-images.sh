#!/usr/bin/env bash
# On the machine: prints those of SUMS (environment, a list) whose images are there.
set -euo pipefail

main() {
	# shellcheck disable=SC2086 # a list of words
	/usr/local/lib/assay/images.sh have $SUMS
}

main </dev/null
