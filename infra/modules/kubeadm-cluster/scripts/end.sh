#!/usr/bin/env bash
# Ends the control plane, after all nodes have left. A dead machine is let go, with a warning, after SSH_DEAD seconds; one that does not let us
# in is an error.
#
# Inputs (environment): NODE_* and SSH_*, see ssh-nodes/scripts/lib.sh.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../ssh-nodes/scripts/lib.sh
. "$here/../../ssh-nodes/scripts/lib.sh"

if ! lives NODE; then
	say "warning: host $NODE_NAME ($NODE_ADDRESS) does not let us in (${WHY##*$'\n'}): the control plane is given up as it is"
	exit 0
fi
run NODE 300 "ending the control plane" "$here/../../ssh-nodes/remote/reset.sh"
say "$NODE_NAME: the control plane is gone"
