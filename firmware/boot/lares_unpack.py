"""Unpack the single file into a folder, and remove other versions. Most starts do not need this module."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import lzma
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from lares_launcher import BOOTED, DATE, FILES, SITE, TAG, list_others, this_boot

MAGIC = importlib.util.MAGIC_NUMBER.hex()
"""The magic number of this Python's bytecode."""


def unpack(archive: str, folder: str) -> None:
    """Create the folder with all files of this Python: complete and on the card, or not at all.

    Concurrent starts wait. Raise `OSError` if it cannot be written, `ValueError` if the archive is damaged.
    """
    part, files = f"{folder}.part", {}
    with dir_lock(os.path.dirname(folder)):
        if os.path.isdir(folder):
            return
        try:
            with zipfile.ZipFile(archive) as file:
                os.mkdir(part, 0o700)
                for name, data in read_files(file):
                    place(f"{part}/{SITE}/{name}", data)
                    files[f"{SITE}/{name}"] = len(data), zlib.crc32(data)
            place(f"{part}/{BOOTED}", this_boot().encode())
            place(f"{part}/{FILES}", json.dumps(files, separators=(",", ":")).encode())
            os.sync()
            os.rename(part, folder)
            sync(os.path.dirname(folder))
        except (zipfile.BadZipFile, lzma.LZMAError, zlib.error, KeyError, EOFError) as error:
            raise ValueError(str(error) or type(error).__name__) from None
        finally:
            shutil.rmtree(part, ignore_errors=True)


def read_files(file: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file for this Python; raise `ValueError` for a damaged one."""
    parts, alone = json.loads(file.read("parts.json")), frozenset(file.namelist())
    with file.open("rest") as rest:
        for name, checked in parts["pure"].items():
            path = f"{SITE}/{name}"
            yield name, file.read(path) if path in alone else read_part(rest, checked)
    if MAGIC in parts["compiled"]:
        with file.open(f"compiled/{MAGIC}.xz") as packed, lzma.open(packed) as stream:
            for name, checked in parts["compiled"][MAGIC].items():
                yield name, read_part(stream, checked)
    machine, names = TAG.split("-")[2], parts["native"][TAG]
    with file.open(f"native/{machine}.xz") as packed, lzma.open(packed) as stream:
        for index, checked in enumerate(parts["objects"][machine][: max(names.values()) + 1]):
            data = read_part(stream, checked)
            yield from ((name, data) for name, wanted in names.items() if wanted == index)


def read_part(stream: IO[bytes], checked: Sequence[int]) -> bytes:
    """Return the next file of a stream; raise `ValueError` unless it has this size and CRC-32."""
    data = stream.read(checked[0])
    if [len(data), zlib.crc32(data)] != checked:
        raise ValueError("a file in it differs from its checksum")
    return data


def place(path: str, data: bytes) -> None:
    """Create a file with this content."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path, "xb") as file:
        file.write(data)
    os.utime(path, (DATE, DATE))


def sync(path: str) -> None:
    """Wait until the names in a folder are on the card."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def drop_bytecode(folder: str) -> None:
    """Remove bytecode that Python has written since the unpacking: a power cut can leave half-written files."""
    with open(f"{folder}/{FILES}", "rb") as listed:
        files = json.load(listed)
    try:
        for place, _, names in os.walk(f"{folder}/{SITE}"):
            for path in (os.path.join(place, name) for name in names if name.endswith(".pyc")):
                if os.path.relpath(path, folder) not in files:
                    os.unlink(path)
        with open(f"{folder}/{BOOTED}", "w", encoding="ascii") as file:
            file.write(this_boot())
    except OSError:  # the card is read-only now
        return


def remove_others(base: str, *, keep: str) -> None:
    """Remove other versions next to the folder, unless a process runs from them, and leftovers of killed starts."""
    with dir_lock(base):
        for path in sorted(list_others(base, keep=keep), reverse=True):  # X.part before X
            descriptor = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.rename(path, gone := f"{path.removesuffix('.part')}.part")
                shutil.rmtree(gone, ignore_errors=True)
            except BlockingIOError:
                continue
            finally:
                os.close(descriptor)


def discard(folder: str) -> None:
    """Remove a damaged folder."""
    with dir_lock(os.path.dirname(folder)):
        shutil.rmtree(f"{folder}.part", ignore_errors=True)
        os.rename(folder, f"{folder}.part")
        shutil.rmtree(f"{folder}.part", ignore_errors=True)


@contextmanager
def dir_lock(base: str) -> Iterator[None]:
    """Hold the lock of the folder."""
    descriptor = os.open(os.path.join(base, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
