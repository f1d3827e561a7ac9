"""The single file: identical in every build, small, and without dependencies."""

from __future__ import annotations

import json
import lzma
import os
import platform
import re
import shutil
import stat
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from firmware import elf
from firmware.targets import read_targets
from tests.fakes.programs import need
from tests.firmware.boxed import configure, started
from tests.firmware.conftest import BARE_PYTHON, ROOT, build, clone, digest

pytestmark = [pytest.mark.slow, pytest.mark.release]

MAX_BYTES = 22_000_000


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
    """Return a command prefix that disables the network, if this machine allows it."""
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
    assert made.with_suffix(".spdx.json").read_bytes() == single_file.with_suffix(".spdx.json").read_bytes()
    assert stat.S_IMODE(made.stat().st_mode) == stat.S_IMODE(single_file.stat().st_mode) == 0o755
    print(f"{made.stat().st_size} bytes")
    assert made.stat().st_size <= MAX_BYTES
    [(least, most)] = re.findall(r"\((\d+) to (\d+) MB\)", (ROOT / "README.md").read_text())
    assert int(least) <= made.stat().st_size / 1e6 <= int(most), "the size depends on the Pythons that are here"


def test_the_file_prints_the_licences_of_its_content(single_file: Path, tmp_path: Path) -> None:
    command = [BARE_PYTHON, "-I", str(single_file), "--licenses"]
    output = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    document = json.loads(single_file.with_suffix(".spdx.json").read_text())
    assert len({each["SPDXID"] for each in document["packages"]}) == len(document["packages"]) > 36
    for package in document["packages"][1:]:
        assert f"\n{package['name']} {package['versionInfo']}: " in output
    assert "Lua.org, PUC-Rio" in output and "Apache License" in output
    assert single_file.with_name("lares.pyz.sha256").read_text() == f"{digest(single_file)}  lares.pyz\n"
    manifest = json.loads(single_file.with_suffix(".build.json").read_text())
    assert manifest["sha256"] == digest(single_file) and manifest["locks"].keys() >= {"firmware/runtime.lock"}
    with zipfile.ZipFile(single_file) as archive:
        compiled = [name for name in archive.namelist() if name.startswith("compiled/")]
    assert len(compiled) == len(manifest["compilers"]) > 0


