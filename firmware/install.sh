#!/bin/sh
# Installs, upgrades, rolls back, and removes Lares on systems with systemd and on OpenWrt. Configuration and data are
# never removed. `lares upgrade FILE` runs this script from within the new file, and `lares upgrade --rollback` from
# within the current file or, if this file is damaged, from within the previous file. The exit codes are defined in
# sysexits.h.
set -eu

usage() {
	cat <<-'END'
		usage: install.sh [install] [FILE]    install or upgrade (default: lares.pyz next to this script)
		       install.sh rollback            restore the previous version; again: return to the newer one
		       install.sh uninstall           remove the program; configuration and data stay
		       install.sh uninstall --purge   remove these too
	END
}

say() { echo "lares: $*"; }

# fail CODE MESSAGE
fail() {
	code=$1
	shift
	echo "lares: $*" >&2
	exit "$code"
}

HOME_DIR=/opt/lares
CONFIG_DIR=/etc/lares
CURRENT=$HOME_DIR/lares.pyz
PREVIOUS=$HOME_DIR/lares.previous.pyz
OLDER=$HOME_DIR/lares.older.pyz
NEW=$HOME_DIR/lares.new.pyz
KEEP=/lib/upgrade/keep.d/lares

if [ -f /etc/openwrt_release ]; then
	KIND=openwrt PROGRAM=/usr/bin/lares DATA_DIR=/srv/lares SERVICE=/etc/init.d/lares
else
	KIND=systemd PROGRAM=/usr/local/bin/lares DATA_DIR=/var/lib/lares SERVICE=/etc/systemd/system/lares.service
fi

SCRATCH=
PYTHON=
IS_NEW=
IS_LOCKED=${LARES_UPGRADE_IS_LOCKED-}
IS_UNFINISHED= # the change of the version must be undone unless it finishes
PYTHONS="python3 python3.14 python3.13 python3.12 python3.11"
MISSING="Python 3 is missing; install it (OpenWrt: opkg install python3, newer ones: apk add python3)"
READY_SECS=180 # the first start of a version unpacks the file, which takes time on a slow card
DOWN_SECS=10   # procd starts a failed hub again after five seconds, so this is the second failure
trap finish EXIT
trap 'exit 130' HUP INT TERM

# Undo an unfinished change of the version, even if the change was interrupted, and remove temporary files.
finish() {
	code=$?
	set +e
	if [ -n "$IS_UNFINISHED" ]; then
		(set -e && undo) # `fail` ends only the subshell
	fi
	case $code in
	0 | 6? | 7? | 130) ;;
	*) # a command such as cp failed, and has printed the reason
		code=73
		echo "lares: $command failed because of the error above; if the disk is full, free some space and try again" >&2
		;;
	esac
	if [ -n "$IS_LOCKED" ]; then
		settle_older
		rm -f "$NEW" "$NEW.part" "$OLDER.part" "$PROGRAM.new" "$SERVICE.new" "$KEEP.new"
	fi
	rm -rf "$SCRATCH"
	exit "$code"
}

scratch() {
	if [ -z "$SCRATCH" ]; then
		SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/lares-install.XXXXXX") || fail 73 "cannot make a folder in ${TMPDIR:-/tmp}"
	fi
}

# Run the single file with a temporary folder for its unpacked files.
try() {
	STATE_DIRECTORY=$SCRATCH CACHE_DIRECTORY='' LARES_DATA_DIR='' "$PYTHON" "$@"
}

# Find the first Python that can run the file. If no Python can run the file, fail with the error message of the last
# attempt.
find_python() {
	said=$MISSING
	for name in $PYTHONS; do
		PYTHON=$(command -v "$name") || continue
		if said=$(try "$1" --version 2>&1); then
			case $said in
			*"lares "*) return ;;
			esac
			fail 65 "$1 is damaged, or not a lares.pyz; nothing was changed"
		fi
	done
	fail 69 "${said#lares: }"
}

# Print the path of a Python that can run commands without Lares.
find_any_python() {
	for name in $PYTHONS; do
		! command -v "$name" || return 0
	done
}

