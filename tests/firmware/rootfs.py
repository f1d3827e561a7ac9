"""Root file systems of Debian packages, created without root and without changing the system's packages."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from firmware import wheels
from tests.fakes.programs import need

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def cache_dir() -> Path:
    """Return the folder of downloads, which are kept between runs."""
    return wheels.cache_dir(Path.home() / ".cache" / "lares-build")


def make_rootfs(architecture: str, suite: str, packages: Sequence[str], *, unpack_only: bool = False) -> Path:
    """Return a folder with these packages and, unless `unpack_only`, their dependencies. Skip the test if the
    folder cannot be created."""
    for tool in ("apt-get", "dpkg-deb"):
        need(tool)
    digest = hashlib.sha256(" ".join([*packages, str(unpack_only)]).encode()).hexdigest()[:8]
    root = cache_dir() / f"rootfs-{suite}-{architecture}-{digest}"
    with only_one(root):
        if not root.is_dir():
            part = root.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            _fill(part, architecture, suite, packages, unpack_only=unpack_only)
            part.rename(root)
    return root


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Wait until no other run uses the folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fill(root: Path, architecture: str, suite: str, packages: Sequence[str], *, unpack_only: bool) -> None:
    work = _workplace(root, f"deb [signed-by={KEYRING}] {debian_mirror()} {suite} main")
    _apt(work, architecture, ["update"])
    if unpack_only:
        _apt(work, architecture, ["download", *packages], folder=work / "cache" / "archives")
    else:
        _apt(work, architecture, ["-y", "--download-only", "install", *packages])
    for name in ("bin", "sbin", "lib", *(("lib64",) if architecture == "amd64" else ())):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    for archive in sorted((work / "cache" / "archives").glob("*.deb")):
        options = ["--no-same-owner", "--keep-directory-symlink", "--directory", str(root)]
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as stream:
            subprocess.run(["tar", "-x", *options], stdin=stream.stdout, check=True)
        assert stream.returncode == 0, archive
    shutil.rmtree(work)


def make_sources(suite: str, packages: Sequence[str]) -> Path:
    """Return a folder with the archives of these source packages. Skip the test if the packages are unavailable."""
    digest = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]
    folder = cache_dir() / f"sources-{suite}-{digest}"
    with only_one(folder):
        if not folder.is_dir():
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            work = _workplace(folder, f"deb-src [signed-by={KEYRING}] {debian_mirror()} {suite} main")
            _apt(work, "amd64", ["update"])
            _apt(work, "amd64", ["source", "--download-only", *packages], folder=part)
            shutil.rmtree(work)
            part.rename(folder)
    return folder


def _workplace(folder: Path, source: str) -> Path:
    """Return a new folder next to this one. In the new folder, apt uses only this source."""
    work = folder.with_suffix(".apt")
    shutil.rmtree(work, ignore_errors=True)
    for name in ("state/lists/partial", "cache/archives/partial", "etc/apt.conf.d", "etc/preferences.d"):
        (work / name).mkdir(parents=True)
    (work / "state" / "status").touch()
    (work / "etc" / "sources.list").write_text(f"{source}\n")
    return work


def debian_mirror() -> str:
    """Return the Debian mirror that this machine uses."""
    command = ["apt-get", "indextargets", "--format", "$(SITE) $(ORIGIN)", "Identifier: Packages"]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    sites = [line.split()[0] for line in lines if line.split()[1:] == ["Debian"] and "security" not in line]
    if not sites:
        pytest.skip("creates a root file system from Debian packages, but apt knows no Debian mirror here")
    return sites[0]


def _apt(work: Path, architecture: str, command: Sequence[str], folder: Path | None = None) -> None:
    settings = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "Dir::State": work / "state",
        "Dir::State::status": work / "state" / "status",
        "Dir::Cache": work / "cache",
        "Dir::Etc": work / "etc",
        "Dir::Etc::sourcelist": work / "etc" / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::parts": work / "etc" / "apt.conf.d",
        "Acquire::Languages": "none",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "1",
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]
    done = subprocess.run(["apt-get", "-q", *options, *command], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(
            f"creates a root file system from Debian packages, but apt-get cannot: {done.stderr.strip()[-300:]}"
        )


def own_architecture() -> str:
    """Return the machine's architecture in Debian's terms. Skip the test if dpkg is missing."""
    command = [need("dpkg"), "--print-architecture"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def emulator() -> Path:
    """Return the path of a qemu that runs arm64 programs on this machine. If no qemu is installed, download one."""
    installed = shutil.which("qemu-aarch64-static")
    if installed:
        return Path(installed)
    own = own_architecture()
    return make_rootfs(own, "bookworm", ["qemu-user-static"], unpack_only=True) / "usr/bin/qemu-aarch64-static"
