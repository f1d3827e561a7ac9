"""The single file: the same bytes from every build, small, and enough by itself."""

from __future__ import annotations

import json
import lzma
import os
import platform
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from firmware import elf
from firmware.targets import read_targets
from tests.firmware.boxed import configure, started
from tests.firmware.conftest import BARE_PYTHON, ROOT, build, clone, digest

pytestmark = pytest.mark.slow

MOST_BYTES = 22_000_000


DRIVER = """
import fcntl, re, socket, struct, subprocess, sys, urllib.request
with socket.socket() as any_socket:
    try:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1 | 64))  # loopback up, and nothing else
    except PermissionError:
        pass
hub = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, text=True)
url = next(found[1] for line in hub.stderr if (found := re.search(r"listening at (http://\\S+)", line)))
print(urllib.request.urlopen(url + "/health").read().decode())
hub.terminate()
hub.communicate()
print(hub.returncode)
"""


@pytest.fixture(scope="module")
def alone() -> list[str]:
    """What puts a command on a machine without a network, where this one allows that."""
    command = ["unshare", "--map-root-user", "--net", "--"]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        return []
    return command


def test_two_clean_clones_make_the_same_bytes(single_file: Path, tmp_path: Path) -> None:
    other = clone(tmp_path / "somewhere" / "else entirely")
    for path in other.rglob("*.py"):
        os.utime(path, (1, 1))
    junk = other / "appliance" / "__pycache__"
    junk.mkdir()
    (junk / "junk.pyc").write_bytes(b"junk")
    print(build(other, "pyz", umask=0o077, SOURCE_DATE_EPOCH="1", TZ="Asia/Tokyo", LC_ALL="C"))
    made = other / "dist" / "lares.pyz"
    assert digest(made) == digest(single_file)
    assert stat.S_IMODE(made.stat().st_mode) == stat.S_IMODE(single_file.stat().st_mode) == 0o755
    print(f"{made.stat().st_size} bytes")
    assert made.stat().st_size <= MOST_BYTES


def test_a_file_for_one_target_is_smaller_and_holds_that_alone(single_file: Path, tmp_path: Path) -> None:
    tag = f"cpython-3{sys.version_info.minor}-{platform.machine()}-linux-gnu"
    made = clone(tmp_path / "lares")
    build(made, "pyz", "--target", tag)
    file = made / "dist" / f"lares-{tag}.pyz"
    assert file.stat().st_size < single_file.stat().st_size / 2
    done = subprocess.run([BARE_PYTHON, str(file), "--version"], env={}, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[3:] == ["this file holds", f"  {tag}"], done.stderr


def test_there_is_no_dead_weight_in_it(single_file: Path) -> None:
    with zipfile.ZipFile(single_file) as archive:
        names = archive.namelist()
        licences = archive.read("NOTICE").decode()
    for unwanted in (".pyi", ".pyx", ".pxd", ".h", ".c", ".pyc", ".so", ".pth", "RECORD", "WHEEL", "_bootstrap/"):
        assert not [name for name in names if name.endswith(unwanted) or name.startswith(unwanted)], unwanted
    for unwanted in ("uvloop", "ujson", "setuptools", "pycparser", "cffi", "setproctitle", "pip", "pytest"):
        assert not [name for name in names if name.startswith(f"site-packages/{unwanted}/")], unwanted
    assert not [name for name in names if "/tests/" in name and not name.startswith("site-packages/appliance")]
    assert names == sorted(names[:-2]) + names[-2:] and names[-2:] == ["native/aarch64.xz", "native/x86_64.xz"]
    for project in ("sanic", "aiohttp", "lupa", "argon2_cffi", "lares"):
        assert f"--- {project}" in licences


def test_it_runs_with_a_bare_python_an_empty_environment_no_home_and_no_network(
    single_file: Path, tmp_path: Path, alone: list[str]
) -> None:
    code = "import sys; sys.exit(__import__('importlib.util').util.find_spec('sanic') is not None)"
    assert subprocess.run([BARE_PYTHON, "-I", "-S", "-c", code]).returncode == 0
    folder = tmp_path / "box"
    (folder / "data").mkdir(parents=True)
    configure(folder)
    python = [BARE_PYTHON, "-I", "-S", str(single_file)]
    version = subprocess.run([*alone, *python, "--version"], cwd=folder, env={}, capture_output=True, text=True)
    held = [f"  {target.tag}" for target in read_targets(ROOT / "firmware" / "targets.toml").targets]
    assert version.stdout.splitlines()[3:] == ["this file holds", *held], version.stderr
    driven = [*alone, BARE_PYTHON, "-c", DRIVER, *python, "run"]
    driver = subprocess.run(driven, cwd=folder, env={}, capture_output=True, text=True, timeout=60)
    assert driver.stdout == '{"status":"ok"}\n0\n', driver.stderr
    with started([*python, "run"], folder, {}) as box:
        assert box.ask("GET", "/health") == (200, {"status": "ok"})
        assert box.ask("POST", "/rooms", {"id": "kitchen", "name": "Kitchen"})[0] == 200
        assert box.stop() == 0
    with started([*python, "run"], folder, {}) as box:
        assert [room["id"] for room in box.ask("GET", "/rooms")[1]] == ["kitchen"]
    unpacked = [path.name for path in (folder / "data" / "program").iterdir() if path.is_dir()]
    assert len(unpacked) == 1, "it was unpacked once, to the data directory"


def test_the_environment_does_not_choose_what_runs(single_file: Path, tmp_path: Path) -> None:
    for name in ("SHIV_INTERPRETER", "SHIV_ENTRY_POINT", "SHIV_CONSOLE_SCRIPT", "SHIV_MODULE", "SHIV_PREAMBLE"):
        environment = {name: "this:that", "SHIV_ROOT": str(tmp_path / "root"), "STATE_DIRECTORY": str(tmp_path)}
        command = [BARE_PYTHON, str(single_file), "--version"]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.stdout.startswith("lares "), (name, done.stderr)
    assert not (tmp_path / "root").exists()


def test_an_emptied_file_heals_at_the_next_start_and_a_rotten_one_when_it_hurts(
    single_file: Path, tmp_path: Path
) -> None:
    command = [BARE_PYTHON, str(single_file), "check"]
    environment = {"STATE_DIRECTORY": str(tmp_path)}
    configure(tmp_path)

    def check() -> tuple[int, str]:
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    assert check() == (0, "")
    [site] = (tmp_path / "program").glob("*/site-packages")
    victim = site / "tomli" / "_parser.py"
    whole, date = victim.read_bytes(), victim.stat().st_mtime
    victim.write_bytes(b"")
    assert check() == (0, "") and victim.read_bytes() == whole
    victim.write_bytes(b"\0" * len(whole))
    os.utime(victim, (date, date))
    shutil.rmtree(victim.parent / "__pycache__", ignore_errors=True)
    code, said = check()
    assert code == 0 and victim.read_bytes() == whole, said


def test_every_compiled_object_is_lean_and_for_its_machine(single_file: Path) -> None:
    numbers = {"aarch64": 183, "x86_64": 62}
    with zipfile.ZipFile(single_file) as archive:
        parts = json.loads(archive.read("parts.json"))
        for machine, sizes in parts["objects"].items():
            packed = lzma.decompress(archive.read(f"native/{machine}.xz"))
            assert len(packed) == sum(size for size, _ in sizes)
            at = 0
            for size, _ in sizes:
                data = packed[at : at + size]
                at += size
                assert elf.machine(data) == numbers[machine] and elf.cut(data) == data
