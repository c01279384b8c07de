#!/usr/bin/env bash
# On the machine: undoes what joining a cluster has done. For a machine that is in none of ours, nothing: /var/lib/assay/cluster, which is written
# before anything is done, is what tells.
#
# Changes: the kubelet stops; containers, /etc/kubernetes, the kubelet's and etcd's data, CNI's files, interfaces, routes and packet filter rules of
#   Kubernetes are removed.
set -euo pipefail

note=/var/lib/assay/cluster
known=/var/lib/assay/cni-before

say() { printf '%s\n' "$*" >&2; }

# Rules of others stay: all of ours are in chains, or jump to chains, with these names.
clean_iptables() {
	local c rules
	for c in iptables iptables-legacy ip6tables ip6tables-legacy; do
		command -v "$c-save" >/dev/null || continue
		rules=$("$c-save" 2>/dev/null || true)
		if grep -qE 'KUBE-|CNI-|FLANNEL|cali' <<<"$rules"; then
			grep -vE 'KUBE-|CNI-|FLANNEL|cali' <<<"$rules" | "$c-restore" || say "rules of $c could not be removed"
		fi
	done
	if command -v nft >/dev/null; then
		nft list tables 2>/dev/null | grep -E ' (kube-proxy|kindnet|cni_hostport|kube-.*|flannel.*)$' | while read -r table; do
			nft delete "$table" || true # nft prints "table ip kindnet"
		done || true # none is there
	fi
	if command -v ipset >/dev/null; then
		for c in $(ipset list -n 2>/dev/null | grep '^KUBE-' || true); do ipset destroy "$c" || true; done
	fi
}

clean_network() {
	local link
	ip -o link show | awk -F '[ @:]+' '{print $2}' | while read -r link; do
		case $link in
		cni0 | flannel.* | kube-ipvs0 | vxlan.calico | cali* | nodelocaldns) ip link delete "$link" 2>/dev/null || true ;;
		esac
	done
	[[ -z $1 ]] || ip -4 route flush root "$1" 2>/dev/null || true # of the pods of other nodes
}

clean_files() {
	local f
	rm -rf /etc/kubernetes /var/lib/kubelet /var/lib/etcd /var/lib/cni /run/cni-ipam-state /run/flannel /etc/assay/kubeadm-patches /run/assay \
		/var/log/pods /var/log/containers
	for f in /etc/cni/net.d/* /etc/cni/net.d/.[!.]*; do
		[[ ! -e $f ]] || grep -qsxF "${f##*/}" "$known" || rm -rf "$f"
	done
}

main() {
	[[ -e $note ]] || return 0
	local pods
	pods=$(sed -n 's/^pods //p' "$note")
	if [[ -e /etc/kubernetes ]]; then
		timeout 180 kubeadm reset --force --cri-socket unix:///run/containerd/containerd.sock >/run/assay-reset.log 2>&1 || {
			tail -n 20 /run/assay-reset.log >&2
			say "kubeadm reset failed; cleaning up nevertheless"
		}
		rm -f /run/assay-reset.log
	fi
	systemctl stop kubelet 2>/dev/null || true
	systemctl reset-failed kubelet 2>/dev/null || true
	clean_files
	clean_network "$pods"
	clean_iptables
	rm -f "$known" "$note" # last: until here, it is to be done again
}

main </dev/null
