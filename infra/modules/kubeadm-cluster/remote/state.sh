#!/usr/bin/env bash
# On a machine: in which cluster is it? Prints one of
#   none           in none
#   begun          a join or init of ours was begun and not ended
#   ours           it is in the cluster whose certificate authority's hash is CA (or, with no CA, is a control plane that we made)
#   other SERVER   it is in another cluster, or half in one
#
# Input (environment): CA.
set -euo pipefail

note=/var/lib/assay/cluster

server() { sed -n 's/^ *server: *//p' /etc/kubernetes/kubelet.conf /etc/kubernetes/admin.conf 2>/dev/null | head -n 1; }

main() {
	if [[ ! -e $note ]]; then
		if [[ -e /etc/kubernetes/kubelet.conf || -e /etc/kubernetes/pki/ca.crt || -e /etc/kubernetes/admin.conf ]]; then
			echo "other $(server)"
		else
			echo none
		fi
	elif ! grep -qx ended "$note"; then
		echo begun
	elif [[ -z $CA && -e /etc/kubernetes/admin.conf ]]; then
		if timeout 60 kubectl --kubeconfig /etc/kubernetes/admin.conf get --raw /readyz >/dev/null 2>&1; then echo ours; else echo begun; fi
	elif [[ -n $CA && $(sed -n 's/^ca //p' "$note") = "$CA" ]]; then
		echo ours
	else
		echo "other $(server)"
	fi
}

main </dev/null
