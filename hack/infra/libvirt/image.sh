#!/usr/bin/env bash
# Makes a disk image that boots by BIOS and reads cloud-init's NoCloud disk, as a cloud's image does, from Debian packages alone: where no image can be
# downloaded.
#
# usage: image.sh
# Output: the path of image.qcow2, in ASSAY_CACHE, under the hash of this script.
# Changes on the machine: Debian packages (below), ASSAY_CACHE.
#
#   MBR (syslinux' own) -> partition 1, FAT: syslinux, kernel, initrd -> partition 2, ext4: Debian
#
# Two partitions because each file system is then filled without being mounted: mcopy, mkfs.ext4 -d.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

out=$ASSAY_CACHE/libvirt/$(sha256sum "${BASH_SOURCE[0]}" | cut -c1-12)
if [[ -e $out/image.qcow2 ]]; then
	echo "$out/image.qcow2"
	exit
fi
packages debootstrap=debootstrap mcopy=mtools syslinux=syslinux sfdisk=fdisk mkfs.vfat=dosfstools mkfs.ext4=e2fsprogs qemu-img=qemu-utils
# No command, hence a name that no command has.
[[ -e /usr/lib/syslinux/mbr/mbr.bin ]] || packages syslinux/mbr.bin=syslinux-common

scratch=$out.part
rm -rf "$scratch"
mkdir -p "$scratch"
root=$scratch/root

# python3-cffi-backend is there under a name that cloud-init's dependencies only mean: debootstrap does not see that.
say "debootstrap $DEBIAN_SUITE (some minutes), log in $scratch/log"
timeout 1500 nice debootstrap --variant=minbase \
	--include=linux-image-cloud-amd64,systemd-sysv,cloud-init,python3-cffi-backend,openssh-server,sudo,iproute2,netplan.io \
	"$DEBIAN_SUITE" "$root" >"$scratch/log" 2>&1 || die "debootstrap failed, see $scratch/log"

# Only the disk that the platform gives; no waiting for metadata services.
cat >"$root/etc/cloud/cloud.cfg.d/90-assay.cfg" <<-'END'
	datasource_list: [NoCloud, None]
END
cat >"$root/etc/fstab" <<-'END'
	/dev/vda2 / ext4 errors=remount-ro 0 1
END
rm -f "$root"/etc/ssh/ssh_host_*_key* "$root"/var/cache/apt/archives/*.deb
: >"$root/etc/machine-id"

kernels=("$root"/boot/vmlinuz-*)
initrds=("$root"/boot/initrd.img-*)
cat >"$scratch/syslinux.cfg" <<-'END'
	SERIAL 0 115200
	DEFAULT linux
	PROMPT 0
	TIMEOUT 0
	LABEL linux
	  KERNEL vmlinuz
	  APPEND initrd=initrd.img root=/dev/vda2 rw console=ttyS0,115200 net.ifnames=0
END

boot_mib=160 root_mib=1700
truncate -s ${boot_mib}M "$scratch/boot.img"
mkfs.vfat -F 32 "$scratch/boot.img" >/dev/null
mcopy -i "$scratch/boot.img" "${kernels[-1]}" ::vmlinuz
mcopy -i "$scratch/boot.img" "${initrds[-1]}" ::initrd.img
mcopy -i "$scratch/boot.img" "$scratch/syslinux.cfg" ::syslinux.cfg
syslinux --install "$scratch/boot.img"

truncate -s ${root_mib}M "$scratch/root.img"
mkfs.ext4 -q -d "$root" "$scratch/root.img"

truncate -s $((boot_mib + root_mib + 2))M "$scratch/disk.img"
sfdisk -q "$scratch/disk.img" <<-END
	label: dos
	start=1MiB, size=${boot_mib}MiB, type=c, bootable
	start=$((boot_mib + 1))MiB, size=${root_mib}MiB, type=83
END
dd if=/usr/lib/syslinux/mbr/mbr.bin of="$scratch/disk.img" conv=notrunc status=none
dd if="$scratch/boot.img" of="$scratch/disk.img" bs=1M seek=1 conv=notrunc,sparse status=none
dd if="$scratch/root.img" of="$scratch/disk.img" bs=1M seek=$((boot_mib + 1)) conv=notrunc,sparse status=none
qemu-img convert -q -c -O qcow2 "$scratch/disk.img" "$scratch/image.qcow2"

rm -rf "$root" "$scratch"/{boot,root,disk}.img
rm -rf "$out"
mv "$scratch" "$out"
echo "$out/image.qcow2"
