"""Whose home it is: root's commands become the user of the home that they work on, before they open anything."""

from __future__ import annotations

import importlib
import itertools
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from appliance.errors import StartFailed

ROOT = 0

_IMPORTED_LATE = (
    "encodings.ascii",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.utf_8_sig",
    "_strptime",
    "ctypes",
)
"""What Python imports when it is first needed: the user may not be allowed to read root's Python any more then."""


def become_owner(*paths: Path) -> None:
    """Be from now on the user, groups and all, whose home the paths are, if this is root and it is another's.

    A path that is a link is refused to root with `StartFailed`.
    """
    owner = find_owner(*paths)
    if owner is not None:
        groups, uid = _groups_of(owner), owner.st_uid
        os.setgroups(groups)
        os.setresgid(groups[0], groups[0], groups[0])
        os.setresuid(uid, uid, uid)


@contextmanager
def as_owner(*paths: Path) -> Iterator[None]:
    """The same within the context alone: for what runs no code of the home's."""
    owner = find_owner(*paths)
    if owner is None:
        yield
        return
    groups, own, group = _groups_of(owner), os.getgroups(), os.getegid()
    os.setgroups(groups)
    os.setegid(groups[0])
    os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(ROOT)
        os.setegid(group)
        os.setgroups(own)


def find_owner(*paths: Path) -> os.stat_result | None:
    """The user whose home the paths are; None where that is root, or this process is not root.

    It is the owner of the first of the paths that is not root's, else of the uppermost folder above one that is not:
    whoever owns that can put anything in the place of what lies below. Raises `StartFailed` where a path is a link.
    """
    if os.geteuid() != ROOT:
        return None
    for name in _IMPORTED_LATE:
        with suppress(ImportError):
            importlib.import_module(name)
    chains = [_chain_of(path) for path in paths]
    last = [chain[-1] for chain in chains]
    return next((each for each in (*last, *itertools.chain(*chains)) if each.st_uid != ROOT), None)


def _chain_of(path: Path) -> list[os.stat_result]:
    """What is on the way to the path, from the uppermost folder on, as far as it exists."""
    chain = []
    for each in (*reversed(path.absolute().parents), path.absolute()):
        try:
            found = each.lstat()
        except OSError:
            break
        if stat.S_ISLNK(found.st_mode):
            if each == path.absolute() or found.st_uid != ROOT:
                raise StartFailed(
                    f"{each} is a link, which root does not follow; name what it leads to", os.EX_NOPERM
                )
            found = each.stat()
        chain.append(found)
    return chain


def _groups_of(owner: os.stat_result) -> list[int]:
    """The user's groups, the main one first, as at a login; a user without a name has the folder's, never root's."""
    try:
        user = pwd.getpwuid(owner.st_uid)
    except KeyError:
        return [owner.st_gid or owner.st_uid]
    return os.getgrouplist(user.pw_name, user.pw_gid)


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
