#!/usr/bin/env bash
# On the control plane: applies the CNI plugin's manifest.
#
# Inputs (environment): MANIFEST, or else URL; POD_CIDR.
set -euo pipefail

main() {
	local text=$MANIFEST
	if [[ -z $text ]]; then
		text=$(curl -fsSL --retry 3 --max-time 60 "$URL") || {
			echo "refused: $URL cannot be had from here. Name a file in pod_network instead" >&2
			exit 1
		}
	fi
	export KUBECONFIG=/etc/kubernetes/admin.conf
	sed "s#10\.244\.0\.0/16#$POD_CIDR#g; s#{{ *\.PodSubnet *}}#$POD_CIDR#g" <<<"$text" |
		timeout 120 kubectl apply --server-side --force-conflicts -f - >/dev/null
}

main </dev/null
