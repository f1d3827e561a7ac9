"""Unpack the single file into a folder, and remove other versions. Most starts do not need this module."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import importlib.util
import json
import lzma
import os
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lares_file import DATE
from lares_launcher import BOOT_ID, BOOTED, FILES, SITE, TAG, is_whole, read

MAGIC = importlib.util.MAGIC_NUMBER.hex()

Use = Callable[[str, bytes, int], object]
"""Receives the name, the content, and the CRC-32 of a file."""


def unpack(archive: str, folder: str) -> None:
    """Create the complete folder for this Python, and sync it to the card. If it already exists, remove old bytecode.

    Concurrent starts wait for each other. Other versions are removed afterwards or, if the card is full, before. If
    an error occurs, no incomplete folder remains. Raise `OSError` if the folder cannot be written, and `ValueError`
    if the archive is damaged.
    """
    base, part = os.path.dirname(folder), f"{folder}.part"
    with locked(base, fcntl.LOCK_EX) as descriptor, contextlib.ExitStack() as stack:
        if is_whole(folder):
            remove_bytecode(folder)
            return
        if sys.stderr.isatty():
            print("lares: unpacking, once for this version ...", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        remove_unused(base, ".part")
        stack.callback(shutil.rmtree, part, ignore_errors=True)
        try:
            write_files(archive, part)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            read_files(archive, lambda *_: None)  # check the archive before other versions are removed
            remove_unused(base)
            write_files(archive, part)
        os.sync()
        os.rename(part, folder)
        os.fsync(descriptor)
        remove_unused(base, keep=folder)


def write_files(archive: str, part: str) -> None:
    """Write the files for this Python, and the list of these files, to a new folder."""
    files = {}

    def write_file(name: str, data: bytes, checksum: int) -> None:
        write(f"{part}/{SITE}/{name}", data)
        files[f"{SITE}/{name}"] = len(data), checksum

    read_files(archive, write_file)
    write(f"{part}/{FILES}", json.dumps(files, separators=(",", ":")).encode())
    write(f"{part}/{BOOTED}", read(BOOT_ID))


def read_files(archive: str, use: Use) -> None:
    """Call `use` for each file for this Python. Use two threads, because decompression takes most of the time. Raise
    `ValueError` if the archive is damaged."""
    keys = {"pure": "", f"compiled/{MAGIC}": MAGIC, f"native/{TAG.split('-')[2]}": TAG}
    try:
        with zipfile.ZipFile(archive) as file, ThreadPoolExecutor(2) as pool:
            parts = json.loads(file.read("parts.json"))
            streams = [(file, name, parts[name], key, use) for name, key in keys.items() if name in parts]
            for _ in pool.map(read_stream, *zip(*streams, strict=True)):
                pass
    except (zipfile.BadZipFile, lzma.LZMAError, KeyError, EOFError) as error:
        raise ValueError(str(error) or type(error).__name__) from None


def read_stream(file: zipfile.ZipFile, stream: str, listed: Sequence[Any], key: str, use: Use) -> None:
    """Call `use` for the files with this key in the stream. Stop reading after the last of these files. Raise
    `ValueError` if a checksum differs."""
    last = max((number for number, (_, _, names) in enumerate(listed) if key in names), default=-1)
    with file.open(f"{stream}.xz") as packed, lzma.open(packed) as content:
        for size, checksum, names in listed[: last + 1]:
            data = content.read(size)
            if (len(data), zlib.crc32(data)) != (size, checksum):
                raise ValueError("a checksum differs")
            for name in names.get(key, ()):
                use(name, data, checksum)


def write(path: str, data: bytes) -> None:
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    os.utime(path, (DATE, DATE))


def remove_bytecode(folder: str) -> None:
    """Remove bytecode that Python wrote after the files were unpacked. A power cut may have left this bytecode
    incomplete."""
    with contextlib.suppress(OSError):  # a read-only card cannot be changed
        unpacked = {f"{folder}/{name}" for name in json.loads(read(f"{folder}/{FILES}"))}
        found = {f"{place}/{name}" for place, _, names in os.walk(f"{folder}/{SITE}") for name in names}
        for path in found - unpacked:
            if ".pyc" in path:  # also files that Python had not renamed yet
                os.unlink(path)
        write(f"{folder}/{BOOTED}", read(BOOT_ID))


def remove_unused(base: str, ending: str = "", keep: str = "") -> None:
    """Remove versions with this ending, except `keep` and versions that a process uses."""
    for name in os.listdir(base):
        path = f"{base}/{name}"
        if "-cpython-" in name and name.endswith(ending) and path != keep:
            with contextlib.suppress(OSError), locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def locked(folder: str, how: int) -> Iterator[int]:
    """Lock the folder for the `with` block, and yield its descriptor. Raise `OSError` if the folder is a link, or if
    another process has locked the folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, how)
        yield descriptor
    finally:
        os.close(descriptor)