# Fail if another process installs, upgrades, or rolls back. If `lares upgrade` runs this script, the lock is already
# held as descriptor 9.
lock() {
	if [ -z "$IS_LOCKED" ]; then
		exec 9<"$HOME_DIR"
		"$(find_any_python)" -I -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)' 2>/dev/null ||
			fail 75 "another upgrade in $HOME_DIR is in progress; wait until it has ended"
		IS_LOCKED=yes
	fi
}

# Make the older version the previous one if the current version was replaced. Otherwise, delete the older version. After
# a failure or a power cut, this keeps the version for `rollback`. `lares upgrade` has the same steps in `_replace`.
settle_older() {
	if [ -f "$OLDER" ]; then
		if cmp -s "$OLDER" "$CURRENT"; then
			rm -f "$OLDER"
		else
			mv -f "$OLDER" "$PREVIOUS"
		fi
	fi
}

# extract FILE PART TARGET: write the files below PART in the archive FILE to TARGET, without overwriting existing
# files.
extract() {
	"$PYTHON" -I - "$@" <<-'END'
		import os, sys, zipfile
		file, part, target = sys.argv[1:]
		with zipfile.ZipFile(file) as archive:
		    for name in archive.namelist():
		        path = target + name[len(part):]
		        if name.startswith(part) and not os.path.lexists(path):
		            os.makedirs(os.path.dirname(path), exist_ok=True)
		            with open(path, "wb") as stream:
		                stream.write(archive.read(name))
	END
}

# put FILE PART TARGET MODE: replace TARGET with the file PART of the archive FILE.
put() {
	rm -f "$3.new"
	extract "$1" "$2" "$3.new"
	[ -s "$3.new" ] || fail 65 "$1 contains no $2"
	chmod "$4" "$3.new"
	mv -f "$3.new" "$3"
}

# If this user does not exist, Lares has never been installed on this system.
make_user() {
	if grep -q '^lares:' /etc/passwd; then
		return
	fi
	IS_NEW=yes
	if command -v useradd >/dev/null; then
		useradd --system --user-group --home-dir "$DATA_DIR" --no-create-home --shell /bin/false lares
	else
		id=400
		while grep -q "^[^:]*:[^:]*:$id:" /etc/passwd /etc/group; do
			id=$((id + 1))
		done
		grep -q '^lares:' /etc/group || echo "lares:x:$id:" >>/etc/group
		echo "lares:x:$id:$id:Lares:$DATA_DIR:/bin/false" >>/etc/passwd
		[ ! -f /etc/shadow ] || echo 'lares:!:0:0:99999:7:::' >>/etc/shadow
	fi
}

remove_user() {
	if command -v userdel >/dev/null && grep -q '^lares:' /etc/passwd; then
		userdel lares || true
	fi
	for file in /etc/passwd /etc/shadow /etc/group /etc/gshadow; do
		if [ -f "$file" ] && grep -q '^lares:' "$file"; then
			sed -i '/^lares:/d' "$file"
		fi
	done
}

make_folders() {
	# If the hub owns a part of the configuration, the hub itself may have deleted the file. The folder is then not new:
	# `init` writes as the hub's user, and files that belong to root remain root's.
	if [ ! -e "$CONFIG_DIR/config/default.toml" ] && [ -z "$(find "$CONFIG_DIR" -user lares 2>/dev/null)" ]; then
		IS_NEW=yes
	fi
	mkdir -p "$CONFIG_DIR" "$DATA_DIR"
	if [ ! -e "$CONFIG_DIR/config/default.toml" ]; then
		try "$1" init "$CONFIG_DIR" >/dev/null || fail 73 "the configuration could not be written to $CONFIG_DIR/config"
		say "the configuration is in $CONFIG_DIR/config"
	fi
	# Only root and the hub may read the configuration, because it can contain the master key. The hub may write it, so
	# that the page can save files. The hub also owns the folder above, because `lares restore` renames the configuration
	# folder as the hub's user. After the first installation, the user may change the files' owner and mode. `check` lists
	# files that the hub cannot read. Without -h, BusyBox would also change the targets of links.
	if [ -n "$IS_NEW" ]; then
		chown -hR lares:lares "$CONFIG_DIR"
		chmod -R u+rwX,g+rX,g-w,o-rwx "$CONFIG_DIR"
	fi
	chown lares:lares "$DATA_DIR"
	chmod 0700 "$DATA_DIR"
}

