"""ELF files are cut after their last segment, and still run."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from firmware import elf

WHOLE = Path(importlib.util.find_spec("orjson.orjson").origin or "")  # type: ignore[union-attr]


def made(segments: list[tuple[int, int]], *, table: int = 64, length: int = 4096) -> bytes:
    """Return an ELF file of this length, with segments of these offsets and sizes, and with the table at this
    position."""
    head = elf.HEADER.pack(b"\x7fELF\x02\x01\x01", 3, 183, 1, 0, table, 4000, 0, 64, 56, len(segments), 64, 7, 6)
    data = bytearray(head.ljust(length, b"\xaa"))
    for index, (offset, size) in enumerate(segments):
        elf.SEGMENT.pack_into(data, table + 56 * index, 1, 5, offset, offset, offset, size, size, 4096)
    return bytes(data)


@pytest.mark.parametrize(
    ("segments", "table", "left"),
    [
        ([(0, 1000)], 64, 1000),
        ([(0, 1000), (2000, 500)], 64, 2500),
        ([(2000, 500), (0, 1000)], 64, 2500),
        ([(0, 1000)], 3000, 3056),
        ([(0, 4096)], 64, 4096),
        ([], 64, 64),
    ],
    ids=["one", "two", "any order", "table at the end", "nothing to cut", "none"],
)
def test_loaded_sections_are_kept_byte_for_byte(segments: list[tuple[int, int]], table: int, left: int) -> None:
    whole = made(segments, table=table)
    lean = elf.cut(whole)
    assert len(lean) == left and lean[64:] == whole[64:left]
    assert elf.machine(lean) == 183
    assert elf.HEADER.unpack_from(lean)[6] == elf.HEADER.unpack_from(lean)[12] == 0
    assert elf.cut(lean) == lean


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a 64-bit"),
        (b"#!/bin/sh\n" + bytes(100), "not a 64-bit"),
        (b"\x7fELF\x01\x01" + bytes(100), "not a 64-bit"),
        (made([(0, 9000)]), "within a segment"),
        (made([(0, 100)], table=4000)[:4010], "table of segments"),
    ],
)
def test_an_incomplete_elf_file_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        elf.cut(data)


def test_a_compiled_module_runs_without_the_cut_sections(tmp_path: Path) -> None:
    package = tmp_path / "orjson"
    shutil.copytree(Path(orjson.__file__).parent, package)
    lean = elf.cut(WHOLE.read_bytes())
    (package / WHOLE.name).write_bytes(lean)
    assert len(lean) <= WHOLE.stat().st_size
    command = [sys.executable, "-S", "-c", "import orjson; print(orjson.dumps([1]), orjson.__file__)"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("b'[1]'") and str(tmp_path) in done.stdout, done.stderr