def test_a_file_for_one_target_is_smaller(single_file: Path, tmp_path: Path) -> None:
    tag = f"cpython-3{sys.version_info.minor}-{platform.machine()}-linux-gnu"
    made = clone(tmp_path / "lares")
    build(made, "pyz", "--target", tag)
    file = made / "dist" / f"lares-{tag}.pyz"
    assert file.stat().st_size < single_file.stat().st_size / 2
    done = subprocess.run([BARE_PYTHON, str(file), "--version"], env={}, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[3:] == ["this file holds", f"  {tag}"], done.stderr


def test_the_file_has_no_unused_content(single_file: Path) -> None:
    with zipfile.ZipFile(single_file) as archive:
        names = archive.namelist()
        licences = archive.read("NOTICE").decode()
        rows = json.loads(archive.read("parts.json"))["pure"]
        pure = [f"site-packages/{name}" for _, _, names in rows for name in names[""]]
    assert names[-3:] == ["native/aarch64.xz", "native/x86_64.xz", "pure.xz"]
    names += pure
    for unwanted in (".pyi", ".pyx", ".pxd", ".h", ".c", ".so", ".pth", "RECORD", "WHEEL", "_bootstrap/"):
        assert not [name for name in names if name.endswith(unwanted) or name.startswith(unwanted)], unwanted
    for unwanted in ("uvloop", "ujson", "setuptools", "pycparser", "cffi", "setproctitle", "pip", "pytest"):
        assert not [name for name in names if name.startswith(f"site-packages/{unwanted}/")], unwanted
    assert not [name for name in names if "/tests/" in name and not name.startswith("site-packages/appliance")]
    for project in ("sanic", "aiohttp", "lupa", "argon2_cffi", "lares"):
        assert f"--- {project}" in licences


def test_the_file_runs_with_a_bare_python_alone(single_file: Path, tmp_path: Path, alone: list[str]) -> None:
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
    environment = {"STATE_DIRECTORY": str(folder / "data")}
    driver = subprocess.run(driven, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert driver.stdout == '{"status":"ok"}\n0\n', driver.stderr
    with started([*python, "run"], folder, environment) as box:
        assert box.ask("GET", "/health") == (200, {"status": "ok"})
        assert box.ask("POST", "/rooms", {"id": "kitchen", "name": "Kitchen"})[0] == 200
        assert box.stop() == 0
    with started([*python, "run"], folder, environment) as box:
        assert [room["id"] for room in box.ask("GET", "/rooms")[1]] == ["kitchen"]
    unpacked = [path.name for path in (folder / "data" / "program").iterdir() if path.is_dir()]
    assert len(unpacked) == 1, "it was unpacked once, to the data directory"


def test_the_environment_does_not_select_the_program(single_file: Path, tmp_path: Path) -> None:
    for name in ("SHIV_INTERPRETER", "SHIV_ENTRY_POINT", "SHIV_CONSOLE_SCRIPT", "SHIV_MODULE", "SHIV_PREAMBLE"):
        environment = {name: "this:that", "SHIV_ROOT": str(tmp_path / "root"), "STATE_DIRECTORY": str(tmp_path)}
        command = [BARE_PYTHON, str(single_file), "--version"]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.stdout.startswith("lares "), (name, done.stderr)
    assert not (tmp_path / "root").exists()


def version_in(folder: Path, file: Path) -> subprocess.Popen[str]:
    """Start the file so that it prints its version. The file unpacks to the folder."""
    command, environment = [BARE_PYTHON, str(file), "--version"], {"STATE_DIRECTORY": str(folder)}
    return subprocess.Popen(command, env=environment, cwd=folder, text=True, stdout=subprocess.PIPE)


def test_the_next_start_completes_a_killed_unpacking(single_file: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    with version_in(tmp_path, single_file) as killed:
        deadline = time.monotonic() + 30
        while not list(program.glob("*.part/site-packages/s*")) and time.monotonic() < deadline:
            time.sleep(0.001)
        killed.kill()
    assert list(program.glob("*.part")) and not list(program.glob("*/files.json"))
    starts = [version_in(tmp_path, single_file) for _ in range(3)]
    assert [start.communicate(timeout=60)[0][:6] for start in starts] == ["lares "] * 3
    assert [path.suffix for path in program.iterdir()] == [""]


SMALL = """
mount -t tmpfs -o noexec,mode=0777 none noexec && mount -t tmpfs -o size=8m,mode=0777 none small || exit 99
export LARES_DATA_DIR=$PWD/small STATE_DIRECTORY=$PWD/noexec CACHE_DIRECTORY=$PWD/other
exec "$0" "$@"
"""


def test_a_full_or_noexec_folder_is_skipped(single_file: Path, tmp_path: Path) -> None:
    need("unshare")
    for name in ("noexec", "small", "other"):
        (tmp_path / name).mkdir()
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", SMALL, BARE_PYTHON, str(single_file), "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    if done.returncode == 99 or "unshare:" in done.stderr:
        pytest.skip(f"needs permission to mount a small and a noexec file system: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "other" / "program").glob("*/files.json"))


def test_damaged_files_are_repaired(single_file: Path, tmp_path: Path) -> None:
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
    next(victim.parent.glob("__pycache__/_parser.*")).unlink()
    code, output = check()
    assert code == 0 and victim.read_bytes() == whole, output


def compiled_in(folder: Path) -> dict[Path, int]:
    """Return the compiled files with their inode numbers."""
    return {path: path.stat().st_ino for path in folder.rglob("*.pyc")}


def test_after_a_power_cut_partial_bytecode_is_removed(single_file: Path, tmp_path: Path) -> None:
    configure(tmp_path)
    environment = {"STATE_DIRECTORY": str(tmp_path)}
    command = [BARE_PYTHON, "-I", str(single_file), "run"]
    with started(command, tmp_path, environment) as box:
        box.comes_up()
        [program] = (tmp_path / "program").iterdir()
        listed = json.loads((program / "files.json").read_text())
        before = {
            path: number for path, number in compiled_in(program).items() if str(path.relative_to(program)) in listed
        }
    assert len(before) > 300
    (program / "booted").write_text("another boot")
    with started(command, tmp_path, environment) as box:
        box.comes_up()
        after = compiled_in(program)
    assert before.items() <= after.items() and len(after) - len(before) < 9, "it compiles few modules"


@pytest.fixture(scope="module")
def objects(single_file: Path) -> dict[str, dict[str, bytes]]:
    """Return each target's compiled objects by path."""
    unpacked: dict[str, dict[str, bytes]] = {}
    with zipfile.ZipFile(single_file) as archive:
        parts = json.loads(archive.read("parts.json"))
        for name in ("native/aarch64", "native/x86_64"):
            with lzma.open(archive.open(f"{name}.xz")) as stream:
                for size, _, paths in parts[name]:
                    data = stream.read(size)
                    for tag, names in paths.items():
                        unpacked.setdefault(tag, {}).update(dict.fromkeys(names, data))
                assert not stream.read()
    return unpacked


def needed(data: bytes) -> set[str]:
    """Return the libraries that an object requests from the loader."""
    table, size, count = (elf.HEADER.unpack_from(data)[index] for index in (5, 9, 10))
    segments = [elf.SEGMENT.unpack_from(data, table + size * index) for index in range(count)]
    [(start, length)] = [(segment[2], segment[5]) for segment in segments if segment[0] == 2]
    entries = [struct.unpack_from("<QQ", data, at) for at in range(start, start + length, 16)]
    address = next(value for kind, value in entries if kind == 5)
    [names] = [s[2] + address - s[3] for s in segments if s[0] == 1 and s[3] <= address < s[3] + s[5]]
    return {data[names + at : data.index(b"\0", names + at)].decode() for kind, at in entries if kind == 1}


ON_EVERY_BOX = {
    "gnu": r"(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|libgcc_s\.so\.1|ld-linux-.*)",
    "musl": r"libc\.(so|musl-(aarch64|x86_64)\.so\.1)",
}


def test_every_target_has_the_same_modules_for_its_machine(objects: dict[str, dict[str, bytes]]) -> None:
    numbers = {"aarch64": 183, "x86_64": 62}
    modules = set()
    for tag, files in objects.items():
        modules.add(frozenset(name.partition(".")[0] for name in files if ".libs/" not in name))
        for data in files.values():
            assert elf.machine(data) == numbers[tag.split("-")[2]] and elf.cut(data) == data
    assert len(modules) == 1 and len(objects) == 16


def test_no_object_needs_a_library_beyond_a_small_box(objects: dict[str, dict[str, bytes]]) -> None:
    for tag, files in objects.items():
        bundled = {name.rpartition("/")[2] for name in files if ".libs/" in name}
        for name, data in files.items():
            pattern = ON_EVERY_BOX[tag.rpartition("-")[2]]
            foreign = {each for each in needed(data) - bundled if not re.fullmatch(pattern, each)}
            assert not foreign, f"{name} for {tag} needs {foreign}"
