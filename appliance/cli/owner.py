"""Switches from root to the user that owns the home, before a command opens the home's files."""

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
from appliance.store.disk import for_its_user, user_name

ROOT = 0

_IMPORTED_LATE = (
    *(f"encodings.{each}" for each in ("ascii", "idna", "latin_1", "unicode_escape", "utf_8_sig")),
    *("concurrent.futures.thread", "ctypes", "difflib", "shutil"),
    *("argon2", "argon2.exceptions", "astral.sun", "croniter", "jinja2.ext"),
)
"""Modules that are imported before the process switches to another user, because the owner of the home may be unable
to read root's Python or unpacked files."""


def become_owner(*paths: Path) -> None:
    """If this process is root and another user owns the paths, switch to this user and its groups.

    Raise `StartFailed` for root if a path is a link.
    """
    owner = find_owner(*paths)
    if owner is not None:
        groups, uid = _groups_of(owner), owner.st_uid
        os.setgroups(groups)
        os.setresgid(groups[0], groups[0], groups[0])
        os.setresuid(uid, uid, uid)


def need_access(*paths: Path) -> None:
    """Raise `StartFailed` if this user cannot read an existing path. Skip the check for root, because root switches
    to the owner later."""
    for path in paths:
        needed = os.R_OK | os.X_OK if path.is_dir() else os.R_OK
        if os.geteuid() != ROOT and path.exists() and not os.access(path, needed):
            raise for_its_user(path)


def become_owner_of_both(config: Path, data_dir: Path) -> None:
    """Switch to the owner of configuration and data, for work that changes configuration and data. If root owns
    the configuration, remain root. In this case, the caller must change the data within `as_owner`."""
    if find_owner(config) is not None or find_owner(data_dir) is None:
        become_owner(data_dir, config)


@contextmanager
def as_owner(*paths: Path) -> Iterator[None]:
    """Within the context, switch to the owner of the paths. Do not run the home's Lua code in this context, because
    the process can become root again."""
    with _as_user(find_owner(*paths)):
        yield


@contextmanager
def as_owner_of_all(source: Path) -> Iterator[None]:
    """Within the context, switch to the owner of a source folder.

    If root owns the folder, switch to the first other owner of a file inside the folder, because that user can
    replace a file while it is read. Raise `StartFailed` if a group or all users can write there.
    """
    owner = find_owner(source)
    if owner is None and os.geteuid() == ROOT:
        owner = _other_owner_in(source if source.is_dir() else source.parent, deep=source.is_dir())
    with _as_user(owner):
        yield


def _other_owner_in(folder: Path, *, deep: bool) -> os.stat_result | None:
    """Return the first owner in the folder who is not root."""
    for place, folders, files in os.walk(folder):
        found = os.lstat(place)
        if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid != ROOT):
            raise StartFailed(
                f"other users can write to {place}; copy the files to a folder that only root can change",
                os.EX_NOPERM,
            )
        if not deep:
            return None
        for name in (*folders, *files):
            if (each := os.lstat(Path(place) / name)).st_uid != ROOT:
                return each
    return None


@contextmanager
def _as_user(owner: os.stat_result | None) -> Iterator[None]:
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


def refuse_other_home(*paths: Path) -> None:
    """Raise `StartFailed` if this process is root and another user owns the paths."""
    if (owner := find_owner(*paths)) is not None:
        user = user_name(owner.st_uid)
        raise StartFailed(
            f"{paths[0]} belongs to user {user}, so the hub must not run as root; run it as that user: "
            f"`setpriv --reuid={user} --regid={owner.st_gid} --init-groups lares …`, or start the hub's service",
            os.EX_NOPERM,
        )


def worker_ids(*paths: Path) -> tuple[int, ...]:
    """Return the user and groups of Lua workers. If root owns the home, return an empty tuple."""
    owner = find_owner(*paths)
    return () if owner is None else (owner.st_uid, *_groups_of(owner))


def find_owner(*paths: Path) -> os.stat_result | None:
    """If this process is root, return the owner of the first path that root does not own; otherwise, return None.

    If root owns all paths, return the owner of the topmost parent folder that belongs to another user, because that
    user can replace everything in it. Raise `StartFailed` if a path is a link.
    """
    if os.geteuid() != ROOT:
        return None
    chains = [_chain_of(path) for path in paths]
    last = [chain[-1] for chain in chains]
    owner = next((each for each in (*last, *itertools.chain(*chains)) if each.st_uid != ROOT), None)
    if owner is not None:
        _read_ahead()
    return owner


def _read_ahead() -> None:
    """Import modules, and read files of the program, before the process switches to another user."""
    for name in _IMPORTED_LATE:
        with suppress(ImportError):
            importlib.import_module(name)
    importlib.import_module("appliance.adapters.lua_kinds.definition").list_bundled_kinds()
    importlib.import_module("appliance.lua.files.kind_files").read_bundled_kinds()


def _chain_of(path: Path) -> list[os.stat_result]:
    """Return the status of each existing part of the path, from the top folder to the path itself."""
    chain = []
    for each in (*reversed(path.absolute().parents), path.absolute()):
        try:
            found = each.lstat()
        except OSError:
            break
        if stat.S_ISLNK(found.st_mode):
            if each == path.absolute() or found.st_uid != ROOT:
                raise StartFailed(f"{each} is a link, which root does not follow; specify its target", os.EX_NOPERM)
            found = each.stat()
        chain.append(found)
    return chain


def _groups_of(owner: os.stat_result) -> list[int]:
    """Return the user's groups as after a login, with the main group first. If the user has no name, return the
    folder's group, unless the folder's group is root's."""
    try:
        user = pwd.getpwuid(owner.st_uid)
    except KeyError:
        return [owner.st_gid or owner.st_uid]
    return os.getgrouplist(user.pw_name, user.pw_gid)


@contextmanager
def give_new_files(folder: Path) -> Iterator[None]:
    """Within the context, new files of root get the folder's group, so that the hub can read these files."""
    before = {folder, *folder.rglob("*")} if folder.exists() else set()
    try:
        yield
    finally:
        if os.geteuid() == ROOT and folder.exists():
            group = (folder if folder in before else folder.parent).stat().st_gid
            for path in {folder, *folder.rglob("*")} - before:
                if path.exists():
                    os.chown(path, ROOT, group)
