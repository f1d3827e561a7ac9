"""Whose home it is: root's commands become the user of the home that they work on, before they open anything."""

from __future__ import annotations

import errno
import importlib
import itertools
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from appliance.cli.paths import write_private
from appliance.errors import StartFailed

ROOT = 0
MAX_STEPS = 200
"""Names on the way to a path, those of links included."""

_ON_THE_WAY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC

_IMPORTED_LATE = (
    *(f"encodings.{each}" for each in ("ascii", "idna", "latin_1", "utf_8_sig")),
    *("concurrent.futures.thread", "ctypes", "difflib", "shutil"),
    *("argon2", "argon2.exceptions", "astral.sun", "croniter", "jinja2.ext"),
)
"""What is imported when it is first needed: the user may not read root's Python, nor what root has unpacked."""


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


def become_owner_of_both(config: Path, data_dir: Path) -> None:
    """The same for what changes configuration and data; where the former is root's own, root keeps to it.

    Then what changes the data must do so `as_owner`.
    """
    if find_owner(config) is not None or find_owner(data_dir) is None:
        become_owner(data_dir, config)


@contextmanager
def as_owner(*paths: Path) -> Iterator[None]:
    """The same within the context alone: for what runs no code of the home's."""
    with _as_user(find_owner(*paths)):
        yield


@contextmanager
def as_owner_of_all(source: Path) -> Iterator[None]:
    """The same for a source that root named; one of root's own is read as the owner of what is not root's in it.

    Whoever can write there can put something else in the place of what is read. Raises `StartFailed` where that is
    everybody, or a group.
    """
    owner = find_owner(source)
    if owner is None and os.geteuid() == ROOT:
        owner = _other_owner_in(source if source.is_dir() else source.parent, deep=source.is_dir())
    with _as_user(owner):
        yield


def _other_owner_in(folder: Path, *, deep: bool) -> os.stat_result | None:
    """The first owner of something in the folder that is not root's."""
    for place, folders, files in os.walk(folder):
        found = os.lstat(place)
        if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid != ROOT):
            raise StartFailed(
                f"others may write in {place}, so root reads nothing there; name a copy in a folder of root's own",
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
    """Raise `StartFailed` if this is root, and the paths are another user's home."""
    if (owner := find_owner(*paths)) is not None:
        user = _name_of(owner.st_uid)
        raise StartFailed(
            f"{paths[0]} is the home of user {user}, where root runs no hub; run it as that user: "
            f"`setpriv --reuid={user} --regid={owner.st_gid} --init-groups lares …`, or by its service",
            os.EX_NOPERM,
        )


def worker_ids(*paths: Path) -> tuple[int, ...]:
    """The user and the groups that run the home's Lua, if this is root and the home another's; else nothing."""
    owner = find_owner(*paths)
    return () if owner is None else (owner.st_uid, *_groups_of(owner))


def read_named(path: Path, max_bytes: int) -> bytes:
    """So many bytes of a plain file that the command line names; root follows no link to it. Raises `OSError`."""
    with open(_open_named(path), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        return stream.read(max_bytes)


def _open_named(path: Path) -> int:
    """A descriptor to read from; what is no plain file is opened without waiting for its other end."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    if os.geteuid() != ROOT:
        return os.open(path, flags)
    os.close(_walk(path))  # the sentence about a link; what is laid there afterwards is refused below
    folder = _walk(path.absolute().parent)
    try:
        opened = os.open(path.name, flags | os.O_NOFOLLOW, dir_fd=folder)
        found, place = os.fstat(opened), os.fstat(folder)
    finally:
        os.close(folder)
    is_shared = place.st_uid != found.st_uid or place.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if found.st_nlink > 1 and is_shared:  # anybody who may write there can have given it this name
        os.close(opened)
        raise OSError(errno.ELOOP, "the file has other names too; name a copy of it", str(path))
    return opened


def write_named(path: Path, data: bytes) -> None:
    """Put the file, of mode 0600, in the place that the command line names; root follows no link to it.

    Raises `StartFailed` if it cannot be written, or something else than a plain file is there.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(mode := path.lstat().st_mode) and not stat.S_ISDIR(mode):
            raise StartFailed(f"{path} is there already, and no plain file; name another place", os.EX_CANTCREAT)
    if os.geteuid() != ROOT:
        write_private(path, data)
        return
    try:
        folder = _walk(path.absolute().parent)
    except OSError as error:
        raise StartFailed(f"cannot write {path}: {error.strerror}", os.EX_IOERR) from None
    here = os.open(".", _ON_THE_WAY)
    try:
        os.fchdir(folder)  # not by /proc, which a chroot may lack
        write_private(Path(path.name), data, path)
    finally:
        os.fchdir(here)
        os.close(here)
        os.close(folder)


def _walk(path: Path) -> int:
    """A descriptor of what is at the path, reached by no link but root's own ones on the way. Raises `OSError`."""
    parts, reached = [*reversed(path.absolute().parts[1:])], os.open("/", _ON_THE_WAY)
    try:
        for _ in range(MAX_STEPS):
            if not parts:
                return reached
            child = os.open(parts.pop(), _ON_THE_WAY, dir_fd=reached)
            found, before = os.fstat(child), reached
            if not stat.S_ISLNK(found.st_mode):
                reached = child
                os.close(before)
                continue
            target = Path(os.readlink("", dir_fd=child))
            os.close(child)
            if found.st_uid != ROOT or not parts:
                break
            parts += reversed(target.parts[target.is_absolute() :])
            if target.is_absolute():
                reached = os.open("/", _ON_THE_WAY)
                os.close(before)
        raise OSError(errno.ELOOP, "a link leads to it, which root does not follow", str(path))
    except OSError:
        os.close(reached)
        raise


def find_owner(*paths: Path) -> os.stat_result | None:
    """The user whose home the paths are; None where that is root, or this process is not root.

    It is the owner of the first of the paths that is not root's, else of the uppermost folder above one that is not:
    whoever owns that can put anything in the place of what lies below. Raises `StartFailed` where a path is a link.
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
    """Import and read of the program what is needed later."""
    for name in _IMPORTED_LATE:
        with suppress(ImportError):
            importlib.import_module(name)
    importlib.import_module("appliance.adapters.lua_kinds.kind").list_bundled_kinds()
    importlib.import_module("appliance.lua.kind_catalog").read_bundled_kinds()


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


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _groups_of(owner: os.stat_result) -> list[int]:
    """The user's groups, the main one first, as at a login; a user without a name has the folder's, never root's."""
    try:
        user = pwd.getpwuid(owner.st_uid)
    except KeyError:
        return [owner.st_gid or owner.st_uid]
    return os.getgrouplist(user.pw_name, user.pw_gid)


@contextmanager
def give_new_files(folder: Path) -> Iterator[None]:
    """What root makes in a folder of its own within the context gets the folder's group: the hub can read it."""
    before = {folder, *folder.rglob("*")} if folder.exists() else set()
    try:
        yield
    finally:
        if os.geteuid() == ROOT:
            group = (folder if folder in before else folder.parent).stat().st_gid
            for path in {folder, *folder.rglob("*")} - before:
                if path.exists():
                    os.chown(path, ROOT, group)
