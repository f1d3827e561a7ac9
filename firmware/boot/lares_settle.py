"""What is done once a new version has run well: the old ones go, and what Python compiled is kept for good."""

from __future__ import annotations

import fcntl
import os
import sys

from lares_launcher import DATE, NAME, SITE, checksum, places, read_seal
from lares_unpack import compiled, remove_parts, sync, turn, write_seal


def settle() -> None:
    """Seal what was compiled and remove every other version that nobody runs from; `OSError` where that fails."""
    folder = os.path.dirname(sys.path[0])
    assert os.path.basename(folder) == NAME and os.path.basename(sys.path[0]) == SITE
    with turn(os.path.dirname(folder)):
        seal_compiled(folder)
    for base in places(sys.argv[1:], os.environ):
        if os.path.isdir(base) and os.stat(base).st_uid == os.geteuid():
            with turn(base):
                remove_others(base, keep=folder)


def seal_compiled(folder: str) -> None:
    """Add what Python has compiled to the folder's seal, once it is on the card."""
    files = read_seal(folder)
    fresh = {os.path.relpath(path, folder): path for path in compiled(folder) if path.endswith(".pyc")}
    fresh = {name: path for name, path in fresh.items() if name not in files}
    for path in fresh.values():
        os.utime(path, (DATE, DATE))
        sync(path)
    if fresh:
        write_seal(folder, {**files, **{name: [os.stat(p).st_size, checksum(p)] for name, p in fresh.items()}})


def remove_others(base: str, *, keep: str) -> None:
    """Remove what lies unpacked beside the folder to keep, unless a process runs from it."""
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
