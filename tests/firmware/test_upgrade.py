"""`lares upgrade` on a box with systemd, on OpenWrt, and with a file that is started manually."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from appliance.cli.main import main
from appliance.cli.upgrade import _check_archive, _read_verified
from appliance.errors import StartFailed
from firmware.pack import seal
from tests.fakes.programs import need
from tests.firmware.conftest import ROOT, digest

DAMAGED = "is damaged, or not a lares.pyz of version 0.3.0 or later; download it again"
PARTS = ("install.sh", "systemd/lares.service", "openwrt/lares.init")
HUB = """
import os, socket, sys, zipfile
words, version, code, answer = sys.argv[1:], {version!r}, {code}, {answer!r}
if "upgrade" in words:
    real = (
        "import sys; sys.path[:0] = [{root!r}, sys.argv.pop(1)]; import lares_file; sys.argv[0] = sys.path[1];"
        "from appliance.cli.main import main; sys.exit(main())"
    )
    os.execv({python!r}, [{python!r}, "-P", "-c", real, os.path.dirname(os.path.abspath(__file__)), *words])
if "--version" in words:
    sys.exit(print("lares", version))
if "check" in words:
    sys.exit(print("default.toml:1: unknown section") or code if code else 0)
if "init" in words:
    folder = os.path.join(words[-1], "config")
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(sys.argv[0]) as archive, open(os.path.join(folder, "default.toml"), "wb") as file:
        file.write(archive.read("site-packages/appliance/bundled/default.toml"))
    sys.exit()
if not answer:
    sys.exit("lares: it ends")
place = os.path.join(os.environ["LARES_DATA_DIR"], "control.sock")
if os.path.exists(place):
    os.unlink(place)
hub = socket.socket(socket.AF_UNIX)
hub.bind(place)
hub.listen()
if "NOTIFY_SOCKET" in os.environ:
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
while True:
    client, _ = hub.accept()
    client.recv(4096)
    client.sendall(b"HTTP/1.1 " + answer.encode() + b"\\r\\n\\r\\n" + version.encode())
    client.close()
