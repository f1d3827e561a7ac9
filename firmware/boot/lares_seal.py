"""Whether what was unpacked is whole: by size and date, or by every byte."""

from __future__ import annotations

import json
import os
import zlib
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

TAG = EXTENSION_SUFFIXES[0][1:-3]
"""What this Python calls the compiled modules that it takes."""

SEAL = "seal.json"
"""Lists every file of the folder, but itself and `BOOTED`, with its size and its CRC-32.

If it names a boot, it was written before all of them were on the card, and holds in that boot alone.
"""

BOOTED = "booted"
"""Tells the boot in which every byte was last looked at."""

SITE = "site-packages"
DATE = 1_500_000_000
"""The date of every unpacked file: writing to one changes it."""


def is_corrupt(folder: str, *, deep: bool) -> bool:
    """Return whether a file of the folder is missing or changed, by size and date or, if `deep`, by every byte."""
    try:
        for name, (size, check) in read_seal(folder)["files"].items():
            path = f"{folder}/{name}"
            status = os.stat(path)
            if status.st_size != size or status.st_mtime != DATE or (deep and checksum(path) != check):
                return True
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return True
    return False


def read_seal(folder: str) -> dict[str, Any]:
    """`files` with size and CRC-32 of each, and `boot` if it holds in this boot alone.

    `ValueError` or the like if the seal itself is damaged, or the box went down before all was on the card.
    """
    with open(os.path.join(folder, SEAL), "rb") as file:
        seal: dict[str, Any] = json.loads(file.read())
    if seal.get("boot", this_boot()) != this_boot():
        raise ValueError("of another boot")
    return seal


def checksum(path: str) -> int:
    """Return the CRC-32 of a file."""
    with open(path, "rb") as file:
        return zlib.crc32(file.read())


def this_boot() -> str:
    """Return the id of this boot of the box; empty if there is none."""
    return read_text("/proc/sys/kernel/random/boot_id")


def read_text(path: str) -> str:
    """Return what a small file states; empty if it cannot be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
