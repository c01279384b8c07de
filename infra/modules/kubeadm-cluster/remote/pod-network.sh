#!/usr/bin/env bash
# On the control plane: applies the CNI plugin's manifest.
#
# Inputs (environment): MANIFEST, or else URL, which may end in #sha256=CHECKSUM; POD_CIDR.
set -euo pipefail

main() {
	local file sum
	file=$(mktemp)
	# shellcheck disable=SC2064 # the name of now
	trap "rm -f '$file'" EXIT
	if [[ -n $MANIFEST ]]; then
		printf '%s\n' "$MANIFEST" >"$file"
	else
		curl -fsSL --retry 3 --max-time 60 "${URL%%#*}" >"$file" || {
			echo "refused: ${URL%%#*} cannot be had from here. Name a file in pod_network instead" >&2
			exit 1
		}
		sum=$(sha256sum <"$file")
		if [[ $URL = *#sha256=* && ${sum%% *} != "${URL##*#sha256=}" ]]; then
			echo "refused: ${URL%%#*} has the SHA-256 checksum ${sum%% *}, and pod_network names ${URL##*#sha256=}" >&2
			exit 1
		fi
	fi
	export KUBECONFIG=/etc/kubernetes/admin.conf
	sed "s#10\.244\.0\.0/16#$POD_CIDR#g; s#{{ *\.PodSubnet *}}#$POD_CIDR#g" "$file" |
		timeout 120 kubectl apply --server-side --force-conflicts -f - >/dev/null
}

main </dev/null
