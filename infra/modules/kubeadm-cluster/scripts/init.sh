#!/usr/bin/env bash
# Makes the control plane. One that is there already, of this cluster, is left alone; one that was begun is begun again.
#
# Inputs (environment): NODE_* and SSH_*, see ssh-nodes/scripts/lib.sh; CONFIGURATION, kubeadm's; VERSION, INTERNAL, POD_CIDR, PREFLIGHT.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../ssh-nodes/scripts/lib.sh
. "$here/../../ssh-nodes/scripts/lib.sh"

reach NODE
state=$(run NODE 60 "looking for a cluster" "$here/../remote/state.sh" CA=)
case $state in
ours) say "$NODE_NAME: is the control plane already" && exit 0 ;;
begun) run NODE 300 "undoing a cluster that was half made" "$here/../../ssh-nodes/remote/reset.sh" ;;
other*) fail NODE "is in another cluster already (${state#other }). To take it, run kubeadm reset on it. $again" ;;
esac
say "$NODE_NAME: making the control plane"
run NODE 600 "making the control plane" "$here/../remote/init.sh" "CONFIGURATION=$CONFIGURATION" "VERSION=$VERSION" "NAME=$NODE_NAME" \
	"INTERNAL=$INTERNAL" "POD_CIDR=$POD_CIDR" "PREFLIGHT=$PREFLIGHT"
say "$NODE_NAME: the API server answers"
