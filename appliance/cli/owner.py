"""Root's commands write as the folder's owner, so that the hub can read what they have written."""

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


@contextmanager
def give_new_files(folder: Path) -> Iterator[None]:
    """What is made in the folder within the context belongs to the folder's owner, or to its parent's if it is new.

    It may be made by root, who can read what the owner cannot.
    """
    if os.geteuid() != 0:
        yield
        return
    before = {folder, *folder.rglob("*")} if folder.exists() else set()
    try:
        yield
    finally:
        like = (folder if folder in before else folder.parent).stat()
        for path in {folder, *folder.rglob("*")} - before:
            if path.exists():
                os.chown(path, like.st_uid, like.st_gid)
