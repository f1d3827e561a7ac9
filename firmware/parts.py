"""Collects the parts of a single file: shared Python files, and compiled objects by target."""

from __future__ import annotations

import fnmatch
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from firmware import elf, spdx
from firmware.targets import Target

MACHINES = {"x86_64": 62, "aarch64": 183}
"""Maps machine names to ELF machine numbers."""

_LICENCE = re.compile(r"[^/]*\.dist-info/(licenses/.*|(LICEN[CS]E|COPYING|NOTICE|AUTHORS)[^/]*)")


class UnsupportedWheel(Exception):
    """Raised if a wheel has content that a file for several targets cannot contain."""


@dataclass(slots=True)
class Parts:
    """`pure` and `notices` are files by path. `native` are compiled objects by target and path. `compiled` is
    bytecode by magic number and path.
    """

    pure: dict[str, bytes] = field(default_factory=dict)
    notices: dict[str, bytes] = field(default_factory=dict)
    native: dict[Target, dict[str, bytes]] = field(default_factory=dict)
    compiled: dict[str, dict[str, bytes]] = field(default_factory=dict)
    packages: set[spdx.Package] = field(default_factory=set)

    def add_wheels(
        self, target: Target, wheels: Sequence[Path], *, keep: Sequence[str], leave_out: Sequence[str]
    ) -> None:
        """Add the files of the wheels, except files that match `leave_out` but not `keep`."""
        excluded, kept = _any(leave_out), _any(keep)
        native = self.native.setdefault(target, {})
        for wheel in wheels:
            for name, data in _members(wheel):
                self._note(name, data)
                if _LICENCE.fullmatch(name):
                    self.notices[name] = data
                elif excluded.fullmatch(name) and not kept.fullmatch(name):
                    continue
                elif ".so" in name.rpartition("/")[2]:
                    native[name] = _object(name, data, target)
                else:
                    self._share(name, data, wheel.name)

    def join_zones(self) -> None:
        """Join the 600 files of tzdata into one file, because reading many files from a card is slow. `find_zone`
        in `home_locale` reads the result."""
        places, joined = dict[bytes, int](), b""
        index = dict[str, tuple[int, int]]()
        folder = "tzdata/zoneinfo/"
        for name in self.pure["tzdata/zones"].decode().split():
            data = self.pure[folder + name]
            if data not in places:  # many zones have several names
                places[data] = len(joined)
                joined += data
            index[name] = places[data], len(data)
        self.pure = {name: data for name, data in self.pure.items() if not name.startswith(folder)}
        self.pure["tzdata/zones.joined"] = json.dumps(index, separators=(",", ":")).encode() + b"\n" + joined

    def _note(self, name: str, data: bytes) -> None:
        """If the file is package metadata, add the packages that it lists."""
        if spdx.METADATA.fullmatch(name):
            self.packages.add(spdx.read_metadata(data))
        elif spdx.CYCLONEDX.fullmatch(name):
            self.packages.update(spdx.read_cyclonedx(data, name.partition("-")[0]))

    def _share(self, name: str, data: bytes, wheel: str) -> None:
        if ".data/" in name:
            raise UnsupportedWheel(f"{wheel} contains {name}, which does not belong in site-packages")
        if self.pure.setdefault(name, data) != data:
            raise UnsupportedWheel(f"{name} in {wheel} differs between targets")

    def add_folder(self, folder: Path, place: str) -> None:
        """Add the files of a folder of the checkout, below `place`."""
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            is_ours = not re.search(r"(^|/)(\.|__pycache__/)|\.pyc$|~$", name) or name.endswith(".luarc.json")
            if path.is_file() and is_ours:
                self.pure[f"{place}/{name}"] = path.read_bytes()


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns))


def _members(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                yield entry.filename, archive.read(entry)


def _object(name: str, data: bytes, target: Target) -> bytes:
    try:
        lean = elf.cut(data)
    except ValueError as error:
        raise UnsupportedWheel(f"{name} for {target.tag}: {error}") from None
    if elf.machine(lean) != MACHINES[target.machine]:
        raise UnsupportedWheel(f"{name} for {target.tag} is compiled for a different type of machine")
    return lean


def notice(packages: Iterable[spdx.Package], notices: Mapping[str, bytes]) -> bytes:
    """Return the list of packages and all licences as one text."""
    pieces = (f"--- {name} ---\n\n".encode() + notices[name].rstrip() + b"\n\n" for name in sorted(notices))
    return spdx.headline(packages) + b"".join(pieces)


def in_order(native: Mapping[Target, Mapping[str, bytes]], machine: str) -> Iterable[tuple[Target, str]]:
    """Return a machine's objects, grouped by target. A box stops unpacking after the last object of its target."""
    found = [(target, name) for target, files in native.items() if target.machine == machine for name in files]
    return sorted(found, key=lambda each: (each[0].libc, each[0].python, each[1]))
