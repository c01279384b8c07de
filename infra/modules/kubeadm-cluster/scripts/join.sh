#!/usr/bin/env bash
# Joins one machine to the cluster, and waits until it is Ready.
#
# The token is made for this join, lives for ten minutes at most, and is deleted at the end whatever happens. It passes through this script's memory
# and two encrypted connections, and is in no argument, file, log or state.
#
# Inputs (environment): NODE_*, CP_* and SSH_*, see ssh-nodes/scripts/lib.sh; ENDPOINT, VERSION, INTERNAL, TAINTS (JSON), POD_CIDR, PREFLIGHT.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../ssh-nodes/scripts/lib.sh
. "$here/../../ssh-nodes/scripts/lib.sh"

reach CP
reach NODE
ca=$(run CP 60 "telling its certificate authority's hash" "$here/../remote/ca.sh")
state=$(run NODE 60 "looking for a cluster" "$here/../remote/state.sh" "CA=$ca")
case $state in
begun)
	say "$NODE_NAME: has half joined: beginning again"
	run NODE 300 "undoing a join that did not end" "$here/../../ssh-nodes/remote/reset.sh"
	;;
other*) fail NODE "is in another cluster already (${state#other }). To take it, remove it there and run kubeadm reset on it. $again" ;;
esac

if [[ $state != ours ]]; then
	say "$NODE_NAME: joining"
	token=$(run CP 60 "making a join token" "$here/../remote/token.sh" "NODE=$NODE_NAME")
	trap 'run CP 60 "deleting a join token" "$here/../remote/token.sh" "DELETE=${token%%.*}"; rm -rf "$scratch"' EXIT
	run NODE 300 "joining" "$here/../remote/join.sh" "TOKEN=$token" "CA=$ca" "ENDPOINT=$ENDPOINT" "VERSION=$VERSION" "NAME=$NODE_NAME" \
		"INTERNAL=$INTERNAL" "TAINTS=$TAINTS" "POD_CIDR=$POD_CIDR" "PREFLIGHT=$PREFLIGHT"
fi
run CP 200 "waiting for $NODE_NAME to be Ready" "$here/../remote/ready.sh" "NODE=$NODE_NAME"
say "$NODE_NAME: Ready"
