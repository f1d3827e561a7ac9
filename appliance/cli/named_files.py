"""Reads and writes files that are named on the command line. As root, the functions do not follow links of other
users."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from appliance.cli.owner import ROOT
from appliance.cli.single_file import running_file
from appliance.errors import StartFailed
from appliance.store.disk import write_file

MAX_STEPS = 200
"""Maximum number of names in a resolved path, including names in links."""

_ON_THE_WAY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def open_named(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file that is named on the command line. As root, do not follow links. Raise `OSError` with the
    whole path on failure."""
    try:
        opened = _open_named(path)
    except OSError as error:
        error.filename = str(path)  # as root, each part of the path is opened separately
        raise
    with os.fdopen(opened, "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        yield stream


@contextmanager
def reading(name: object = None, *, otherwise: str = "") -> Iterator[None]:
    """Convert an `OSError` to `StartFailed`. The message contains `name`, by default the file's name."""
    try:
        yield
    except OSError as error:
        file = name or error.filename or otherwise
        raise StartFailed(f"{file} cannot be read: {error.strerror or error}", os.EX_NOINPUT) from None


def _open_named(path: Path) -> int:
    """Open the file for reading. Do not wait for the other end of a named pipe."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    if os.geteuid() != ROOT:
        return os.open(path, flags)
    os.close(_walk(path))  # raises the error for a link; the checks below detect a later replacement of the file
    folder = _walk(path.absolute().parent)
    try:
        opened = os.open(path.name, flags | os.O_NOFOLLOW, dir_fd=folder)
        found, place = os.fstat(opened), os.fstat(folder)
    finally:
        os.close(folder)
    is_shared = place.st_uid != found.st_uid or place.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if found.st_nlink > 1 and is_shared:  # any user with write access to the folder may have created this link
        os.close(opened)
        raise OSError(errno.ELOOP, "the file has other hard links; use a copy of it", str(path))
    return opened


def check_target(file: Path, data_dir: Path) -> None:
    """Raise `StartFailed` if the file to write is in the data directory, or is the running program."""
    if is_in_folder(file, data_dir):
        raise StartFailed(f"{file} is in {data_dir}, the data directory; name another folder", os.EX_CANTCREAT)
    program = running_file()
    if program is not None and _resolve(file) == program.resolve():
        raise StartFailed(f"{file} is the running program; choose another path", os.EX_CANTCREAT)


def is_in_folder(file: Path, folder: Path) -> bool:
    """Return whether the file would be written in the folder, or in a folder in it."""
    return folder.resolve() in _resolve(file).parents


def _resolve(file: Path) -> Path:
    return Path(os.path.realpath(file))  # `Path.resolve` raises an error for a loop of links


def write_named(path: Path, data: bytes) -> None:
    """Write a file that is named on the command line, with mode 0600. As root, do not follow links.

    Raise `StartFailed` if the file cannot be written, or if the path exists but is not a regular file.
    """
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(mode := path.lstat().st_mode):
            raise StartFailed(f"cannot write {path}: it is a folder; specify a file in it", os.EX_CANTCREAT)
        if not stat.S_ISREG(mode):
            raise StartFailed(
                f"{path} exists already and is not a regular file; choose another path", os.EX_CANTCREAT
            )
    if os.geteuid() != ROOT:
        write_private(path, data, exit_code=os.EX_CANTCREAT)
        return
    try:
        folder = _walk(path.absolute().parent)
    except OSError as error:
        raise StartFailed(f"cannot write {path}: {error.strerror}", os.EX_CANTCREAT) from None
    here = os.open(".", _ON_THE_WAY)
    try:
        os.fchdir(folder)  # a path in /proc would not work in a chroot without /proc
        write_private(Path(path.name), data, path, exit_code=os.EX_CANTCREAT)
    finally:
        os.fchdir(here)
        os.close(here)
        os.close(folder)


def _walk(path: Path) -> int:
    """Open the path. Follow only links that root owns. Raise `OSError` on failure."""
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
        raise OSError(errno.ELOOP, "it is a link, which root does not follow; specify its target", str(path))
    except OSError:
        os.close(reached)
        raise


def write_private(file: Path, data: bytes, name: Path | None = None, *, exit_code: int = os.EX_IOERR) -> None:
    """Write the file with mode 0600, completely or not at all.

    Raise `StartFailed` with `exit_code` if the file cannot be written. The message contains `name`, by default the
    file's name.
    """
    try:
        write_file(file, data)
    except OSError as error:
        raise StartFailed(f"cannot write {name or file}: {error.strerror}", exit_code) from None