"""


def make_file(file: Path, version: str, *, code: int = 0, answer: str = "200 OK") -> Path:
    """Write a version whose `check` exits with the code, and whose hub answers each request with this text, or
    ends at once."""
    text = HUB.format(version=version, code=code, answer=answer, root=str(ROOT), python=sys.executable)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", text)
        archive.writestr("lares_file.py", "TARGETS = ('this',)\n")
        archive.write(ROOT / "config" / "default.toml", "site-packages/appliance/bundled/default.toml")
        for name in PARTS:
            archive.write(ROOT / "firmware" / name, f"firmware/{name}")
    seal(file)
    return file


def make_old_file(file: Path) -> Path:
    """Write a version before 0.3.0, which ends without a digest."""
    data = make_file(file, "0").read_bytes()[:-64]
    file.write_bytes(data[:-2] + bytes(2))  # the length of the comment
    return file


@dataclass(slots=True, kw_only=True)
class Machine:
    """The test's machine, with private copies of the folders that an installation changes."""

    keeper: int
    folder: Path
    data: str = "/var/lib/lares"

    def run(self, *command: str | Path, code: int = 0) -> str:
        """Run a command on the machine, and return its output."""
        done = subprocess.run(
            [
                "nsenter",
                f"--mount=/proc/{self.keeper}/ns/mnt",
                "env",
                "--default-signal=HUP,INT,TERM",
                f"--chdir={self.folder}",
                *command,
            ],
            env={"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def running(self) -> str:
        ask = (
            "import socket, sys; hub = socket.socket(socket.AF_UNIX); hub.connect(sys.argv[1]);"
            "hub.sendall(b'GET /'); print(hub.makefile().read().split()[-1])"
        )
        return self.run(sys.executable, "-c", ask, f"{self.data}/control.sock").strip()


LOCK = "python3 -c 'import fcntl; fcntl.flock(8, fcntl.LOCK_EX)';"
"""Locks descriptor 8 of a shell until the shell ends."""

PREPARE = """
mount -t tmpfs none "$0" || exit 99
for name in etc opt var srv run usr; do
    mkdir -p "$0/upper/$name" "$0/work/$name"
    mount -t overlay -o "lowerdir=/$name,upperdir=$0/upper/$name,workdir=$0/work/$name" none "/$name" || exit 99
done
echo ready
exec sleep 600
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    if os.geteuid() != 0:
        pytest.skip("needs root, to change into a root file system and create a user")
    (tmp_path / "layer").mkdir()
    (tmp_path / "home").mkdir()
    command = [need("unshare"), "--mount", "sh", "-c", PREPARE, str(tmp_path / "layer")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        try:
            if keeper.stdout.readline() != "ready\n":
                pytest.skip("no namespace can be made here")
            there = Machine(keeper=keeper.pid, folder=tmp_path / "home")
            yield there
            with suppress(AssertionError, ProcessLookupError):
                os.kill(int(there.run("cat", "/run/lares.pid")), signal.SIGKILL)
        finally:
            keeper.kill()


def install(machine: Machine, kind: str) -> None:
    """Install version 1 as a service of systemd or procd."""
    here = Path(__file__).parent
    if kind == "systemd":
        machine.run("mkdir", "-p", "/run/systemd/system")
        machine.run("install", here / "systemctl.py", "/usr/local/bin/systemctl")
    else:
        machine.data = "/srv/lares"
        machine.run("mkdir", "-p", "/etc/init.d", "/etc/rc.d", "/usr/lib/upgrade/keep.d")
        machine.run("touch", "/etc/openwrt_release")
        machine.run("install", here / "rc.common", "/etc/rc.common")
    old = make_file(machine.folder / "old.pyz", "1")
    assert "lares: 1 is installed\n" in machine.run("sh", ROOT / "firmware" / "install.sh", old)
    assert machine.running() == "1"


@pytest.mark.slow
def test_systemd_upgrades_rolls_back_and_keeps_the_running_version_if_the_other_one_fails(machine: Machine) -> None:
    install(machine, "systemd")
    new = make_file(machine.folder / "new.pyz", "2")
    (machine.folder / "new.pyz.sha256").write_text(f"{digest(new)}  lares.pyz\n")
    assert machine.run("lares", "upgrade", "new.pyz") == "new.pyz matches new.pyz.sha256\nlares: 2 is installed\n"
    assert machine.running() == "2"
    assert machine.run("ls", "/opt/lares").split() == ["lares.previous.pyz", "lares.pyz"]

    assert "lares: 1 is installed again" in machine.run("lares", "upgrade", "--rollback")
    assert machine.running() == "1"
    assert "lares: 2 is installed again" in machine.run("lares", "upgrade", "--rollback")

    make_file(machine.folder / "ends.pyz", "3", answer="")
    message = machine.run("lares", "upgrade", "ends.pyz", code=os.EX_UNAVAILABLE)
    assert "the new version did not become ready; see its log\nlares: the upgrade was undone; 2 runs again" in message
    assert machine.running() == "2"
    assert machine.run("ls", "/opt/lares").split() == ["lares.previous.pyz", "lares.pyz"]
    assert machine.run("python3", "/opt/lares/lares.previous.pyz", "--version") == "lares 1\n", "not the failed one"

    make_file(machine.folder / "strict.pyz", "4", code=os.EX_CONFIG)
    message = machine.run("lares", "upgrade", "strict.pyz", code=os.EX_CONFIG)
    assert "unknown section" in message and "nothing was changed" in message and machine.running() == "2"

    previous = machine.folder / "lares.previous.pyz"
    for code, answer, exit_code, sentence in (
        (os.EX_CONFIG, "200 OK", os.EX_CONFIG, "unknown section\nlares: the configuration has faults, see above"),
        (
            0,
            "",
            os.EX_UNAVAILABLE,
            "the previous version did not become ready; see its log\nlares: the rollback was ",
        ),
    ):
        make_file(previous, "1", code=code, answer=answer)
        machine.run("cp", previous, "/opt/lares")
        message = machine.run("lares", "upgrade", "--rollback", code=exit_code)
        assert sentence in message and machine.running() == "2"
        assert machine.run("ls", "/opt/lares").split() == ["lares.previous.pyz", "lares.pyz"]
        machine.run("cmp", previous, "/opt/lares/lares.previous.pyz")
    assert "lares: the rollback was undone; 2 runs again" in message

    for content in ("", "# hi"):
        (machine.folder / "bad.pyz").write_text(content)
        machine.run("cp", "bad.pyz", "/opt/lares/lares.previous.pyz")
        for words in (["lares", "upgrade", "--rollback"], ["sh", f"{ROOT}/firmware/install.sh", "rollback"]):
            message = machine.run(*words, code=os.EX_DATAERR)
            assert "/opt/lares/lares.previous.pyz is damaged, or not a lares.pyz" in message
        assert machine.running() == "2"

    make_file(machine.folder / "five.pyz", "5")
    assert "lares: 5 is installed" in machine.run("python3", "five.pyz", "upgrade", "five.pyz")
    assert machine.running() == "5", "a new file can install itself"

    before = machine.run("ls", "-i", "/opt/lares")
    for command in ("lares upgrade new.pyz", "lares upgrade --rollback", f"sh {ROOT}/firmware/install.sh five.pyz"):
        message = machine.run("sh", "-c", f"exec 8</opt/lares; {LOCK} {command}", code=os.EX_TEMPFAIL)
        assert "another upgrade in /opt/lares is in progress" in message
    assert machine.run("ls", "-i", "/opt/lares") == before and machine.running() == "5"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "command"),
    [("empty", "install.sh"), ("text", "install.sh"), ("one bit", "install.sh"), ("one bit", "lares upgrade")],
)
def test_a_damaged_current_version_is_rolled_back(machine: Machine, damage: str, command: str) -> None:
    install(machine, "systemd")
    new = make_file(machine.folder / "new.pyz", "2")
    machine.run("lares", "upgrade", "new.pyz")
    good, at = new.read_bytes(), new.read_bytes().index(b"firmware/openwrt/lares.init") + 100
    (machine.folder / "damaged").write_bytes(
        {"empty": b"", "text": b"# hi", "one bit": good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]}[damage]
    )
    machine.run("cp", "damaged", "/opt/lares/lares.pyz")
    by_script = ["sh", f"{ROOT}/firmware/install.sh", "rollback"]
    message = machine.run(*(by_script if command == "install.sh" else ["lares", "upgrade", "--rollback"]))
    assert "lares: 1 is installed again" in message and machine.running() == "1"


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["read-only", "folder"])
def test_a_rollback_that_cannot_begin_names_the_reason(machine: Machine, fault: str) -> None:
    install(machine, "systemd")
    make_file(machine.folder / "new.pyz", "2")
    machine.run("lares", "upgrade", "new.pyz")
    if fault == "read-only":
        machine.run("mount", "--bind", "/opt/lares", "/opt/lares")
        machine.run("mount", "-o", "remount,bind,ro", "/opt/lares")
        reason = "read-only file system"
    else:
        machine.run("mkdir", "/opt/lares/lares.older.pyz")
        reason = "not a directory"
    message = machine.run("lares", "upgrade", "--rollback", code=os.EX_CANTCREAT)
    sentence = f"/opt/lares/lares.pyz cannot be replaced: {reason}; the current version is unchanged"
    assert message == f"lares: {sentence}\n"
    assert machine.running() == "2"


@pytest.mark.slow
def test_openwrt_waits_until_the_new_process_is_ready(machine: Machine) -> None:
    install(machine, "openwrt")
    make_file(machine.folder / "new.pyz", "2")
    assert machine.run("lares", "upgrade", "new.pyz") == "lares: 2 is installed\n"
    assert machine.running() == "2"
    (machine.folder / "sleep").write_text('#!/bin/sh\n[ "$1" != 1 ] || echo >>/run/seconds\nexec /bin/sleep 0.05\n')
    machine.run("install", "sleep", "/usr/local/bin/sleep")
    make_file(machine.folder / "starts.pyz", "3", answer="503 Starting")
    make_file(machine.folder / "ends.pyz", "4", answer="")
    for name, seconds in (("starts.pyz", 200), ("ends.pyz", 150)):
        machine.run("rm", "-f", "/run/seconds")
        message = machine.run("lares", "upgrade", name, code=os.EX_UNAVAILABLE)
        assert "the upgrade was undone; 2 runs again" in message and machine.running() == "2"
        assert "is installed" not in message
        assert machine.run("cat", "/run/seconds").count("\n") <= seconds


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["systemd", "openwrt"])
@pytest.mark.parametrize("fault", ["full", "interrupted"])
def test_an_upgrade_that_cannot_finish_is_undone(machine: Machine, kind: str, fault: str) -> None:
    install(machine, kind)
    service = "/etc/systemd/system/lares.service" if kind == "systemd" else "/etc/init.d/lares"
    before = machine.run("cat", service, "/usr/local/bin/lares" if kind == "systemd" else "/usr/bin/lares")
    make_file(machine.folder / "new.pyz", "2")
    if fault == "full":  # there is no space for the service file next to the new version
        place = Path(service).parent
        (machine.folder / "chmod").write_text(
            f'#!/bin/sh\ncase $2 in {place}/*.new) [ ! -f "/opt/lares/lares.older.pyz" ] || '
            '{ echo "chmod: no space left on device" >&2; exit 1; } ;; esac\nexec /bin/chmod "$@"\n'
        )
        machine.run("install", "chmod", "/usr/local/bin/chmod")
    else:
        (machine.folder / "mv").write_text(
            '#!/bin/sh\n/bin/mv "$@"\n[ "$3" != /opt/lares/lares.pyz ] || [ -f /run/once ] || '
            "{ touch /run/once; kill -HUP $PPID; }\n"
        )
        machine.run("install", "mv", "/usr/local/bin/mv")
    message = machine.run("lares", "upgrade", "new.pyz", code=os.EX_CANTCREAT if fault == "full" else 130)
    assert "the upgrade was undone; 1 runs again" in message and machine.running() == "1"
    assert ("lares: install failed because of the error above; if the disk is full" in message) == (fault == "full")
    assert machine.run("ls", "/opt/lares").split() == ["lares.pyz"]
    assert machine.run("cat", service, "/usr/local/bin/lares" if kind == "systemd" else "/usr/bin/lares") == before
    assert not machine.run("sh", "-c", f"ls -d {service}.new /opt/lares/*.new* 2>/dev/null || true")


@pytest.mark.slow
def test_a_rollback_without_hard_links_that_is_interrupted_leaves_no_part(machine: Machine) -> None:
    install(machine, "systemd")
    make_file(machine.folder / "new.pyz", "2")
    machine.run("lares", "upgrade", "new.pyz")
    for name, script in (("ln", "exit 1"), ("cp", '/bin/cp "$@"; kill -TERM $PPID')):
        (machine.folder / name).write_text(f"#!/bin/sh\n{script}\n")
        machine.run("/usr/bin/install", name, "/usr/local/bin")
    machine.run("lares", "upgrade", "--rollback", code=130)
    assert machine.running() == "2"
    assert machine.run("ls", "/opt/lares").split() == ["lares.previous.pyz", "lares.pyz"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "last", "previous"),
    [("ln", "lares.older.pyz", "1"), ("mv", "lares.pyz", "2"), ("mv", "lares.previous.pyz", "2")],
)
def test_the_next_upgrade_after_a_power_cut_keeps_the_previous_version(
    machine: Machine, command: str, last: str, previous: str
) -> None:
    install(machine, "systemd")
    for version in ("2", "3"):
        make_file(machine.folder / f"{version}.pyz", version)
    machine.run("lares", "upgrade", "2.pyz")
    kill = f'[ "${{3-$2}}" != /opt/lares/{last} ] && [ "$2" != /opt/lares/{last} ] || kill -KILL $PPID'
    (machine.folder / command).write_text(f'#!/bin/sh\n/bin/{command} "$@"\n{kill}\n')
    machine.run("install", command, "/usr/local/bin")
    machine.run("sh", ROOT / "firmware" / "install.sh", "3.pyz", code=-signal.SIGKILL)
    machine.run("rm", f"/usr/local/bin/{command}")

    make_file(machine.folder / "ends.pyz", "4", answer="")
    machine.run("lares", "upgrade", "ends.pyz", code=os.EX_UNAVAILABLE)
    assert machine.run("ls", "/opt/lares").split() == ["lares.previous.pyz", "lares.pyz"]
    assert machine.run("python3", "/opt/lares/lares.previous.pyz", "--version") == f"lares {previous}\n"


MORTAL = """
import os, sys
from types import SimpleNamespace
from appliance.cli.main import main

left = int(sys.argv[1])

def die(event, arguments):
    global left
    is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & 3
    if is_write or event in ("os.rename", "os.remove", "os.link"):
        left -= 1
        if left < 0:
            os._exit(137)

sys.modules["lares_file"] = SimpleNamespace(__file__=os.path.abspath("lares.pyz/lares_file.py"))
sys.addaudithook(die)
os._exit(main(["upgrade", "3.pyz"]))
"""
"""A program that upgrades `lares.pyz` in its folder to `3.pyz`, and is killed before a further file change."""


def by_hand(folder: Path, *words: str) -> tuple[int, str]:
    """Run `upgrade` of the file in the folder. Return the exit code and the output."""
    done = subprocess.run(
        [sys.executable, "lares.pyz", "upgrade", *words], cwd=folder, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def version_of(file: Path) -> str:
    return subprocess.run([sys.executable, file, "--version"], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def hand(tmp_path: Path) -> Path:
    """Provide a folder with a configuration, and with version 1, which is started manually."""
    make_file(tmp_path / "lares.pyz", "1")
    (tmp_path / "config").mkdir()
    shutil.copy(ROOT / "config" / "default.toml", tmp_path / "config")
    return tmp_path


@pytest.mark.slow
def test_a_file_run_by_hand_is_replaced_without_a_restart(hand: Path) -> None:
    make_file(hand / "new.pyz", "2")
    code, message = by_hand(hand, "new.pyz")
    assert (code, message) == (
        0,
        f"{hand}/lares.pyz is now 2; `lares upgrade --rollback` restores the previous version\n",
    )
    assert version_of(hand / "lares.pyz") == "lares 2\n"
    assert version_of(hand / "lares.previous.pyz") == "lares 1\n"
    assert by_hand(hand, "--rollback")[0] == 0
    assert version_of(hand / "lares.pyz") == "lares 1\n"
    assert version_of(hand / "lares.previous.pyz") == "lares 2\n"
    assert not list(hand.glob("*.new.pyz*"))
    held = os.open(hand, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    code, message = by_hand(hand, "new.pyz")
    os.close(held)
    assert (code, message) == (
        os.EX_TEMPFAIL,
        f"lares: another upgrade in {hand} is in progress; wait until it has ended\n",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "previous"), [("copy.pyz", None), ("copy.pyz", "older.pyz"), ("--rollback", "lares.pyz")]
)
def test_the_version_in_use_is_not_installed_again(hand: Path, word: str, previous: str | None) -> None:
    make_file(hand / "older.pyz", "0")
    shutil.copy(hand / "lares.pyz", hand / "copy.pyz")
    if previous is not None:
        shutil.copy(hand / previous, hand / "lares.previous.pyz")
    before = {path: path.read_bytes() for path in hand.iterdir() if path.is_file()}
    assert by_hand(hand, word) == (0, f"{hand}/lares.pyz already is version 1; nothing was changed\n")
    assert {path: path.read_bytes() for path in hand.iterdir() if path.is_file()} == before


@pytest.mark.slow
def test_a_file_run_by_hand_keeps_its_previous_version_if_the_upgrade_is_killed(hand: Path) -> None:
    for version in ("1", "2", "3"):
        make_file(hand / f"{version}.pyz", version)
    found, code, count = list[str](), 137, 0
    while code == 137:
        shutil.copy(hand / "1.pyz", hand / "lares.previous.pyz")
        shutil.copy(hand / "2.pyz", hand / "lares.pyz")
        command = [sys.executable, "-P", "-c", MORTAL, str(count)]
        code = subprocess.run(command, cwd=hand, env={**os.environ, "PYTHONPATH": str(ROOT)}).returncode
        present = version_of(hand / "lares.pyz").split()[1]
        by_hand(hand, "--rollback")
        found.append(f"{present} after {version_of(hand / 'lares.pyz').split()[1]}")
        assert not [*hand.glob("*.older.pyz"), *hand.glob("*.new.pyz")]
        count += 1
    assert code == 0
    assert found == sorted(found, key=["2 after 1", "3 after 2"].index) and len({*found}) == 2
    assert found.count("3 after 2") > 2, "killed before and after the older version becomes the previous one"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ([], os.EX_USAGE, "specify the new file, or use --rollback"),
        (["new.pyz", "--rollback"], os.EX_USAGE, "specify the new file, or use --rollback"),
        (["lares.pyz"], os.EX_USAGE, "lares.pyz is the running version; specify the new file"),
        (["--rollback"], os.EX_NOINPUT, "there is no previous version"),
        (["missing.pyz"], os.EX_NOINPUT, "missing.pyz cannot be read: No such file or directory"),
        (["altered.pyz"], os.EX_DATAERR, "altered.pyz does not match altered.pyz.sha256; download both again"),
        (["short.pyz"], os.EX_DATAERR, f"short.pyz {DAMAGED}"),
        (["rotten.pyz"], os.EX_DATAERR, f"rotten.pyz {DAMAGED}"),
        (["longer.pyz"], os.EX_DATAERR, f"longer.pyz {DAMAGED}"),
        (["other.zip"], os.EX_DATAERR, f"other.zip {DAMAGED}"),
        (["strict.pyz"], os.EX_CONFIG, "unknown section\nnothing was changed"),
        (["foreign.pyz"], os.EX_UNAVAILABLE, "this file needs CPython 3.99 on 64-bit Linux"),
    ],
)
@pytest.mark.slow
def test_a_wrong_file_changes_nothing(hand: Path, words: list[str], code: int, sentence: str) -> None:
    good = make_file(hand / "new.pyz", "2").read_bytes()
    (hand / "altered.pyz").write_bytes(good)
    (hand / "altered.pyz.sha256").write_text(f"{'0' * 64}  altered.pyz\n")
    (hand / "short.pyz").write_bytes(good[:-100])
    (hand / "rotten.pyz").write_bytes(good[:300] + bytes([good[300] ^ 1]) + good[301:])
    make_file(hand / "strict.pyz", "4", code=os.EX_CONFIG)
    with zipfile.ZipFile(hand / "other.zip", "w") as archive:
        archive.writestr("x", "y")
    with zipfile.ZipFile(hand / "foreign.pyz", "w") as archive:
        archive.write(ROOT / "firmware" / "boot" / "__main__.py", "__main__.py")
        needs = "CPython 3.99 on 64-bit Linux, aarch64, with glibc 2.28 or newer"
        text = f"GLIBC = (2, 28)\nNEEDS = {needs!r}\nTARGETS = ('cpython-399-aarch64-linux-gnu',)\n"
        archive.writestr("lares_file.py", text)
        archive.write(ROOT / "firmware" / "install.sh", "firmware/install.sh")
    seal(hand / "foreign.pyz")
    (hand / "longer.pyz").write_bytes(good + b"x")
    before = {path: path.read_bytes() for path in hand.iterdir() if path.is_file()}
    found, message = by_hand(hand, *words)
    assert found == code and sentence in message and "Traceback" not in message, message
    assert {path: path.read_bytes() for path in hand.iterdir() if path.is_file()} == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        *("empty", "text", "cut", "zeroed", "random", "one bit", "other archive"),
        *("old, one bit", "old, no directory", "old, other compression"),
    ],
)
def test_a_damaged_previous_version_is_not_restored(hand: Path, fault: str) -> None:
    good = make_file(hand / "lares.previous.pyz", "0").read_bytes()
    without_digest = make_old_file(hand / "lares.previous.pyz").read_bytes()
    middle, directory = len(good) // 2, without_digest.index(b"PK\1\2")
    with zipfile.ZipFile(hand / "other.zip", "w") as archive:
        archive.writestr("x", "y")
    content = {
        "empty": b"",
        "text": b"# hi\n",
        "cut": good[:middle],
        "zeroed": bytes(len(good)),
        "random": random.Random(1).randbytes(len(good)),
        "one bit": good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :],
        "other archive": (hand / "other.zip").read_bytes(),
        "old, one bit": without_digest[:300] + bytes([without_digest[300] ^ 1]) + without_digest[301:],
        "old, no directory": without_digest[:directory] + b"x" + without_digest[directory + 1 :],
        "old, other compression": without_digest[: directory + 10] + b"\7" + without_digest[directory + 11 :],
    }
    (hand / "lares.previous.pyz").write_bytes(content[fault])
    before = {path: path.read_bytes() for path in hand.iterdir() if path.is_file()}
    reason = "is damaged, or not a lares.pyz; install a version with `lares upgrade FILE`; nothing was changed"
    assert by_hand(hand, "--rollback") == (os.EX_DATAERR, f"lares: {hand}/lares.previous.pyz {reason}\n")
    assert {path: path.read_bytes() for path in hand.iterdir() if path.is_file()} == before


@pytest.mark.slow
@pytest.mark.parametrize("shown", ["hello", "", "lares", "a lares 3"])
@pytest.mark.parametrize("file", ["lares.previous.pyz", "new.pyz"])
def test_another_program_is_not_installed(hand: Path, shown: str, file: str) -> None:
    is_previous = file == "lares.previous.pyz"
    with zipfile.ZipFile(hand / file, "w") as archive:
        archive.writestr("__main__.py", f"print({shown!r})\n")
    if not is_previous:
        seal(hand / file)
    before = {path: path.read_bytes() for path in hand.iterdir() if path.is_file()}
    named = hand / file if is_previous else file
    sentence = f"lares: {named} is not a lares.pyz; nothing was changed\n"
    assert by_hand(hand, "--rollback" if is_previous else file) == (os.EX_DATAERR, sentence)
    assert {path: path.read_bytes() for path in hand.iterdir() if path.is_file()} == before


@pytest.mark.slow
def test_a_previous_version_without_a_digest_is_restored(hand: Path) -> None:
    make_old_file(hand / "lares.previous.pyz")
    assert by_hand(hand, "--rollback")[0] == 0
    assert version_of(hand / "lares.pyz") == "lares 0\n"


@pytest.mark.parametrize(
    "name", ["/", "//", ".", "x.pyz", "nope/x.pyz", "file/x.pyz", "folder", "loop", "loop/x.pyz", "pipe"]
)
@pytest.mark.parametrize("is_absolute", [True, False])
def test_the_error_names_the_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_absolute: bool
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / name if is_absolute else Path(name)
    with pytest.raises(StartFailed, match=f"^{file} cannot be read: ") as failed:
        _read_verified(file)
    assert failed.value.exit_code == os.EX_NOINPUT


def test_each_wrong_bit_and_each_other_length_is_found(tmp_path: Path) -> None:
    file = tmp_path / "lares.pyz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("firmware/install.sh", "true\n")
    file.write_bytes(b"#!/usr/bin/env python3\n" + file.read_bytes())
    seal(file)
    good = file.read_bytes()
    _check_archive(good, file)
    wrong = [good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :] for at in range(len(good)) for bit in range(8)]
    for data in [*wrong, good + b"x", b"x" + good, good[:-1], good[: len(good) // 2]]:
        with pytest.raises(StartFailed) as failed:
            _check_archive(data, file)
        assert failed.value.exit_code == os.EX_DATAERR


@pytest.mark.parametrize("call", ["fsync", "pwrite"])
def test_a_full_disk_without_hard_links_keeps_both_versions(
    hand: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: str
) -> None:
    """FAT has no links, so the previous version is a copy. There is no space for the new file (fsync fails), or
    for the copy (pwrite fails)."""

    def refuse(number: int, *_: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    (hand / "lares.previous.pyz").write_bytes(b"older")
    make_file(hand / "new.pyz", "2")
    before = {path: path.read_bytes() for path in hand.iterdir() if path.is_file()}
    monkeypatch.setitem(sys.modules, "lares_file", SimpleNamespace(__file__=f"{hand}/lares.pyz/lares_file.py"))
    monkeypatch.chdir(hand)
    monkeypatch.setattr(os, "link", partial(refuse, errno.EPERM))
    monkeypatch.setattr(os, call, partial(refuse, errno.ENOSPC))
    assert main(["upgrade", "new.pyz"]) == os.EX_CANTCREAT
    reason = "no space left on device; the current version is unchanged"
    assert capsys.readouterr().err == f"lares: {hand}/lares.pyz cannot be replaced: {reason}\n"
    assert {path: path.read_bytes() for path in hand.iterdir() if path.is_file()} == before


@pytest.mark.slow
def test_a_hub_of_python_packages_is_not_upgraded() -> None:
    command = [sys.executable, "-P", "-m", "appliance", "upgrade", "new.pyz"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == os.EX_USAGE and "runs from Python packages" in done.stderr
