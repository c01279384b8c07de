#!/usr/bin/env bash
# Writes the administrator's kubeconfig to KUBECONFIG_FILE, readable by its owner alone.
#
# Inputs (environment): CP_* and SSH_*, see ssh-nodes/scripts/lib.sh; KUBECONFIG_FILE; SERVER, the API server as seen from here; CLUSTER, its name.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../ssh-nodes/scripts/lib.sh
. "$here/../../ssh-nodes/scripts/lib.sh"

umask 077
reach CP
run CP 60 "reading its kubeconfig" "$here/../remote/kubeconfig.sh" >"$scratch/kubeconfig"
grep -q 'client-key-data' "$scratch/kubeconfig" || fail CP "has no usable /etc/kubernetes/admin.conf. $again"
mkdir -p "$(dirname "$KUBECONFIG_FILE")"
sed "s#^\( *server: \).*#\1$SERVER#; s#kubernetes-admin@$CLUSTER#$CLUSTER#" "$scratch/kubeconfig" >"$KUBECONFIG_FILE.part"
mv "$KUBECONFIG_FILE.part" "$KUBECONFIG_FILE"
