"""The parts of a single file: Python files that all targets share, and each target's compiled objects."""

from __future__ import annotations

import fnmatch
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from firmware import bill, elf
from firmware.targets import Target

MACHINES = {"x86_64": 62, "aarch64": 183}
"""ELF's numbers for the machines."""

_LICENCE = re.compile(r"[^/]*\.dist-info/(licenses/.*|(LICEN[CS]E|COPYING|NOTICE|AUTHORS)[^/]*)")


class UnsupportedWheel(Exception):
    """A wheel holds what cannot go into one file for several targets."""


@dataclass(slots=True)
class Parts:
    """`pure` and `notices` by path; `native` by target and then by path; `packages` are those that are in them."""

    pure: dict[str, bytes] = field(default_factory=dict)
    notices: dict[str, bytes] = field(default_factory=dict)
    native: dict[Target, dict[str, bytes]] = field(default_factory=dict)
    packages: set[bill.Package] = field(default_factory=set)

    def add_wheels(
        self, target: Target, wheels: Sequence[Path], *, keep: Sequence[str], leave_out: Sequence[str]
    ) -> None:
        """Take in what the wheels hold for the target, without what a pattern leaves out and none keeps."""
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

    def _note(self, name: str, data: bytes) -> None:
        """Note what the file says of its package, if it says anything."""
        if bill.METADATA.fullmatch(name):
            self.packages.add(bill.read_metadata(data))
        elif bill.BILL.fullmatch(name):
            self.packages.update(bill.read_bill(data, name.partition("-")[0]))

    def _share(self, name: str, data: bytes, wheel: str) -> None:
        if ".data/" in name:
            raise UnsupportedWheel(f"{wheel} holds {name}, which belongs outside of site-packages")
        if self.pure.setdefault(name, data) != data:
            raise UnsupportedWheel(f"{name} of {wheel} is not the same for all targets")

    def add_folder(self, folder: Path, place: str) -> None:
        """Take in the files of a folder of ours, under the place."""
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
        raise UnsupportedWheel(f"{name} for {target.tag} is another machine's code")
    return lean


def notice(packages: Iterable[bill.Package], notices: Mapping[str, bytes]) -> bytes:
    """What is inside, and all licences, in one text."""
    pieces = (f"--- {name} ---\n\n".encode() + notices[name].rstrip() + b"\n\n" for name in sorted(notices))
    return bill.headline(packages) + b"".join(pieces)


def in_order(native: Mapping[Target, Mapping[str, bytes]], machine: str) -> Iterable[tuple[Target, str]]:
    """A machine's objects, so that what resembles each other lies side by side."""
    found = [(target, name) for target, files in native.items() if target.machine == machine for name in files]
    return sorted(found, key=lambda each: (re.sub(r"[.-].*", "", each[1]), each[0].libc, each[0].python, each[1]))
