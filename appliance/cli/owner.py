"""Root's commands write as the one who owns the folder, so that the hub can read what they have written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def act_as_owner(folder: Path) -> None:
    """From now on be the folder's owner, where root may be that; others stay who they are."""
    owner = folder.stat()
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.setegid(owner.st_gid)
        os.seteuid(owner.st_uid)


@contextmanager
def as_owner(folder: Path) -> Iterator[None]:
    """Be the folder's owner within the context, where root may be that; others stay who they are."""
    user, group = os.geteuid(), os.getegid()
    act_as_owner(folder)
    try:
        yield
    finally:
        if os.geteuid() != user:
            os.seteuid(user)
            os.setegid(group)
