#!/bin/sh
# Creates the disk of a box. Run as root, in a separate mount namespace.
# usage: image.sh FOLDER SUITE PACKAGES SIZE MIRROR
set -eu
folder=$1 suite=$2 packages=$3 size=$4 mirror=$5
root=$folder/root
export DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin QEMU_CPU=cortex-a53
export INITRD=No # an initrd with every module takes minutes; a smaller initrd is made below

debootstrap --arch=arm64 --variant=minbase --include="$packages" "$suite" "$root" "$mirror"

echo box >"$root/etc/hostname"
echo '127.0.0.1 localhost box' >"$root/etc/hosts"
install -d -m 0700 "$root/root/.ssh"
install -m 0600 "$folder/key.pub" "$root/root/.ssh/authorized_keys"

# On the emulated box, starting a program takes a second. Start only the services that the hub needs, without udev and
# networkd.
cat >"$root/etc/systemd/system/box-network.service" <<-END
	[Unit]
	DefaultDependencies=no
	Before=network.target
	[Service]
	Type=oneshot
	ExecStart=/sbin/ip -batch /etc/box-network
	[Install]
	WantedBy=sysinit.target
END
printf '%s\n' 'link set eth0 up' 'address add 10.0.2.15/24 dev eth0' 'route add default via 10.0.2.2' >"$root/etc/box-network"
printf 'UsePAM no\n' >"$root/etc/ssh/sshd_config.d/box.conf"
chroot "$root" systemctl enable box-network.service
chroot "$root" systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
	fstrim.timer systemd-tmpfiles-clean.timer e2scrub_reap.service getty.target ldconfig.service \
	modprobe@configfs.service modprobe@drm.service modprobe@efi_pstore.service modprobe@fuse.service \
	dev-hugepages.mount dev-mqueue.mount run-lock.mount sys-fs-fuse-connections.mount sys-kernel-config.mount \
	sys-kernel-debug.mount sys-kernel-tracing.mount proc-sys-fs-binfmt_misc.automount \
	kmod-static-nodes.service systemd-binfmt.service systemd-hwdb-update.service systemd-modules-load.service \
	systemd-network-generator.service systemd-networkd-persistent-storage.service systemd-networkd.service \
	systemd-networkd.socket systemd-networkd-wait-online.service systemd-pstore.service \
	systemd-tmpfiles-setup-dev-early.service systemd-tmpfiles-setup-dev.service systemd-udev-load-credentials.service \
	systemd-udev-trigger.service systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket
mkdir -p "$root/etc/systemd/system-generators"
for each in "$root"/usr/lib/systemd/system-generators/*; do
	ln -s /dev/null "$root/etc/systemd/system-generators/${each##*/}"
done
# Mark the first-boot tasks as done.
chroot "$root" systemd-machine-id-setup
touch "$root/etc/.updated" "$root/var/.updated"

# An initrd with only the needed modules starts faster.
printf 'MODULES=list\nCOMPRESS=gzip\n' >"$root/etc/initramfs-tools/conf.d/box"
printf '%s\n' virtio_pci virtio_blk virtio_net ext4 >"$root/etc/initramfs-tools/modules"
scripts=$root/etc/initramfs-tools/scripts # replaces udev's scripts
mkdir -p "$scripts/init-top" "$scripts/init-bottom"
printf '#!/bin/sh\n' >"$scripts/init-top/udev"
printf '#!/bin/sh\n[ "${1-}" = prereqs ] || mount -n -o move /dev "$rootmnt/dev"\n' >"$scripts/init-bottom/udev"
chmod 0755 "$scripts"/*/udev
chroot "$root" update-initramfs -c -k all
rm -f "$root"/var/cache/apt/archives/*.deb

cp "$root"/boot/vmlinuz-* "$folder/kernel"
cp "$root"/boot/initrd.img-* "$folder/initrd"
truncate -s "$size" "$folder/disk"
mkfs.ext4 -q -F -e remount-ro -d "$root" "$folder/disk"
rm -rf "$root"
