#!/usr/bin/env bash
# On the machine: undoes prepare.sh. Packages that it installed are removed.
set -euo pipefail

# Under all their names, also the one that the CRI plugin gives them, which is a digest.
remove_images() {
	local list digest name f
	list=$(ctr -n k8s.io images ls 2>/dev/null)
	for f in /var/lib/assay/images/*; do
		[[ -e $f ]] || continue
		while read -r name; do
			digest=$(awk -v n="$name" '$1 == n { print $3 }' <<<"$list")
			[[ -z $digest ]] || awk -v d="$digest" '$3 == d { print $1 }' <<<"$list" | xargs -r ctr -n k8s.io images rm >/dev/null 2>&1
		done <"$f"
	done
}

main() {
	local packages=()
	if [[ -d /var/lib/assay/images ]]; then remove_images; fi
	if [[ -x /usr/local/lib/assay/machine.sh ]]; then /usr/local/lib/assay/machine.sh restore; fi
	systemctl disable --now --quiet assay-machine.service 2>/dev/null || true
	rm -f /etc/systemd/system/assay-machine.service /etc/chrony/sources.d/assay.sources
	if [[ -e /etc/systemd/system/containerd.service.d/90-assay.conf ]]; then
		rm -f /etc/systemd/system/containerd.service.d/90-assay.conf
		rmdir --ignore-fail-on-non-empty /etc/systemd/system/containerd.service.d
		systemctl daemon-reload
		systemctl try-restart containerd
	fi
	if [[ -e /var/lib/assay/packages ]]; then
		mapfile -t packages < <(sort -u /var/lib/assay/packages)
		apt-mark unhold kubelet kubeadm >/dev/null || true
		DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 purge -y "${packages[@]}" >/dev/null
		rm -f /etc/apt/sources.list.d/{kubernetes,containerd}.list /etc/apt/keyrings/{kubernetes,containerd}.asc
	fi
	systemctl daemon-reload
	rm -rf /usr/local/lib/assay /etc/assay /var/lib/assay /var/log/assay-kubeadm.log
}

main </dev/null