# Write the command `lares` and the service definition for the current file.
make_service() {
	cat >"$PROGRAM.new" <<-END
		#!/bin/sh
		export LARES_CONFIG="\${LARES_CONFIG-$CONFIG_DIR/config/default.toml}" LARES_DATA_DIR="\${LARES_DATA_DIR-$DATA_DIR}"
		exec $PYTHON $CURRENT "\$@"
	END
	chmod 0755 "$PROGRAM.new"
	mv -f "$PROGRAM.new" "$PROGRAM"
	if [ "$KIND" = openwrt ]; then
		put "$CURRENT" firmware/openwrt/lares.init "$SERVICE" 0755
		printf '%s\n' "$CONFIG_DIR/" "$HOME_DIR/*.pyz" "$PROGRAM" "$SERVICE" "/etc/rc.d/*lares" \
			"$DATA_DIR/*.json" "$DATA_DIR/first-key" "$KEEP" >"$KEEP.new"
		mv -f "$KEEP.new" "$KEEP"
	else
		put "$CURRENT" firmware/systemd/lares.service "$SERVICE" 0644
		if [ -d /etc/avahi/services ]; then
			put "$CURRENT" firmware/avahi/lares.service /etc/avahi/services/lares.service 0644
		fi
	fi
}

is_running_systemd() { [ -d /run/systemd/system ] && command -v systemctl >/dev/null; }

# Start the current version. Fail if the version does not become ready.
start() {
	if [ "$KIND" = openwrt ]; then
		before=$(ask_hub)
		"$SERVICE" enable
		"$SERVICE" restart 9>&-
		wait_until_ready "${before% *}"
	elif is_running_systemd; then
		systemctl daemon-reload
		systemctl enable --quiet lares.service
		systemctl restart lares.service 9>&- # returns after READY=1
	else
		say "systemd is not running; enable the service once it runs: systemctl enable --now lares"
	fi
}

# Print the hub's process id and the HTTP status of /ready, for example "4711 200". Print nothing if no hub listens.
ask_hub() {
	"$PYTHON" -I - "$DATA_DIR/control.sock" <<-'END'
		import socket, struct, sys
		with socket.socket(socket.AF_UNIX) as hub:
		    hub.settimeout(10)
		    try:
		        hub.connect(sys.argv[1])
		        credentials = hub.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
		        hub.sendall(b"GET /ready HTTP/1.1\r\nHost: lares\r\nConnection: close\r\n\r\n")
		        print(struct.unpack("3i", credentials)[0], hub.recv(64).split()[1].decode())
		    except (OSError, IndexError):
		        pass
	END
}

# procd returns before the hub has started, and even before the old process has ended.
wait_until_ready() {
	second=0
	down=0
	while [ "$second" -lt "$READY_SECS" ] && [ "$down" -lt "$DOWN_SECS" ]; do
		case $(ask_hub) in
		"$1 "*) ;;
		*" 200") return ;;
		esac
		"$SERVICE" running || down=$((down + 1))
		sleep 1
		second=$((second + 1))
	done
	return 1
}

stop() {
	if [ "$KIND" = openwrt ]; then
		[ ! -x "$SERVICE" ] || { "$SERVICE" stop && "$SERVICE" disable; } || true
	elif is_running_systemd; then
		systemctl disable --quiet --now lares.service || true
	fi
}

# Remove the files that root's commands have unpacked, because these files belong to the other version.
forget_unpacked() { rm -rf "$HOME_DIR/program"; }

# link FILE NAME: link the file to a second name, or copy the file if the file system has no links. The copy is either
# complete or missing.
link() {
	rm -f "$2"
	ln "$1" "$2" 2>/dev/null || { cp "$1" "$2.part" && sync "$2.part" && mv -f "$2.part" "$2"; } || {
		rm -f "$2.part"
		return 1
	}
}

# replace FILE: make FILE the current version. At any moment, a current version exists.
replace() {
	mv -f "$1" "$CURRENT"
	sync "$HOME_DIR"
	forget_unpacked
}

