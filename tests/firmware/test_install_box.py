"""Tests of install.sh on a separate box: install, upgrade, break, roll back, and uninstall. The owner's files are
kept."""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.version import VERSION
from tests.fakes.process import free_port
from tests.firmware.boxed import Box, configure, port_in
from tests.firmware.conftest import ROOT, build, clone
from tests.firmware.rootfs import make_rootfs, own_architecture

PACKAGES = ["python3", "dash", "coreutils", "diffutils", "grep", "sed", "findutils", "passwd", "base-passwd", "login"]
TAG = f"cpython-311-{platform.machine()}-linux-gnu"
SYSTEMCTL = Path(__file__).with_name("systemctl.py")


@dataclass(slots=True, kw_only=True)
class Root:
    """A root file system, and commands that run in it."""

    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the root file system as root."""
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"}
        return subprocess.run(
            ["chroot", self.folder, *command], env=environment, capture_output=True, text=True, timeout=300
        )

    def install_sh(self, *arguments: str) -> str:
        """Run install.sh, which must succeed, and return its output."""
        done = self.run("/bin/sh", "/install.sh", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, code: int, *arguments: str) -> str:
        done = self.run("/bin/sh", "/install.sh", *arguments)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr

    def read(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def copies(self) -> list[str]:
        """Return the unpacked files that root's commands have left behind."""
        candidate_folders = [
            self.folder / "opt" / "lares" / "program",
            *(self.folder / name for name in ("var/tmp", "tmp", "run")),
        ]
        found = [path for place in candidate_folders if place.exists() for path in place.iterdir()]
        return [
            path.name for path in found if path.name != "lock" and ("cpython" in path.name or "lares-" in path.name)
        ]

    def left(self) -> list[str]:
        """Return the existing files of Lares, and its lines in the user databases."""
        folders = ("etc", "opt", "var", "srv", "tmp", "usr", "lib/upgrade")
        found = [str(path) for name in folders for path in (self.folder / name).rglob("*") if "lares" in path.name]
        files = [self.folder / "etc" / name for name in ("passwd", "group", "shadow", "gshadow")]
        return found + [str(file) for file in files if file.exists() and "lares" in file.read_text()]

    def check_root_commands(self) -> None:
        """Run commands as root, and check that all of them use the same unpacked copy of the file."""
        for arguments in (["doctor"], ["check"], ["backup", "/home.tar.gz"], ["key", "list"], ["status"]):
            assert self.run("lares", *arguments).returncode == 0, arguments
        assert len(self.copies()) == 1, self.copies()

    def restores(self, stop: Sequence[str], start: Sequence[str]) -> None:
        """Restore a backup as root while the hub is stopped."""
        assert self.run(*stop).returncode == 0
        restored = self.run("lares", "restore", "/home.tar.gz")
        assert restored.returncode == 0, restored.stderr
        assert self.run(*start).returncode == 0
        assert len(self.copies()) == 1, self.copies()

    def check_save(self, box: Box) -> None:
        """Save and delete a file over HTTP, and check that only root and the hub can read the file."""
        path = "config/scenes/saved.lua"
        text = 'return { id = "saved", name = "Saved", execute = function(ctx) end }\n'
        status, body = box.ask("PUT", f"/files/{path}", {"text": text})
        assert status == 200, body
        folder = self.folder / "etc" / "lares"
        paths = (folder / path, *(folder / path).parents[:3], folder / "config" / "default.toml")
        assert {each.stat().st_uid for each in paths} == {int(self.run("id", "-u", "lares").stdout)}
        assert (folder / path).stat().st_mode & 0o007 == 0
        assert box.ask("DELETE", f"/files/{path}")[0] == 204

    def box(self, host: str = "127.0.0.1") -> Box:
        """Return the hub that runs in this root file system."""
        log = self.folder / "run" / "lares.log"
        return Box(process=None, log=log, port=port_in(log), host=host)

    def stop(self) -> None:
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int(self.read("run/lares.pid")), signal.SIGKILL)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    if os.geteuid() != 0:
        pytest.skip("needs root, to change into a root file system and create a user")
    architecture = own_architecture()
    folder = tmp_path / "root"
    shutil.copytree(make_rootfs(architecture, "bookworm", PACKAGES), folder, symlinks=True)
    for name in ("dev", "tmp", "run", "var/tmp", "etc/systemd/system", "etc/avahi/services", "usr/local/bin"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "dev" / "null").touch()
    (folder / "dev" / "null").chmod(0o666)
    for name in ("passwd", "group"):
        shutil.copy(folder / "usr" / "share" / "base-passwd" / f"{name}.master", folder / "etc" / name)
    if not (folder / "bin" / "sh").exists():
        (folder / "bin" / "sh").symlink_to("dash")
    shutil.copy(ROOT / "firmware" / "install.sh", folder)
    there = Root(folder=folder)
    yield there
    there.stop()


