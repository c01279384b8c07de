#!/usr/bin/env bash
# On the machine: applies the settings that lie in /etc/assay, now and at each boot. Prints machine.sh's report.
set -euo pipefail

main() {
	systemctl daemon-reload
	systemctl enable --quiet assay-machine.service
	/usr/local/lib/assay/machine.sh apply
}

main </dev/null
