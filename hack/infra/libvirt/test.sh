#!/usr/bin/env bash
# go test of infra/test/libvirt, with a libvirt daemon of its own: in new mount and network namespaces, so that neither the machine's libvirt, if it has
# one, nor its packet filter notices.
#
# usage: test.sh [FLAG of go test]...
# Input (environment): ASSAY_LIBVIRT_TYPE is qemu, which emulates the processor and runs anywhere, or kvm. (qemu)
# Status: go test's.
# Changes on the machine: Debian packages (libvirt, qemu, and those of image.sh), ASSAY_CACHE. The packages' own daemons are not started.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

if [[ ${1:-} != --inside ]]; then
	[[ $(id -u) = 0 ]] || die "the libvirt lane needs root, for namespaces and packages"
	eval "$("$hack/without-registry/terraform/providers.sh" libvirt)"
	image=$("$hack/infra/libvirt/image.sh")
	# As on a machine without an init: what is installed must not start itself.
	if ! has libvirtd || ! has virsh || ! has mkisofs || ! has dnsmasq; then
		policy=/usr/sbin/policy-rc.d
		if [[ ! -e $policy ]]; then
			printf '#!/bin/sh\nexit 101\n' >"$policy"
			chmod +x "$policy"
			trap 'rm -f "$policy"' EXIT
		fi
		packages mkisofs=genisoimage dnsmasq=dnsmasq-base libvirtd=libvirt-daemon virsh=libvirt-clients qemu-system-x86_64=qemu-system-x86 qemu-img=qemu-utils
	fi
	test -e /usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so || packages libvirt-driver-qemu=libvirt-daemon-driver-qemu
	export ASSAY_LIBVIRT_IMAGE=$image
	unshare --mount --net --pid --fork --kill-child "${BASH_SOURCE[0]}" --inside "$@"
	exit
fi
shift

# ---- in the namespaces; everything started here ends with them.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mount --make-rprivate /
mount -t proc proc /proc
mount -t sysfs sysfs /sys # the network interfaces of here
mkdir -p "$dir"/{etc,lib,run,cache,log} /etc/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt /run/libvirt
cp -a /etc/libvirt/. "$dir/etc/"
for pair in etc:/etc/libvirt lib:/var/lib/libvirt run:/run/libvirt cache:/var/cache/libvirt log:/var/log/libvirt; do
	mount --bind "$dir/${pair%%:*}" "${pair#*:}"
done
# libvirt looks up the user of its packages before it reads here that it is to be root.
for file in passwd group; do
	cp "/etc/$file" "$dir/$file"
	grep -q ^libvirt-qemu: "$dir/$file" || case $file in
	passwd) echo 'libvirt-qemu:x:64055:64055::/:/usr/sbin/nologin' ;;
	group) printf 'libvirt-qemu:x:64055:\n' ;;
	esac >>"$dir/$file"
	mount --bind "$dir/$file" "/etc/$file"
done
grep -q ^kvm: /etc/group || echo 'kvm:x:64056:' >>"$dir/group"
# As root, since the disks lie in folders of root's; without what this kernel or machine may lack.
cat >/etc/libvirt/qemu.conf <<-'END'
	user = "root"
	group = "root"
	dynamic_ownership = 0
	remember_owner = 0
	security_driver = "none"
	namespaces = []
	cgroup_controllers = []
	stdio_handler = "file"
END
printf 'auth_unix_rw = "none"\nauth_unix_ro = "none"\n' >/etc/libvirt/libvirtd.conf
rm -rf /etc/libvirt/qemu/networks/autostart
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward

libvirtd --config /etc/libvirt/libvirtd.conf >"$dir/log/libvirtd.out" 2>&1 &
daemon=$!
for ((i = 0; i < 120; i++)); do
	if virsh -c qemu:///system version >/dev/null 2>&1 || ! kill -0 "$daemon" 2>/dev/null; then break; fi
	sleep 1
done
virsh -c qemu:///system version >&2 || {
	cat "$dir/log/libvirtd.out" >&2
	die "libvirtd does not answer"
}

cd "$repo"
export ASSAY_LIBVIRT_TYPE=${ASSAY_LIBVIRT_TYPE:-qemu}
status=0
ASSAY_LIBVIRT=1 go test -count=1 -timeout=35m "$@" ./infra/test/libvirt || status=$?
[[ $status = 0 ]] || tail -n 40 "$dir/log/libvirtd.out" "$dir"/log/qemu/*.log >&2 || true
exit "$status"
