"""Writes the single file's content to a folder: whole or not at all, on the card before it counts, and read back."""

from __future__ import annotations

import fcntl
import json
import lzma
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from lares_seal import BOOTED, DATE, SEAL, SITE, TAG, is_corrupt, read_seal, this_boot


def unpack(archive: str, folder: str) -> None:
    """Make the folder with all that the archive holds for this Python. Who comes at the same time waits.

    `OSError` where it cannot be written, `ValueError` where the archive is damaged; then nothing is left behind.
    """
    base = os.path.dirname(folder)
    with dir_lock(base):
        if os.path.isdir(folder):
            return
        remove_parts(base)
        part = f"{folder}.part"
        try:
            fill(archive, part)
            os.sync()
            fetch(part)
            if is_corrupt(part, deep=True):
                raise OSError(None, "what was written reads differently")
            os.rename(part, folder)
            sync(base)
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
    """Note that all bytes were looked at in this boot, and drop what was compiled and is not sealed: who knows."""
    sealed = read_seal(folder)
    try:
        for path in list(compiled(folder)):
            if os.path.relpath(path, folder) not in sealed:
                os.unlink(path)
        write(os.path.join(folder, BOOTED), boot.encode())
    except OSError:  # on a card that is read-only now
        return


@contextmanager
def dir_lock(base: str) -> Iterator[None]:
    """Wait until nobody else writes in the folder."""
    descriptor = os.open(os.path.join(base, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def fill(archive: str, folder: str) -> None:
    """Write all that the archive holds for this Python, and the seal last."""
    try:
        with ThreadPoolExecutor(1) as thread, zipfile.ZipFile(archive) as file:
            parts = json.loads(file.read("parts.json"))
            native = thread.submit(place_objects, archive, parts, folder)  # half of the work, on another core
            for name in parts["pure"]:
                place(f"{folder}/{SITE}/{name}", file.read(f"{SITE}/{name}"))
            native.result()
    except (zipfile.BadZipFile, lzma.LZMAError, zlib.error, KeyError, EOFError) as error:
        raise ValueError(str(error) or type(error).__name__) from None
    sizes = parts["objects"][machine_of(TAG)]
    sealed = {name: sizes[index] for name, index in parts["native"][TAG].items()}
    write_seal(folder, {f"{SITE}/{name}": each for name, each in (parts["pure"] | sealed).items()})
    write(os.path.join(folder, BOOTED), this_boot().encode())


def place_objects(archive: str, parts: Mapping[str, Any], folder: str) -> None:
    """Have the compiled objects of this Python."""
    with zipfile.ZipFile(archive) as file:
        for names, data in objects(file, parts):
            for name in names:
                place(f"{folder}/{SITE}/{name}", data)


def machine_of(tag: str) -> str:
    """The machine that a target's tag names."""
    return tag.split("-")[2]


def objects(file: zipfile.ZipFile, parts: Mapping[str, Any]) -> Iterator[tuple[list[str], bytes]]:
    """The compiled objects of this Python, each with the names that it goes by; one at a time is in memory."""
    machine = machine_of(TAG)
    needed: dict[int, list[str]] = {}
    for name, index in parts["native"][TAG].items():
        needed.setdefault(index, []).append(name)
    with file.open(f"native/{machine}.xz") as packed, lzma.open(packed) as stream:
        for index, (size, check) in enumerate(parts["objects"][machine][: max(needed) + 1]):
            data = stream.read(size)
            if len(data) != size or zlib.crc32(data) != check:
                raise ValueError(f"object {index} for {machine}")
            if index in needed:
                yield needed[index], data


def place(path: str, data: bytes) -> None:
    """Have a file with this content, where there was none."""
    try:
        file = open(path, "xb")
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        file = open(path, "xb")
    with file:
        file.write(data)
        file.flush()
        os.utime(file.fileno(), (DATE, DATE))


def write(path: str, data: bytes) -> None:
    """Put a file in the place of any old one."""
    part = f"{path}.{os.getpid()}.part"
    with open(part, "wb") as file:
        file.write(data)
    os.rename(part, path)


def write_seal(folder: str, files: Mapping[str, object]) -> None:
    """Say what the folder holds, on the card before it counts."""
    path = os.path.join(folder, SEAL)
    write(f"{path}.new", json.dumps({"files": files}, separators=(",", ":"), sort_keys=True).encode())
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
    """Let the system forget what it holds of the folder's files, and read them from the card again.

    Waiting for one after another would take three times as long.
    """
    for path in walk(folder):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
        os.close(descriptor)


def compiled(folder: str) -> Iterator[str]:
    """What Python has compiled in the folder."""
    return (path for path in walk(folder) if "/__pycache__/" in path)


def walk(folder: str) -> Iterator[str]:
    """Every file under the folder."""
    for root, _, names in os.walk(folder):
        yield from (os.path.join(root, name) for name in names)


def remove_parts(base: str) -> None:
    """Remove what a killed start has left; for who holds the lock."""
    for name in os.listdir(base):
        if name.endswith(".part"):
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)


def remove_others(base: str, *, keep: str) -> None:
    """Remove what lies unpacked beside the folder to keep, unless a process runs from it."""
    with dir_lock(base):
        for name in os.listdir(base):
            path = os.path.join(base, name)
            if path != keep and "-cpython-" in name and not name.endswith(".part") and is_idle(path):
                os.rename(path, f"{path}.part")
        remove_parts(base)


def is_idle(folder: str) -> bool:
    """Whether no process runs from the folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
