"""Writes the single file's content to a folder: whole or not at all, on the card before it counts, and read back.

A hub does not wait for that at its first start: its files count until the next boot, and `lares_settle` syncs them
once the hub serves.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import lzma
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, Any

from lares_seal import BOOTED, DATE, SEAL, SITE, TAG, is_corrupt, read_seal, this_boot

MAGIC = importlib.util.MAGIC_NUMBER.hex()
"""The magic number of this Python's bytecode."""


def unpack(archive: str, folder: str, *, is_for_hub: bool = False) -> None:
    """Make the folder with all that the archive holds for this Python. Concurrent starts wait.

    Where `is_for_hub`, it need not be on the card yet. `OSError` if it cannot be written, `ValueError` if the
    archive is damaged; then nothing is left over.
    """
    base, part = os.path.dirname(folder), f"{folder}.part"
    boot = {"boot": this_boot()} if is_for_hub and this_boot() else {}
    with dir_lock(base):
        if os.path.isdir(folder):
            return
        remove_parts(base)
        try:
            with zipfile.ZipFile(archive) as file:
                parts = json.loads(file.read("parts.json"))
                os.mkdir(part, 0o700)
                fill(file, parts, part)
            write_seal(part, sealed_by(parts), **boot)
            if not boot:
                settle(part)
            os.rename(part, folder)
            if not boot:
                sync(base)
        except (zipfile.BadZipFile, lzma.LZMAError, zlib.error, KeyError, EOFError) as error:
            shutil.rmtree(part, ignore_errors=True)
            raise ValueError(str(error) or type(error).__name__) from None
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


def discard(folder: str) -> None:
    """Remove a folder that is damaged, and what Python compiled there."""
    base = os.path.dirname(folder)
    with dir_lock(base):
        remove_parts(base)
        os.rename(folder, f"{folder}.part")
        remove_parts(base)


def mark_verified(folder: str, boot: str) -> None:
    """Note that all bytes were checked in this boot, and drop unsealed bytecode, which may be damaged."""
    sealed = read_seal(folder)["files"]
    try:
        for path in list(compiled(folder)):
            if os.path.relpath(path, folder) not in sealed:
                os.unlink(path)
        write(os.path.join(folder, BOOTED), boot.encode())
    except OSError:  # on a card that is read-only now
        return


@contextmanager
def dir_lock(base: str) -> Iterator[None]:
    """Hold the lock of the folder."""
    descriptor = os.open(os.path.join(base, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def fill(file: zipfile.ZipFile, parts: Mapping[str, Any], folder: str) -> None:
    """Write all that the archive holds for this Python but the seal."""
    with ThreadPoolExecutor(2) as threads:
        packed = [threads.submit(each, file, parts, folder) for each in (place_objects, place_compiled)]
        alone = frozenset(file.namelist())
        with file.open("rest") as rest:
            for name, (size, check) in parts["pure"].items():
                path = f"{SITE}/{name}"
                place(f"{folder}/{path}", file.read(path) if path in alone else read_part(rest, size, check, name))
        for each in packed:
            each.result()
    write(os.path.join(folder, BOOTED), this_boot().encode())


def read_part(stream: IO[bytes], size: int, check: int, name: str) -> bytes:
    """Return the next part of a stream that holds many; `ValueError` if it is not what `parts.json` states."""
    data = stream.read(size)
    if len(data) != size or zlib.crc32(data) != check:
        raise ValueError(f"{name} is damaged")
    return data


def sealed_by(parts: Mapping[str, Any]) -> dict[str, object]:
    """Size and CRC-32 of every file that is unpacked for this Python."""
    sizes = parts["objects"][machine_of(TAG)]
    native = {name: sizes[index] for name, index in parts["native"][TAG].items()}
    compiled_here = parts["compiled"].get(MAGIC, {})
    return {f"{SITE}/{name}": each for name, each in (parts["pure"] | compiled_here | native).items()}


def settle(folder: str) -> None:
    """Have all of the folder on the card, and read it from there; `OSError` if it reads differently."""
    os.sync()
    fetch(folder)
    if is_corrupt(folder, deep=True):
        raise OSError(None, "what was written reads differently")


def place_objects(file: zipfile.ZipFile, parts: Mapping[str, Any], folder: str) -> None:
    """Have the compiled objects of this Python; one at a time is in memory."""
    machine = machine_of(TAG)
    needed: dict[int, list[str]] = {}
    for name, index in parts["native"][TAG].items():
        needed.setdefault(index, []).append(name)
    with file.open(f"native/{machine}.xz") as packed, lzma.open(packed) as stream:
        for index, (size, check) in enumerate(parts["objects"][machine][: max(needed) + 1]):
            data = read_part(stream, size, check, f"object {index} for {machine}")
            for name in needed.get(index, ()):
                place(f"{folder}/{SITE}/{name}", data)


def place_compiled(file: zipfile.ZipFile, parts: Mapping[str, Any], folder: str) -> None:
    """Write the bytecode of the modules that a hub imports first, if the archive has it for this Python."""
    if MAGIC in parts["compiled"]:
        with file.open(f"compiled/{MAGIC}.xz") as packed, lzma.open(packed) as stream:
            for name, (size, check) in parts["compiled"][MAGIC].items():
                place(f"{folder}/{SITE}/{name}", read_part(stream, size, check, name))


def machine_of(tag: str) -> str:
    """Return the machine that a target's tag names."""
    return tag.split("-")[2]


def place(path: str, data: bytes) -> None:
    """Create a file with this content."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, flags, 0o666)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.utime(descriptor, (DATE, DATE))
    finally:
        os.close(descriptor)


def write(path: str, data: bytes) -> None:
    """Put a file in the place of any old one."""
    part = f"{path}.{os.getpid()}.part"
    with open(part, "wb") as file:
        file.write(data)
    os.rename(part, path)


def write_seal(folder: str, files: Mapping[str, object], **boot: str) -> None:
    """Write the list of the folder's files: durable before it counts, or for this boot only."""
    path = os.path.join(folder, SEAL)
    write(f"{path}.new", json.dumps({"files": files, **boot}, separators=(",", ":"), sort_keys=True).encode())
    if not boot:
        sync(f"{path}.new")
    os.rename(f"{path}.new", path)


def sync(path: str) -> None:
    """Wait until a file or folder is on the card."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fetch(folder: str) -> None:
    """Drop the folder's files from the system's cache, and read them from the card again.

    Waiting for one after another would take three times as long.
    """
    for path in walk(folder):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
        os.close(descriptor)


def compiled(folder: str) -> Iterator[str]:
    """Return what Python has compiled in the folder."""
    return (path for path in walk(folder) if "/__pycache__/" in path)


def walk(folder: str) -> Iterator[str]:
    """Yield every file under the folder."""
    for root, _, names in os.walk(folder):
        yield from (os.path.join(root, name) for name in names)


def remove_parts(base: str) -> None:
    """Remove leftovers of a killed start; the caller holds the lock."""
    for name in os.listdir(base):
        if name.endswith(".part"):
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)


def remove_others(base: str, *, keep: str) -> None:
    """Remove what lies unpacked next to the folder to keep, unless a process runs from it."""
    with dir_lock(base):
        for name in os.listdir(base):
            path = os.path.join(base, name)
            if path != keep and "-cpython-" in name and not name.endswith(".part") and is_idle(path):
                os.rename(path, f"{path}.part")
        remove_parts(base)


def is_idle(folder: str) -> bool:
    """Return whether no process runs from the folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