def make_broken(file: Path, good: Path, *, word: str = "run") -> Path:
    """Return a version that seems valid, but fails when it runs this command."""
    start = (
        "import sys\n"
        f"if {word!r} in sys.argv: sys.exit('it does not work')\n"
        "if '--version' in sys.argv: print('lares 9.9.9')\n"
    )
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(file, "w") as target:
        target.writestr("__main__.py", start)
        for name in source.namelist():
            if name.startswith("firmware/"):
                target.writestr(name, source.read(name))
    return file


def put_in(root: Root, name: str, file: Path) -> str:
    """Copy a file into the root file system, and return its path there."""
    shutil.copy(file, root.folder / name)
    return f"/{name}"


@pytest.mark.slow
@pytest.mark.release
def test_install_upgrade_break_roll_back_uninstall(root: Root, single_file: Path, tmp_path: Path) -> None:
    (root.folder / "run" / "systemd" / "system").mkdir(parents=True)
    shutil.copy(SYSTEMCTL, root.folder / "usr" / "bin" / "systemctl")
    (root.folder / "usr" / "bin" / "systemctl").chmod(0o755)
    config = configure(root.folder / "etc" / "lares")
    mine = config.read_bytes()
    first = put_in(root, "first.pyz", single_file)

    assert root.install_sh(first) == f"lares: {VERSION} is installed\n"
    assert root.read("run/systemctl.log") == b"daemon-reload\nenable --quiet lares.service\nrestart lares.service\n"
    assert root.box().ask("POST", "/rooms", {"id": "attic", "name": "Attic"})[0] == 200
    assert config.read_bytes() == mine and config.stat().st_mode & 0o777 == 0o640
    root.check_save(root.box())
    config.chmod(0o644)  # upgrades must keep this change by the owner
    data = root.folder / "var" / "lib" / "lares"
    assert data.stat().st_mode & 0o777 == 0o700 and data.stat().st_uid == (data / "lock").stat().st_uid != 0
    assert b"Lares on %h" in root.read("etc/avahi/services/lares.service")
    assert root.run("/usr/local/bin/lares", "--version").stdout.startswith(f"lares {VERSION}\n")
    assert root.install_sh("install", first) == f"lares: {VERSION} is already installed\n"
    root.check_root_commands()
    root.restores(["systemctl", "disable", "--now"], ["systemctl", "restart"])
    root.check_save(root.box())
    os.chown(config.parent, 7, -1)  # upgrades must keep this change too
    assert root.box().ask("GET", "/rooms") == (200, [{"id": "attic", "name": "Attic"}])
    assert not (root.folder / "opt" / "lares" / "lares.previous.pyz").exists()

    checkout = clone(tmp_path / "lares")
    build(checkout, "pyz", "--target", TAG)
    second = put_in(root, "second.pyz", checkout / "dist" / f"lares-{TAG}.pyz")
    assert "is installed" in root.install_sh(second)
    assert not root.copies(), "that of the version before is gone"
    assert config.stat().st_mode & 0o777 == 0o644 and config.parent.stat().st_uid == 7
    assert root.read("opt/lares/lares.pyz") == root.read("second.pyz")
    root.check_root_commands()
    (data / "program").rename(tmp_path / "removed")  # the hub may be writing to this folder at this moment
    assert root.run("systemctl", "restart").returncode == 0
    assert root.box().ask("GET", "/rooms") == (200, [{"id": "attic", "name": "Attic"}])

    broken = put_in(root, "broken.pyz", make_broken(tmp_path / "broken.pyz", single_file))
    assert f"the upgrade was undone; {VERSION} runs again" in root.refused(os.EX_UNAVAILABLE, broken)
    assert root.read("opt/lares/lares.pyz") == root.read("second.pyz")
    assert root.box().ask("GET", "/rooms") == (200, [{"id": "attic", "name": "Attic"}])

    upgraded = root.run("lares", "upgrade", first)
    assert (upgraded.returncode, upgraded.stdout) == (0, f"lares: {VERSION} is installed\n"), upgraded.stderr
    assert root.read("opt/lares/lares.pyz") == root.read("first.pyz") and not root.copies()
    assert "is installed again" in root.run("lares", "upgrade", "--rollback").stdout
    assert root.read("opt/lares/lares.pyz") == root.read("second.pyz")
    root.install_sh("rollback")
    assert root.read("opt/lares/lares.pyz") == root.read("first.pyz")
    assert root.box().ask("GET", "/rooms") == (200, [{"id": "attic", "name": "Attic"}])

    config.write_bytes(mine + b"[nonsense]\n")
    assert "the configuration has faults, see above; nothing was changed" in root.refused(os.EX_CONFIG, second)
    assert root.read("opt/lares/lares.pyz") == root.read("first.pyz")
    config.write_bytes(mine)
    crashing = put_in(root, "crashing.pyz", make_broken(tmp_path / "crashing.pyz", single_file, word="check"))
    assert "could not be checked (exit code 1), see above; nothing was changed" in root.refused(
        os.EX_SOFTWARE, crashing
    )

    assert "configuration and data are still in /etc/lares and /var/lib/lares" in root.install_sh("uninstall")
    assert not (root.folder / "run" / "lares.pid").exists()
    for path in ("opt/lares", "usr/local/bin/lares", "etc/systemd/system/lares.service", "var/lib/lares/program"):
        assert not (root.folder / path).exists(), path
    assert config.read_bytes() == mine and list(data.glob("journal.*.json"))
    root.install_sh(second)
    assert root.box().ask("GET", "/rooms") == (200, [{"id": "attic", "name": "Attic"}])
    (root.folder / "etc/systemd/system/lares.service.d").mkdir()
    root.run("/usr/local/bin/lares", "doctor")
    assert root.install_sh("uninstall", "--purge") == "lares: everything is removed\n"
    assert not root.left()


