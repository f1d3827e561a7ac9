"""Packs the single file with shiv, which the project prescribes, and rewrites the result.

The file keeps shiv's first line, and `environment.json`, which `shiv-info` shows. `boot/` replaces shiv's start code.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import shutil
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firmware import release, spdx
from firmware.bytecode import DATE, compile_hub
from firmware.parts import Parts, UnsupportedWheel, in_order, notice
from firmware.pip import Run
from firmware.targets import Table, Target, describe, read_targets
from firmware.wheels import Store, cache_dir

LONG_AGO = (1980, 1, 1, 0, 0, 0)
MEMORY = 16 << 20
"""Maximum memory for unpacking on a box, in bytes. A lower limit would make the file larger, because similar objects
of different targets are compressed together."""

FIRST = ("__main__.py", "lares_launcher.py", "lares_unpack.py")
"""Modules that run from the packed file itself, before the files are unpacked."""

BUNDLED = "appliance/bundled/"
"""Files that `install.sh` also extracts."""

CARRIED = ("install.sh", "systemd/lares.service", "openwrt/lares.init", "avahi/lares.service")
"""Files that are extracted only during an installation."""

WHEN_CUT = b"""# coding: latin-1
"lares: this file is cut off or damaged; copy it to this box again
"""
"""Text after the file's first line. If the file is truncated, Python shows this text as an invalid line."""

DIGEST_CHARS = 64
"""The length of the digest at the file's end."""

Row = tuple[int, int, dict[str, list[str]]]
"""One or more files with equal content in a stream: their size, their CRC-32, and their paths by key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """Builds the single file from a checkout. `run` runs a command, and raises an exception if the command fails.
    `pythons` contains the version and path of each Python that compiles bytecode.
    """

    root: Path
    run: Run
    say: Callable[[str], None]
    pythons: Sequence[tuple[str, str]]

    def build(self, tags: Sequence[str]) -> list[Path]:
        """Create `dist/lares.pyz`, or one file per tag. Raise `UnknownTarget` if a tag is unknown."""
        made_of = release.commit_of(self.root)
        table = read_targets(self.root / "firmware" / "targets.toml")
        folder = cache_dir(self.root / "build")
        store = Store(folder=folder, run=self.run, say=self.say)
        groups = [(tag, table.choose([tag])) for tag in tags] or [("", table.targets)]
        python = store.tools(self.root / "firmware" / "build.lock")
        lock = self.root / "firmware" / "runtime.lock"
        return [self._make(python, tag, table, store.wheels(python, lock, group), made_of) for tag, group in groups]

    def _make(
        self,
        python: str,
        tag: str,
        table: Table,
        wheels: Mapping[Target, Sequence[Path]],
        made_of: Mapping[str, Any],
    ) -> Path:
        settings = tomllib.loads((self.root / "shiv.toml").read_text())
        self.say(f"packing for {tag or f'{len(wheels)} targets'}")
        parts = Parts()
        keep, leave_out = settings["wheels"]["keep"], settings["wheels"]["leave-out"]
        for target, files in wheels.items():
            parts.add_wheels(target, files, keep=keep, leave_out=leave_out)
        parts.join_zones()
        self._add_ours(parts)
        file = self.root / "dist" / (f"lares-{tag}.pyz" if tag else "lares.pyz")
        file.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="lares-build-") as name:
            stage, packed = Path(name) / "stage", Path(name) / "packed"
            _write(parts.pure, stage)
            self.run(_shiv(python, settings["shiv"], stage, packed), env=_quiet())
            versions = {target.python for target in wheels}
            compilers = {version: path for version, path in self.pythons if version.rpartition(".")[0] in versions}
            compile_hub(parts, stage, compilers.values(), self.run)
            write_archive(packed, self.root / "firmware" / "boot", parts, table.oldest_glibc, Path(name) / "done")
            _replace(Path(name) / "done", file)
        used = {wheel.name: wheel for files in wheels.values() for wheel in files}
        options = ["pyz", "--target", tag] if tag else []
        release.write_companions(file, self.root, parts, used.values(), made_of, [*compilers], options)
        return file

    def _add_ours(self, parts: Parts) -> None:
        parts.add_folder(self.root / "appliance", "appliance")
        parts.add_folder(self.root / "config", BUNDLED.rstrip("/"))
        parts.notices["lares/LICENSE"] = (self.root / "LICENSE").read_bytes()
        self._add_lua(parts)

    def _add_lua(self, parts: Parts) -> None:
        """Add Lua and its licence, because lupa's wheel lists neither."""
        sign = f"Lua {spdx.LUA.version} ".encode()
        if not all(any(sign in data for data in files.values()) for files in parts.native.values()):
            raise UnsupportedWheel(
                f"lupa does not contain Lua {spdx.LUA.version}; update the version in firmware/spdx.py"
            )
        text = self.root / "firmware" / "licences" / f"lua-{spdx.LUA.version}.txt"
        parts.notices["lua/LICENSE"] = text.read_bytes()
        parts.packages.add(spdx.LUA)


