"""What is done once a new version has run well: what Python compiled is kept for good, and the old versions go."""

from __future__ import annotations

import os
import sys

from lares_launcher import NAME, candidate_folders
from lares_seal import DATE, SITE, checksum, read_seal
from lares_unpack import compiled, dir_lock, remove_others, sync, write_seal


def seal() -> None:
    """Keep for good what Python has compiled so far; `OSError` where that fails."""
    folder = running_folder()
    with dir_lock(os.path.dirname(folder)):
        seal_compiled(folder)


def remove_old_versions() -> None:
    """Remove every other version that nobody runs from; `OSError` where that fails."""
    folder = running_folder()
    for base in candidate_folders(sys.argv[1:], os.environ):
        if os.path.isdir(base) and os.lstat(base).st_uid == os.geteuid() and not os.path.islink(base):
            remove_others(base, keep=folder)


def running_folder() -> str:
    """The folder from which this process runs."""
    folder = os.path.dirname(sys.path[0])
    assert os.path.basename(folder) == NAME and os.path.basename(sys.path[0]) == SITE
    return folder


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
