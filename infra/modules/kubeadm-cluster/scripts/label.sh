#!/usr/bin/env bash
# Gives a node its labels and taints, also the labels that say how its machine is prepared.
#
# Inputs (environment): NODE_*, CP_* and SSH_*, see ssh-nodes/scripts/lib.sh; LABELS and TAINTS, one on a line, as kubectl takes them.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../ssh-nodes/scripts/lib.sh
. "$here/../../ssh-nodes/scripts/lib.sh"

reach NODE
reach CP
report=$(run NODE 60 "reporting how it is prepared" "$here/../remote/report.sh")
all=$LABELS$'\n'$(sed -n 's/^label //p' <<<"$report")
run CP 60 "labelling $NODE_NAME" "$here/../remote/label.sh" "NODE=$NODE_NAME" "LABELS=$all" "TAINTS=$TAINTS" \
	"NOT_SET=$(sed -n 's/^not-set //p' <<<"$report" | paste -sd ';')"
