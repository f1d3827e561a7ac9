#!/bin/sh
# Makes the disk of a box: image.sh FOLDER SUITE PACKAGES SIZE MIRROR, in a mount namespace of its own, as root.
set -eu
folder=$1 suite=$2 packages=$3 size=$4 mirror=$5
root=$folder/root
export DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin QEMU_CPU=cortex-a53
export INITRD=No # of every module: it would be made in minutes, and made anew below

debootstrap --arch=arm64 --variant=minbase --include="$packages" "$suite" "$root" "$mirror"

echo box >"$root/etc/hostname"
echo '127.0.0.1 localhost box' >"$root/etc/hosts"
echo '/dev/vda / ext4 defaults,errors=remount-ro 0 1' >"$root/etc/fstab"
printf '[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n' >"$root/etc/systemd/network/box.network"
install -d -m 0700 "$root/root/.ssh"
install -m 0600 "$folder/key.pub" "$root/root/.ssh/authorized_keys"
chroot "$root" systemctl enable systemd-networkd
chroot "$root" systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
	fstrim.timer e2scrub_reap.service getty@tty1.service serial-getty@ttyAMA0.service ldconfig.service \
	systemd-hwdb-update.service systemd-networkd-wait-online.service
# What a first boot does once took place already.
chroot "$root" systemd-machine-id-setup
touch "$root/etc/.updated" "$root/var/.updated"

# An initrd of what this machine needs starts quicker than one of every module.
printf 'MODULES=list\nCOMPRESS=gzip\n' >"$root/etc/initramfs-tools/conf.d/box"
printf '%s\n' virtio_pci virtio_blk virtio_net ext4 >"$root/etc/initramfs-tools/modules"
chroot "$root" update-initramfs -c -k all
rm -f "$root"/var/cache/apt/archives/*.deb

cp "$root"/boot/vmlinuz-* "$folder/kernel"
cp "$root"/boot/initrd.img-* "$folder/initrd"
truncate -s "$size" "$folder/disk"
mkfs.ext4 -q -F -d "$root" "$folder/disk"
rm -rf "$root"
