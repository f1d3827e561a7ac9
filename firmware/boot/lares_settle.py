"""What is done once a new version has run well: it and what was compiled are kept for good, and the old ones go."""

from __future__ import annotations

import contextlib
import os
import sys

from lares_launcher import NAME, candidate_folders
from lares_seal import BOOTED, DATE, SITE, checksum, read_seal
from lares_unpack import compiled, dir_lock, remove_others, settle, sync, write_seal


def seal() -> None:
    """Keep for good what is unpacked, and what was compiled so far; `OSError` if that fails."""
    folder = running_folder()
    with dir_lock(os.path.dirname(folder)):
        seal_compiled(folder)


def remove_old_versions() -> None:
    """Remove every other version that nobody runs from; `OSError` if that fails."""
    folder = running_folder()
    for base in candidate_folders(sys.argv[1:], os.environ):
        if os.path.isdir(base) and os.lstat(base).st_uid == os.geteuid() and not os.path.islink(base):
            remove_others(base, keep=folder)


def running_folder() -> str:
    """Return the folder from which this process runs."""
    folder = os.path.dirname(sys.path[0])
    assert os.path.basename(folder) == NAME and os.path.basename(sys.path[0]) == SITE
    return folder


def seal_compiled(folder: str) -> None:
    """Add what Python has compiled to the folder's seal, which holds for good once all is on the card."""
    before = read_seal(folder)
    names = {os.path.relpath(path, folder): path for path in compiled(folder) if path.endswith(".pyc")}
    fresh = {name: path for name, path in names.items() if name not in before["files"]}
    for path in fresh.values():
        os.utime(path, (DATE, DATE))
    files = {**before["files"], **{name: [os.stat(path).st_size, checksum(path)] for name, path in fresh.items()}}
    if "boot" in before:  # a hub's first start
        write_seal(folder, files, boot=before["boot"])
        try:
            settle(folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, BOOTED))  # so that the next start looks at every byte
            raise
        write_seal(folder, files)
        sync(os.path.dirname(folder))
    elif fresh:
        for path in fresh.values():
            sync(path)
        write_seal(folder, files)
