#!/usr/bin/env bash
# Takes one machine out of the cluster: its pods leave, its Node goes, what joining did to it is undone. A dead machine, or a dead control plane, is
# left out, with a warning, after SSH_DEAD seconds; one that does not let us in is an error, before anything is done.
#
# Inputs (environment): NODE_*, CP_* and SSH_*, see ssh-nodes/scripts/lib.sh; DRAIN, seconds.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../ssh-nodes/scripts/lib.sh
. "$here/../../ssh-nodes/scripts/lib.sh"

alive=yes
if ! lives NODE; then
	alive=no
	say "warning: host $NODE_NAME ($NODE_ADDRESS) does not let us in (${WHY##*$'\n'}): its Node is removed, the machine is left as it is"
fi
if lives CP; then
	# A dead machine's pods cannot confirm that they have left: there is nothing to wait for.
	run CP $((DRAIN + 60)) "draining $NODE_NAME" "$here/../remote/drain.sh" "NODE=$NODE_NAME" "DRAIN=$([[ $alive = no ]] || echo "$DRAIN")"
else
	say "warning: the control plane $CP_NAME ($CP_ADDRESS) does not let us in (${WHY##*$'\n'}): $NODE_NAME is not drained"
fi
if [[ $alive = yes ]]; then
	run NODE 300 "leaving the cluster" "$here/../../ssh-nodes/remote/reset.sh"
	say "$NODE_NAME: has left"
fi