# Run NEW, and keep the current version as OLDER. `finish` makes it the previous version, or calls `undo` unless NEW
# becomes ready. activate WORD: the word describes NEW in the error message.
activate() {
	sync "$NEW"
	settle_older
	if [ -f "$CURRENT" ]; then
		link "$CURRENT" "$OLDER"
		sync "$HOME_DIR"
		IS_UNFINISHED=yes
	fi
	replace "$NEW"
	make_service
	start || fail 69 "the $1 version did not become ready; see its log"
	IS_UNFINISHED=
}

# Run the replaced version again, and remove the failed version, also to free space on a full disk.
undo() {
	replace "$OLDER"
	find_python "$CURRENT"
	make_service
	start || fail 69 "$(version "$CURRENT") did not become ready either; see the log"
	case $command in
	install) say "the upgrade was undone; $(version "$CURRENT") runs again" >&2 ;;
	rollback) say "the rollback was undone; $(version "$CURRENT") runs again" >&2 ;;
	esac
}

version() { try "$1" --version | sed -n 's/^lares //p'; }

# Fail if the version does not accept the configuration.
check() {
	code=0
	try "$1" check --config "$CONFIG_DIR/config/default.toml" --data-dir "$DATA_DIR" >"$SCRATCH/said" 2>&1 || code=$?
	[ "$code" -eq 0 ] || cat "$SCRATCH/said" >&2
	case $code in
	0) grep '^warning: ' "$SCRATCH/said" >&2 || true ;;
	78) fail 78 "the configuration has faults, see above; nothing was changed" ;;
	*) fail 70 "the configuration could not be checked (exit code $code), see above; nothing was changed" ;;
	esac
}

install() {
	file=$1
	[ -f "$file" ] || fail 66 "there is no file $file; name the file to install"
	scratch
	find_python "$file"
	mkdir -p "$HOME_DIR"
	lock
	make_user
	make_folders "$file"
	check "$file"
	if [ -f "$CURRENT" ] && cmp -s "$file" "$CURRENT"; then
		make_service
		start || fail 69 "the hub did not become ready; see its log"
		say "$(version "$CURRENT") is already installed"
		return
	fi
	[ "$file" = "$NEW" ] || cp "$file" "$NEW"
	chmod 0755 "$NEW"
	activate new
	say "$(version "$CURRENT") is installed"
}

rollback() {
	[ -f "$PREVIOUS" ] || [ -f "$OLDER" ] || fail 66 "there is no previous version"
	scratch
	[ -n "$(find_any_python)" ] || fail 69 "$MISSING"
	lock
	settle_older
	find_python "$PREVIOUS"
	check "$PREVIOUS"
	link "$PREVIOUS" "$NEW"
	activate previous
	say "$(version "$CURRENT") is installed again; to undo this, roll back once more"
}

uninstall() {
	stop
	rm -f "$SERVICE" "$PROGRAM" /etc/avahi/services/lares.service "$KEEP"
	rm -f /etc/systemd/system/multi-user.target.wants/lares.service
	id=$(sed -n 's/^lares:[^:]*:\([0-9]*\):.*/\1/p' /etc/passwd)
	rm -rf "$HOME_DIR" "$DATA_DIR/program"
	for folder in /var/tmp /tmp /run; do
		rm -rf "$folder/lares-0" "$folder/lares-${id:-0}"
	done
	if is_running_systemd; then
		systemctl daemon-reload
	fi
	if [ "${1-}" = --purge ]; then
		rm -rf "$CONFIG_DIR" "$DATA_DIR" "$SERVICE.d"
		remove_user
		say "everything is removed"
	else
		say "removed; configuration and data are still in $CONFIG_DIR and $DATA_DIR"
	fi
}

case ${1-install} in
-h | --help) usage && exit ;;
install | rollback | uninstall) ;;
-*) usage >&2 && exit 64 ;;
*) set -- install "$@" ;;
esac
[ "$(id -u)" -eq 0 ] || fail 77 "permission denied; run it as root: sudo sh $0 $*"
command=${1-install}
[ $# -eq 0 ] || shift
[ $# -le 1 ] || { usage >&2 && exit 64; }
case $command in
install) install "${1-$(dirname "$0")/lares.pyz}" ;;
rollback) rollback ;;
uninstall) uninstall "$@" ;;
esac
