#!/bin/sh
# Installs, upgrades, rolls back and removes Lares, on systems with systemd and on OpenWrt. Configuration and data stay.
set -eu

usage() {
	cat <<-'END'
		usage: install.sh [install] [FILE]    install lares.pyz, or upgrade to it (FILE: the one beside this script)
		       install.sh rollback            go back to the version before, or forth again
		       install.sh uninstall           remove the program; configuration and data stay
		       install.sh uninstall --purge   remove these too
	END
}

say() { echo "lares: $*"; }

fail() {
	echo "lares: $*" >&2
	exit 1
}

HOME_DIR=/opt/lares
CONFIG_DIR=/etc/lares
CURRENT=$HOME_DIR/lares.pyz
PREVIOUS=$HOME_DIR/lares.previous.pyz
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
trap 'if [ -n "$SCRATCH" ]; then rm -rf "$SCRATCH"; fi; rm -f "$NEW"' EXIT
trap 'exit 130' HUP INT TERM

scratch() {
	if [ -z "$SCRATCH" ]; then
		SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/lares-install.XXXXXX") || fail "cannot make a folder in ${TMPDIR:-/tmp}"
	fi
}

# Run a file, unpacked to a folder of its own that goes with this script: nothing of root's lands on the card.
try() {
	STATE_DIRECTORY=$SCRATCH CACHE_DIRECTORY='' LARES_DATA_DIR='' "$PYTHON" "$@"
}

# The first Python here that the file fits; else what the file itself says about the last.
find_python() {
	said="there is no Python 3 here, install it (OpenWrt: opkg install python3, newer ones: apk add python3)"
	for name in python3 python3.14 python3.13 python3.12 python3.11; do
		PYTHON=$(command -v "$name") || continue
		if said=$(try "$1" --version 2>&1); then
			return
		fi
	done
	fail "${said#lares: }"
}

# extract FILE PART TARGET: write what the file holds under PART to TARGET, never over what is there.
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

# put FILE PART TARGET MODE: have the part as the target, in the place of any old one.
put() {
	rm -f "$3.new"
	extract "$1" "$2" "$3.new"
	[ -s "$3.new" ] || fail "$1 holds no $2"
	chmod "$4" "$3.new"
	mv -f "$3.new" "$3"
}

# A box that has no such user yet has never had Lares.
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
	if [ ! -e "$CONFIG_DIR/config/default.toml" ]; then
		IS_NEW=yes
	fi
	mkdir -p "$CONFIG_DIR/config" "$DATA_DIR"
	if [ ! -e "$CONFIG_DIR/config/default.toml" ]; then
		extract "$1" site-packages/appliance/bundled/ "$CONFIG_DIR/config/"
		say "the configuration is in $CONFIG_DIR/config"
	fi
	# The hub reads what people write there, and nobody else does: it may hold the master key. Later on owner and mode
	# are the owner's affair; `check` names what the hub could not read.
	if [ -n "$IS_NEW" ]; then
		chown -R root:lares "$CONFIG_DIR"
		chmod -R u+rwX,g+rX,g-w,o-rwx "$CONFIG_DIR"
	fi
	chown lares:lares "$DATA_DIR"
	chmod 0700 "$DATA_DIR"
}

# The program on the path, and the service, as the file that is installed now wants them.
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
			"$DATA_DIR/*.json" "$DATA_DIR/first-key" "$KEEP" >"$KEEP"
	else
		put "$CURRENT" firmware/systemd/lares.service "$SERVICE" 0644
		if [ -d /etc/avahi/services ]; then
			put "$CURRENT" firmware/avahi/lares.service /etc/avahi/services/lares.service 0644
		fi
	fi
}

is_running_systemd() { [ -d /run/systemd/system ] && command -v systemctl >/dev/null; }

# Start the version that is installed now; fails if it does not come up.
start() {
	if [ "$KIND" = openwrt ]; then
		"$SERVICE" enable
		"$SERVICE" restart
		wait_for_health
	elif is_running_systemd; then
		systemctl daemon-reload
		systemctl enable --quiet lares.service
		systemctl restart lares.service # returns when the hub has said that it is ready
	else
		say "systemd does not run here; once it does: systemctl enable --now lares"
	fi
}

