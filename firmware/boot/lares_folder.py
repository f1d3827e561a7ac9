"""The unpacked folder of this version: its name, its lock, and the check of its files."""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from importlib.machinery import EXTENSION_SUFFIXES

from lares_file import BUILD, DATE

TAG = EXTENSION_SUFFIXES[0][1:-3]
"""This Python's tag for compiled modules."""

NAME = f"{BUILD}-{TAG}"
"""Name of the unpacked folder."""

SITE = "site-packages"
FILES = "files.json"
"""A file that lists the size and CRC-32 of every unpacked file."""

BOOTED = "booted"
"""A file that contains the id of the boot during which bytecode was last removed."""

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def hold(folder: str) -> bool:
    """Lock the folder against removal until this process ends. Return False if the folder is missing or is being
    removed."""
    try:
        fcntl.flock(os.open(folder, os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_whole(folder: str, *, deep: bool = False) -> bool:
    """Return whether the size and date of every file are unchanged. If `deep` is true, also check the bytecode and
    the contents."""
    try:
        for name, (size, checksum) in json.loads(read(f"{folder}/{FILES}")).items():
            if deep or not name.endswith(".pyc"):  # Python itself replaces bytecode whose size is wrong
                status = os.stat(f"{folder}/{name}")
                is_same = status.st_size == size and status.st_mtime == DATE
                if not is_same or (deep and zlib.crc32(read(f"{folder}/{name}")) != checksum):
                    return False
    except (OSError, ValueError, TypeError, AttributeError):
        return False
    return True


def read_boot(path: str) -> bytes:
    """Return the id of a boot, or an empty string if the id cannot be read."""
    try:
        return read(path)
    except OSError:
        return b""


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