def make_openwrt(root: Root) -> None:
    """Turn the root file system into OpenWrt's."""
    for name in ("etc/init.d", "etc/rc.d", "lib/upgrade/keep.d"):
        (root.folder / name).mkdir(parents=True)
    (root.folder / "etc" / "openwrt_release").touch()
    shutil.copy(SYSTEMCTL.with_name("rc.common"), root.folder / "etc" / "rc.common")
    (root.folder / "usr" / "sbin" / "useradd").unlink()


@pytest.mark.slow
@pytest.mark.release
def test_openwrt_installs_reloads_upgrades_rolls_back_and_uninstalls(root: Root, single_file: Path) -> None:
    make_openwrt(root)
    port = free_port("127.0.0.2")
    config = configure(root.folder / "etc" / "lares")
    message = f"bind_address\t=\t'127.0.0.2:{port}'"
    config.write_text(config.read_text().replace('bind_address = "127.0.0.1:0"', message))
    first = put_in(root, "first.pyz", single_file)

    assert root.install_sh(first) == f"lares: {VERSION} is installed\n"
    assert (
        root.box("127.0.0.2").port == port
        and root.box("127.0.0.2").ask("POST", "/rooms", {"id": "attic", "name": "Attic"})[0] == 200
    )
    assert b"lares:x:400:400:Lares:/srv/lares:/bin/false\n" in root.read("etc/passwd")
    assert (root.folder / "srv" / "lares" / "lock").stat().st_uid == 400
    assert b"/srv/lares/*.json\n" in root.read("lib/upgrade/keep.d/lares")
    assert (root.folder / "etc" / "rc.d" / "S95lares").is_symlink()
    root.check_root_commands()
    root.check_save(root.box("127.0.0.2"))
    root.restores(["/etc/init.d/lares", "stop"], ["/etc/init.d/lares", "start"])
    assert root.run("/etc/init.d/lares", "check").stdout == "/etc/lares/config/default.toml: no faults\n"
    assert root.run("/etc/init.d/lares", "reload").returncode == 0

    with zipfile.ZipFile(root.folder / "first.pyz", "a") as archive:
        archive.comment = b"another version"
    assert root.install_sh(first) == f"lares: {VERSION} is installed\n"
    assert not root.copies(), "that of the version before is gone"
    root.check_root_commands()
    assert "is installed again" in root.install_sh("rollback")
    assert root.read("opt/lares/lares.pyz") == single_file.read_bytes() and not root.copies()
    assert root.box("127.0.0.2").ask("GET", "/rooms") == (200, [{"id": "attic", "name": "Attic"}])

    config.write_text("[nonsense]\n")
    assert root.run("/etc/init.d/lares", "check").returncode == 78
    assert "configuration and data are still" in root.install_sh("uninstall")
    assert config.exists() and not (root.folder / "etc" / "init.d" / "lares").exists()
    assert root.install_sh("uninstall", "--purge") == "lares: everything is removed\n"
    assert not root.left()