# procd does not wait for what it starts. The hub is asked where its configuration says that it answers.
wait_for_health() {
	"$PYTHON" -I - "$CONFIG_DIR/config/default.toml" <<-'END'
		import http.client, sys, time, tomllib
		with open(sys.argv[1], encoding="utf-8-sig") as file:
		    address = tomllib.loads(file.read()).get("api", {}).get("bind_address", "127.0.0.1:3000")
		host, _, port = address.rpartition(":")
		host = {"0.0.0.0": "127.0.0.1", "[::]": "::1"}.get(host, host.strip("[]"))
		for attempt in range(120):
		    try:
		        connection = http.client.HTTPConnection(host, int(port), timeout=2)
		        connection.request("GET", "/health")
		        if connection.getresponse().status == 200:
		            sys.exit(0)
		    except (OSError, http.client.HTTPException):
		        host = "127.0.0.1" if host == "::1" and attempt % 2 else host
		    time.sleep(1)
		sys.exit(f"lares: nothing answers at {address}")
	END
}

stop() {
	if [ "$KIND" = openwrt ]; then
		[ ! -x "$SERVICE" ] || { "$SERVICE" stop && "$SERVICE" disable; } || true
	elif is_running_systemd; then
		systemctl disable --quiet --now lares.service || true
	fi
}

# What root's commands have unpacked is of the version before; the next of them unpacks its own.
forget_unpacked() { rm -rf "$HOME_DIR/program"; }

# Make the current file the one before, and the one before, if there is one, the current.
swap() {
	mv -f "$PREVIOUS" "$NEW"
	mv -f "$CURRENT" "$PREVIOUS"
	mv -f "$NEW" "$CURRENT"
	forget_unpacked
	sync
}

version() { try "$1" --version | sed -n 's/^lares //p'; }

# Whether the version can use the configuration; 78 is its way to say that it has faults.
check() {
	code=0
	try "$1" check --config "$CONFIG_DIR/config/default.toml" --data-dir "$DATA_DIR" >"$SCRATCH/said" 2>&1 || code=$?
	[ "$code" -eq 0 ] || cat "$SCRATCH/said" >&2
	case $code in
	0) grep '^warning: ' "$SCRATCH/said" >&2 || true ;;
	78) fail "the configuration has faults, see above; nothing was changed" ;;
	*) fail "the configuration could not be checked (exit code $code), see above; nothing was changed" ;;
	esac
}

install() {
	file=$1
	[ -f "$file" ] || fail "there is no $file; name the file to install"
	scratch
	find_python "$file"
	make_user
	make_folders "$file"
	check "$file"
	mkdir -p "$HOME_DIR"
	if [ -f "$CURRENT" ] && cmp -s "$file" "$CURRENT"; then
		make_service
		start || fail "the service does not start; its log says why"
		say "$(version "$CURRENT") was installed already"
		return
	fi
	cp "$file" "$NEW"
	chmod 0755 "$NEW"
	sync
	[ ! -f "$CURRENT" ] || mv -f "$CURRENT" "$PREVIOUS"
	mv -f "$NEW" "$CURRENT"
	forget_unpacked
	sync
	make_service
	if start; then
		say "$(version "$CURRENT") is installed"
	elif [ -f "$PREVIOUS" ]; then
		rollback
		fail "the new version did not start, its log says why; $(version "$CURRENT") runs again"
	else
		fail "it is installed and does not start; its log says why"
	fi
}

rollback() {
	[ -f "$PREVIOUS" ] || fail "there is no version before this one"
	scratch
	find_python "$PREVIOUS"
	swap
	make_service
	start || fail "the version before does not start either; its log says why"
	say "$(version "$CURRENT") is installed again; install.sh rollback undoes this"
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
		say "nothing is left behind"
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
[ "$(id -u)" -eq 0 ] || fail "this changes the system: run it as root (sudo sh $0 $*)"
command=${1-install}
[ $# -eq 0 ] || shift
[ $# -le 1 ] || { usage >&2 && exit 64; }
case $command in
install) install "${1-$(dirname "$0")/lares.pyz}" ;;
rollback) rollback ;;
uninstall) uninstall "$@" ;;
esac
