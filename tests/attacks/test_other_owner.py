"""Root runs commands in an attacker's home. No command hangs, or reads, reveals, or writes files of root."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.commands import LOOPBACK, ended
from tests.cli.test_owner import SECRET, USER, give, theirs

__all__ = ["theirs"]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")]

PLACES = {
    ("config/default.toml", "config/scenes/a.lua", "config/scripts/a.lua", "config/password"): (
        ("check",), ("simulate", "--hours", "1"), ("init", "."), ("backup", "{root}/home.tar.gz"),
        ("restore", "{root}/first.tar.gz"),
    ),
    (
        "data/lock", "data/journal.000001.json", "data/snapshot.000001.json", "data/control.sock",
        "data/history/2026-11.jsonl",
    ): (
        ("doctor",), ("key", "list"), ("status",), ("clock", "trust"), ("backup", "{root}/home.tar.gz"),
        ("restore", "{root}/first.tar.gz"),
    ),
}  # fmt: skip
"""Each command reads files at some of these paths."""


def pipe(path: Path, secret: Path) -> None:
    """Create a pipe without a writer."""
    os.mkfifo(path)


def huge(path: Path, secret: Path) -> None:
    """Create a sparse file of 20 GB."""
    with path.open("wb") as stream:
        stream.truncate(20 << 30)


def link(path: Path, secret: Path) -> None:
    """Create a link to a file of root."""
    path.symlink_to(secret)


def hard_link(path: Path, secret: Path) -> None:
    """Create a hard link to a file that only root can read."""
    path.hardlink_to(secret)


def refusing_socket(path: Path, secret: Path) -> None:
    """Create a socket that does not accept connections."""
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(path.parent)  # the name of a socket has at most 107 bytes
        try:
            listener.bind(path.name)
        finally:
            os.chdir(here)


def as_root(home: Path, *arguments: str) -> int:
    """Return the command's exit code. The command must end by itself, and must not print anything from root's
    files."""
    done = ended(home, *arguments)
    assert SECRET not in done.out + done.err, done
    return done.code


def text_of(archive: Path) -> bytes:
    return subprocess.run(["tar", "xzOf", str(archive)], capture_output=True, check=True).stdout


@pytest.mark.parametrize("lay", [pipe, huge, link, hard_link, refusing_socket], ids=lambda each: str(each.__name__))
def test_every_command_ends_and_reveals_nothing(
    theirs: Path, open_folder: Path, lay: Callable[[Path, Path], None]
) -> None:
    secret, archive = open_folder / "secret.lua", open_folder / "home.tar.gz"
    assert as_root(theirs, "backup", str(open_folder / "first.tar.gz")) == 0
    for places, commands in PLACES.items():
        for place, arguments in [*itertools.product(places, commands)][
            ::2
        ]:  # use only every second combination of a command and a place
            shutil.rmtree(theirs)
            furnish(theirs)
            (theirs / place).parent.mkdir(exist_ok=True)
            (theirs / place).unlink(missing_ok=True)
            give(theirs)
            lay(theirs / place, secret)
            if lay is not hard_link:
                os.chown(theirs / place, USER, USER, follow_symlinks=False)
            archive.unlink(missing_ok=True)
            as_root(theirs, *(each.format(root=open_folder) for each in arguments))
            state = secret.stat()
            assert (secret.read_text(), state.st_uid, state.st_mode & 0o777) == (f"-- {SECRET}", 0, 0o600), (
                place, arguments,
            )  # fmt: skip
            if archive.exists():
                assert archive.stat().st_uid == 0 and archive.stat().st_mode & 0o777 == 0o600
                assert SECRET.encode() not in text_of(archive), (place, arguments)


SWAPPER = """
import os, sys
os.setgid(12345); os.setuid(12345)
mine, other = sys.argv[1:]
print("on", flush=True)
while True:
    for now in (mine + ".real", mine + ".link"):
        try:
            os.rename(mine, mine + ".aside")
            os.rename(now, mine)
            os.rename(mine, now)
            os.rename(mine + ".aside", mine)
        except OSError:
            pass
"""
"""A program that repeatedly replaces its own folder with a link to another folder, and back."""


@pytest.mark.parametrize("place", ["data", "config", "out"])
def test_root_follows_no_folder_that_becomes_a_link(theirs: Path, open_folder: Path, place: str) -> None:
    other = open_folder / "other"
    other.mkdir(mode=0o777)
    (other / "default.toml").write_text(f"# {SECRET}")
    other.chmod(0o700)
    assert as_root(theirs, "backup", str(open_folder / "first.tar.gz")) == 0
    (theirs / "out").mkdir()
    (theirs / f"{place}.link").symlink_to(other)
    (theirs / f"{place}.real").mkdir()
    give(theirs)
    before = sorted((each.name, each.stat().st_mtime_ns) for each in other.iterdir())
    with subprocess.Popen(
        [sys.executable, "-c", SWAPPER, str(theirs / place), str(other)], stdout=subprocess.PIPE
    ) as swapper:
        try:
            assert swapper.stdout is not None and swapper.stdout.readline()
            for _ in range(3):
                for arguments in (
                    ("key", "create", "--label", "x", "--role", "read"), ("backup", str(theirs / "out" / "x.tar.gz")),
                    ("restore", str(open_folder / "first.tar.gz")), ("clock", "trust"),
                ):  # fmt: skip
                    as_root(theirs, *arguments)
                    after = sorted((each.name, each.stat().st_mtime_ns) for each in other.iterdir())
                    assert after == before and other.stat().st_uid == 0, arguments
        finally:
            swapper.kill()


def furnish(home: Path) -> None:
    for folder in (home / "config" / "scenes", home / "data"):
        folder.mkdir(parents=True)
    (home / "config" / "default.toml").write_text(LOOPBACK)
    (home / "data" / "lock").touch()
    (home / "config" / "scenes" / "b.lua").write_text('return { id = "b", name = "B", execute = function(ctx) end }')