def sysupgrade(root: Root) -> None:
    """Like OpenWrt, replace the system, but keep the users and the listed files and links."""
    patterns = (root.folder / "lib/upgrade/keep.d/lares").read_text().split()
    kept: dict[Path, tuple[bytes | str, os.stat_result]] = {}
    for path in (path for pattern in patterns for path in root.folder.glob(pattern.strip("/"))):
        for file in [path] if not path.is_dir() else path.rglob("*"):
            if file.is_symlink() or file.is_file():
                kept[file] = (str(file.readlink()) if file.is_symlink() else file.read_bytes(), file.lstat())
    for name in ("opt/lares", "etc/lares", "srv/lares", "etc/rc.d"):
        shutil.rmtree(root.folder / name)
    for name in ("usr/bin/lares", "etc/init.d/lares", "lib/upgrade/keep.d/lares"):
        (root.folder / name).unlink()
    for file, (content, status) in kept.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            file.symlink_to(content)
            continue
        file.write_bytes(content)
        file.chmod(status.st_mode)
        os.chown(file, status.st_uid, status.st_gid)


@pytest.mark.slow
@pytest.mark.release
def test_a_sysupgrade_keeps_a_whole_home(root: Root, single_file: Path) -> None:
    make_openwrt(root)
    host = "127.0.0.3"  # no other connection may take the port between two starts
    port = free_port(host)
    config = configure(root.folder / "etc" / "lares", port=port)
    config.write_text(config.read_text().replace("127.0.0.1", host))
    root.install_sh(put_in(root, "first.pyz", single_file))
    box = Box(process=None, log=root.folder / "run" / "lares.log", port=port, host=host)
    assert box.ask("POST", "/rooms", {"id": "attic", "name": "Attic"})[0] == 200
    (root.folder / "srv" / "lares" / "first-key").write_text("a key that nobody has used yet")
    for _ in range(2):  # the list of kept files must contain itself
        assert root.run("/etc/init.d/lares", "stop").returncode == 0
        sysupgrade(root)
        roots = config.parent / "roots"
        roots.mkdir()
        started = root.run("/etc/rc.d/S95lares", "start")
        assert started.returncode == 0, started.stderr
        box.comes_up()
        assert box.ask("GET", "/rooms") == (200, [{"id": "attic", "name": "Attic"}])
        root.check_save(box)
        assert roots.stat().st_uid == 0, "the administrator made this folder"
        assert root.read("srv/lares/first-key") == b"a key that nobody has used yet"
        assert (root.folder / "srv" / "lares").stat().st_uid == 400


