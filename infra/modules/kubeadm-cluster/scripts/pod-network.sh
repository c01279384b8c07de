#!/usr/bin/env bash
# Installs the CNI plugin.
#
# Inputs (environment): CP_* and SSH_*, see ssh-nodes/scripts/lib.sh; MANIFEST, a file here or an https URL; POD_CIDR.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../ssh-nodes/scripts/lib.sh
. "$here/../../ssh-nodes/scripts/lib.sh"

reach CP
text=
if [[ $MANIFEST != https://* ]]; then text=$(<"$MANIFEST"); fi
run CP 180 "installing the pod network" "$here/../remote/pod-network.sh" "MANIFEST=$text" "URL=$MANIFEST" "POD_CIDR=$POD_CIDR"