def _quiet() -> dict[str, str]:
    """Return environment variables that do not configure shiv."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}


def _shiv(python: str, settings: Mapping[str, Any], stage: Path, file: Path) -> list[str]:
    flags = [f"--{name}" for name, value in settings.items() if value is True]
    options = [f"--{name}={value}" for name, value in settings.items() if not isinstance(value, bool)]
    return [python, "-I", "-m", "shiv", *flags, *options, f"--site-packages={stage}", f"--output-file={file}"]


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o644)


def _replace(done: Path, file: Path) -> None:
    """Replace the file atomically, even from another file system."""
    part = file.with_suffix(f".part{os.getpid()}")
    shutil.copyfile(done, part)
    part.chmod(0o755)
    part.rename(file)


def write_archive(packed: Path, boot: Path, parts: Parts, oldest_glibc: str, file: Path) -> None:
    """Rewrite shiv's archive: sorted, without dates, with the start code of `boot/`, and with the files in xz
    streams."""
    streams = {name: _join(files) for name, files in _streams(parts).items()}
    listed = json.dumps({name: rows for name, (rows, _) in streams.items()}, separators=(",", ":")).encode()
    entries = {name: (boot / name).read_bytes() for name in FIRST}
    entries |= {f"firmware/{name}": (boot.parent / name).read_bytes() for name in CARRIED}
    build = hashlib.sha256()
    for data in (listed, *(data for _, data in streams.values()), *entries.values()):
        build.update(hashlib.sha256(data).digest())
    tags = tuple(target.tag for target in parts.native)
    glibc = tuple(map(int, oldest_glibc.split(".")))
    held = {"BUILD": build.hexdigest()[:16], "DATE": DATE, "GLIBC": glibc, "TARGETS": tags}
    held["NEEDS"] = describe(parts.native, oldest_glibc)
    lares_file = "".join(f"{name} = {value!r}\n" for name, value in held.items()).encode()
    entries |= {"lares_file.py": lares_file, "parts.json": listed, "NOTICE": notice(parts.packages, parts.notices)}
    entries |= {f"site-packages/{name}": data for name, data in parts.pure.items() if name.startswith(BUNDLED)}
    with packed.open("rb") as shiv:
        first_line = shiv.readline()
        entries["environment.json"] = zipfile.ZipFile(shiv).read("environment.json")
    with ThreadPoolExecutor() as pool:
        blobs = dict(zip(streams, pool.map(_compress, (data for _, data in streams.values())), strict=True))
    with file.open("wb") as stream:
        stream.write(first_line + WHEN_CUT)
        with zipfile.ZipFile(stream, "w") as archive:
            for name in sorted(entries):
                _add(archive, name, entries[name], zipfile.ZIP_DEFLATED)
            for name, blob in sorted(blobs.items()):
                _add(archive, f"{name}.xz", blob, zipfile.ZIP_STORED)
    seal(file)


def seal(file: Path) -> None:
    """Set the archive's comment to the SHA-256 of the other bytes of the file. `lares upgrade` verifies it."""
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = bytes(DIGEST_CHARS)
    with file.open("r+b") as stream:
        data = stream.read()[:-DIGEST_CHARS]
        stream.seek(len(data))
        stream.write(hashlib.sha256(data).hexdigest().encode())


def _add(archive: zipfile.ZipFile, name: str, data: bytes, compression: int) -> None:
    entry = zipfile.ZipInfo(name, LONG_AGO)
    entry.external_attr = 0o100644 << 16
    archive.writestr(entry, data, compression, compresslevel=9)


def _streams(parts: Parts) -> dict[str, Iterable[tuple[str, str, bytes]]]:
    """Return the key, path, and content of the files in each stream. An empty key means that the files are for all
    Pythons."""
    machines = sorted({target.machine for target in parts.native})
    return {
        "pure": [("", name, data) for name, data in sorted(parts.pure.items())],
        **{
            f"compiled/{magic}": [(magic, name, data) for name, data in files.items()]
            for magic, files in parts.compiled.items()
        },
        **{
            f"native/{machine}": [
                (target.tag, name, parts.native[target][name]) for target, name in in_order(parts.native, machine)
            ]
            for machine in machines
        },
    }


def _join(files: Iterable[tuple[str, str, bytes]]) -> tuple[list[Row], bytes]:
    """Return the rows of `parts.json` for a stream, and the stream's data. If several files have equal content, the
    content is stored once."""
    found: dict[bytes, dict[str, list[str]]] = {}
    for key, name, data in files:
        found.setdefault(data, {}).setdefault(key, []).append(name)
    return [(len(data), zlib.crc32(data), names) for data, names in found.items()], b"".join(found)


def _compress(data: bytes) -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": min(MEMORY, max(len(data), 1 << 12))}]
    return lzma.compress(data, lzma.FORMAT_XZ, lzma.CHECK_CRC32, filters=filters)
