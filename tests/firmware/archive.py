"""A small single file for this Python and another Python. The file contains few files, but is packed like the real
single file."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path

import lares_launcher

from firmware.bytecode import compile_with
from firmware.pack import write_archive
from firmware.parts import MACHINES, Parts
from firmware.pip import run_tool
from firmware.targets import Target

BOOT = Path(__file__).parents[2] / "firmware" / "boot"

PURE = {
    "appliance/__init__.py": b"",
    "appliance/part.py": b"x = 1\n" * 100,
    "appliance/cli/run.py": b'"""Runs."""\nimport appliance.part\n',
    "appliance/late.py": b"x = 2\n",
    "config.toml": b"key = 1\n",
}
COMPILED = ("appliance/__init__.py", "appliance/part.py", "appliance/cli/run.py")
NATIVE = {"fast/one.so": b"object one" * 500, "fast/two.so": b"object two" * 500, "fast/twin.so": b"object one" * 500}


def this_target() -> Target:
    """Return the target of this Python."""
    _, python, machine, _, libc = lares_launcher.TAG.split("-")
    return Target(python=f"3.{python[1:]}", machine=machine, libc=libc, wheels=())


def make_archive(file: Path, version: bytes = b"x = 1\n") -> Path:
    parts, target = Parts(), this_target()
    parts.pure = {**PURE, "version.py": version}
    parts.native = {target: dict(NATIVE)}
    for machine in MACHINES:
        other = Target(python="3.99", machine=machine, libc="gnu", wheels=())
        parts.native[other] = {"fast/one.so": b"object of another" * 500}
    site = file.with_suffix(".site")
    for name, data in parts.pure.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(data)
    magic, parts.compiled[magic] = compile_with(sys.executable, site, COMPILED, run_tool)
    parts.compiled["00000000"] = {"appliance/__pycache__/__init__.cpython-399.pyc": b"of another"}
    packed = file.with_suffix(".packed")
    with packed.open("wb") as stream:
        stream.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(stream, "w") as archive:
            for name, data in parts.pure.items():
                archive.writestr(f"site-packages/{name}", data)
            archive.writestr("environment.json", "{}")
            archive.writestr("_bootstrap/__init__.py", "raise SystemExit")
    write_archive(packed, BOOT, parts, "2.28", file)
    packed.unlink()
    shutil.rmtree(site)
    return file


def content(folder: Path) -> dict[str, bytes]:
    """Return the unpacked files of the folder, without bytecode."""
    site = folder / "site-packages"
    files = (path for path in site.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(site)): path.read_bytes() for path in files}


def expected(version: bytes = b"x = 1\n") -> dict[str, bytes]:
    return {**PURE, **NATIVE, "version.py": version}


def age(folder: Path) -> None:
    """Change the dates of the files, as if the machine had been restarted."""
    (folder / lares_launcher.BOOTED).write_text("another boot")
    os.sync()