@pytest.mark.slow
@pytest.mark.release
def test_an_image_under_construction_gets_the_bundled_configuration(root: Root, single_file: Path) -> None:
    put_in(root, "lares.pyz", single_file)
    (root.folder / "etc" / "localtime").unlink(missing_ok=True)
    (root.folder / "etc" / "localtime").symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    message = root.install_sh()
    assert "the configuration is in /etc/lares/config" in message and "systemctl enable --now lares" in message
    bundled = (ROOT / "config" / "default.toml").read_text()
    here = bundled.replace('timezone = "UTC"', 'timezone = "Europe/Berlin"')
    assert root.read("etc/lares/config/default.toml").decode() == here != bundled
    assert (root.folder / "etc/lares/config/automations").is_dir()
    config, roots = (root.folder / "etc" / "lares" / each for each in ("config/default.toml", "roots"))
    roots.write_text("a secret of root")
    config.unlink()  # as a compromised hub could
    root.install_sh()
    assert config.stat().st_uid == config.parent.stat().st_uid != roots.stat().st_uid == 0
    assert not list((root.folder / "tmp").iterdir()) and not list((root.folder / "var" / "tmp").iterdir())


@pytest.mark.slow
def test_an_unsuitable_file_is_reported_and_changes_nothing(root: Root, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.pyz", "w") as archive:
        archive.write(ROOT / "firmware" / "boot" / "__main__.py", "__main__.py")
        needs = "CPython 3.99 on 64-bit Linux, aarch64, with glibc 2.28 or newer"
        text = f"GLIBC = (2, 28)\nNEEDS = {needs!r}\nTARGETS = ('cpython-399-aarch64-linux-gnu',)\n"
        archive.writestr("lares_file.py", text)
    message = root.refused(os.EX_UNAVAILABLE, put_in(root, "other.pyz", tmp_path / "other.pyz"))
    assert message.startswith(
        "lares: this file needs CPython 3.99 on 64-bit Linux, aarch64, with glibc 2.28 or newer;"
    )
    assert not (root.folder / "opt" / "lares").exists() and not (root.folder / "etc" / "lares").exists()
    assert "there is no previous version" in root.refused(os.EX_NOINPUT, "rollback")
    assert "there is no file /nothing.pyz" in root.refused(os.EX_NOINPUT, "/nothing.pyz")


@pytest.mark.parametrize("name", ["install.sh", "openwrt/lares.init"])
def test_every_installed_shell_can_parse_the_scripts(name: str) -> None:
    shells = [
        each for each in (["/bin/sh"], ["dash"], ["bash", "--posix"], ["busybox", "ash"]) if shutil.which(each[0])
    ]
    for shell in shells:
        done = subprocess.run([*shell, "-n", ROOT / "firmware" / name], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), shell
    assert shells


@pytest.mark.slow
@pytest.mark.parametrize("name", ["install.sh", "openwrt/lares.init"])
def test_shellcheck_finds_nothing(name: str) -> None:
    own = own_architecture()
    tool = shutil.which("shellcheck")
    if tool is None:
        tool = str(make_rootfs(own, "bookworm", ["shellcheck"], unpack_only=True) / "usr/bin/shellcheck")
    # procd reads variables that the script only sets, and shellcheck does not know /etc/rc.common.
    leave_out = ["--exclude=SC2034"] if name.endswith(".init") else []
    command = [tool, "--shell=sh", *leave_out, str(ROOT / "firmware" / name)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "name", ["firmware/install.sh", "firmware/openwrt/lares.init", "docs/systemd.md", "docs/upgrading.md"]
)
def test_no_command_changes_the_owner_of_a_links_target(name: str) -> None:
    commands = re.findall(r"chown .*(?:/etc/lares|CONFIG_DIR|\{\}).*", (ROOT / name).read_text())
    assert commands and all(re.match("chown -hR? ", each) for each in commands), commands


def test_usage_errors_exit_64() -> None:
    command = ["/bin/sh", str(ROOT / "firmware" / "install.sh"), "--nonsense"]
    done = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert (done.returncode, done.stderr.split()[:2]) == (64, ["usage:", "install.sh"])
