"""`lares upgrade`: replaces the single file with another version, or restores the previous version."""

from __future__ import annotations

import argparse
import errno
import fcntl
import filecmp
import hashlib
import io
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from appliance.cli.named_files import open_named, reading
from appliance.cli.owner import become_owner
from appliance.cli.paths import HubPaths
from appliance.cli.single_file import running_file
from appliance.cli.terminal import say, write
from appliance.errors import StartFailed
from appliance.store.disk import Disk, for_its_user, reason_of, write_file
from appliance.store.lock import holder_of
from appliance.tables.plain_files import read_at_most

INSTALLED = Path("/opt/lares/lares.pyz")
"""The path of the installed file. Only `install.sh` may replace this file, because the script also writes the
service."""

INSTALLER = "firmware/install.sh"
"""The installation script in each single file since 0.3.0."""

MAX_FILE_BYTES = 256 << 20
MAX_CHECKSUM_BYTES = 4096

DIGEST_CHARS = 64
"""The length of the digest at the end of each single file."""

END_RECORD, END_RECORD_BYTES = b"PK\5\6", 22
"""The start and length of the last record of a zip file without a comment."""

_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, OSError, EOFError),
    *(LookupError, ValueError, ArithmeticError, RuntimeError),
)
"""The exceptions that can be raised while a damaged zip file is read. A `RuntimeError` reports encryption or an
unknown compression."""


def upgrade(arguments: argparse.Namespace) -> int:
    """Check the new file, then replace this hub's file. Keep the old file as the previous version."""
    if (arguments.file is None) != arguments.rollback:
        raise StartFailed("specify the new file, or use --rollback", os.EX_USAGE)
    target = _find_target(arguments.file)
    is_installed = INSTALLED.exists() and target.samefile(INSTALLED)
    if os.statvfs(target.parent).f_flag & os.ST_RDONLY:
        raise _not_written(target, OSError(errno.EROFS, os.strerror(errno.EROFS)))
    if not os.access(target.parent, os.W_OK) or (is_installed and os.geteuid() != 0):
        raise for_its_user(target)
    held = _lock(target.parent)
    data = None if arguments.rollback else _read_verified(Path(arguments.file))
    if is_installed:
        return _run_installer(target, data, held)
    become_owner(target)
    return _replace(arguments, target, data)


def _lock(folder: Path) -> int:
    """Lock the folder until this process ends, and return the folder's descriptor. If another process holds the lock,
    raise `StartFailed`."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StartFailed(
            f"another upgrade in {folder} is in progress; wait until it has ended", os.EX_TEMPFAIL
        ) from None
    return held


def _find_target(file: str | None) -> Path:
    """Return the file to replace: the running file or, if the new file itself is running, the installed file."""
    running = running_file()
    if running is None:
        raise StartFailed(
            "this hub runs from Python packages, not from lares.pyz; upgrade the packages and restart the hub",
            os.EX_USAGE,
        )
    running = running.resolve()
    if file is None or not Path(file).exists() or not running.samefile(file):
        return running
    if not INSTALLED.exists() or INSTALLED.samefile(file):
        raise StartFailed(f"{file} is the running version; specify the new file", os.EX_USAGE)
    return INSTALLED


def _read_verified(file: Path) -> bytes:
    """Return the file's content. Raise `StartFailed` if the content does not match the checksum file, or is not a
    complete lares.pyz."""
    with reading():
        with open_named(file) as stream:
            data = read_at_most(stream, MAX_FILE_BYTES)
        stated, checksum_file = None, file.with_name(f"{file.name}.sha256")
        if checksum_file.exists():
            with open_named(checksum_file) as stream:
                stated = stream.read(MAX_CHECKSUM_BYTES).split()
    if stated is not None:
        if stated[:1] != [hashlib.sha256(data).hexdigest().encode()]:
            raise StartFailed(f"{file} does not match {checksum_file.name}; download both again", os.EX_DATAERR)
        say(f"{file} matches {checksum_file.name}")
    _check_archive(data, file)
    return data


def _check_archive(data: bytes, file: Path) -> None:
    """Raise `StartFailed` if the file is damaged or another file."""
    if not _has_digest(data):
        message = "is damaged, or not a lares.pyz of version 0.3.0 or later; download it again"
        raise StartFailed(f"{file} {message}", os.EX_DATAERR)


def _has_digest(data: bytes) -> bool:
    """Return whether the last bytes are the SHA-256 of all bytes before them, as in each single file since 0.3.0."""
    return hashlib.sha256(memoryview(data)[:-DIGEST_CHARS]).hexdigest().encode() == data[-DIGEST_CHARS:]


def _read_previous(previous: Path) -> bytes:
    """Return the content of the previous version. Raise `StartFailed` if it is missing or damaged."""
    if not os.path.lexists(previous):
        raise StartFailed(f"there is no previous version {previous}", os.EX_NOINPUT)
    with reading(), open_named(previous) as stream:
        data = read_at_most(stream, MAX_FILE_BYTES)
    if not _is_intact_old_version(data) and not _has_digest(data):
        message = "is damaged, or not a lares.pyz; install a version with `lares upgrade FILE`"
        raise StartFailed(f"{previous} {message}; nothing was changed", os.EX_DATAERR)
    return data


def _is_intact_old_version(data: bytes) -> bool:
    """Return whether this is an undamaged file of a version before 0.3.0. These files end without a digest, so the
    checksums of the archive's members are verified."""
    if not data[-END_RECORD_BYTES:].startswith(END_RECORD):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return "__main__.py" in archive.namelist() and archive.testzip() is None
    except _UNREADABLE:
        return False


def _read_installer(data: bytes) -> str:
    """Return the installation script in the content of a lares.pyz."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(INSTALLER).decode()


def _sibling_of(target: Path, word: str) -> Path:
    """Return the path `lares.WORD.pyz` next to `lares.pyz`."""
    return target.with_name(f"{target.stem}.{word}{target.suffix}")


def _not_written(target: Path, error: OSError) -> StartFailed:
    """Return the error for a folder that is full or not writable."""
    reason = reason_of(error).lower()
    return StartFailed(f"{target} cannot be replaced: {reason}; the current version is unchanged", os.EX_CANTCREAT)


def _run_installer(target: Path, data: bytes | None, held: int) -> NoReturn:
    """Replace this process with the script in the new data. Without data, roll back with the script that
    `_prepare_rollback` returns.

    The script reports the result, and removes this process's unpacked files. The script inherits the lock as
    descriptor 9, because 9 is the highest descriptor that every shell supports.
    """
    new = _sibling_of(target, "new")
    try:
        if data is None:
            script, words = _prepare_rollback(target), ["rollback"]
        else:
            script, words = _read_installer(data), ["install", str(new)]
            write_file(new, data, 0o755)
    except OSError as error:
        raise _not_written(target, error) from None
    write("")
    os.dup2(held, 9)
    environment = os.environ | {"LARES_UPGRADE_IS_LOCKED": "yes"}
    os.execve("/bin/sh", ["/bin/sh", "-c", script, "lares upgrade", *words], environment)


def _prepare_rollback(target: Path) -> str:
    """Check the previous version, and return the installation script of the current version. If the current version
    is damaged, return the script of the previous version."""
    previous, current = _sibling_of(target, "previous"), b""
    _settle_older(Disk(target.parent), target, _sibling_of(target, "older"), previous)
    data = _read_previous(previous)
    with suppress(OSError):
        current = target.read_bytes()
    if _has_digest(current):
        return _read_installer(current)
    _check_archive(data, target)  # a version before 0.3.0 contains no script
    return _read_installer(data)


def _replace(arguments: argparse.Namespace, target: Path, data: bytes | None) -> int:
    """Replace a file that no service uses, with the new data. Without data, roll back to the previous version. First
    check the new content. `install.sh` replaces the installed file in the same steps."""
    disk, new, previous = Disk(target.parent), _sibling_of(target, "new"), _sibling_of(target, "previous")
    older = _sibling_of(target, "older")
    paths = HubPaths.of_process(arguments)
    config, data_dir = paths.find_config(), paths.find_data_dir()
    try:
        _settle_older(disk, target, older, previous)
        if data is None:
            _read_previous(previous)
        disk.remove(new.name)
        if data is None:
            disk.link(previous.name, new.name)
        else:
            write_file(new, data, 0o755)
        version = _ask_version(new, previous if data is None else arguments.file)
        if filecmp.cmp(new, target, shallow=False):
            say(f"{target} already is version {version}; nothing was changed")
            return os.EX_OK
        if config.exists():
            _ask(new, ["check", "--config", str(config), "--data-dir", str(data_dir)])
        disk.link(target.name, older.name)
        disk.sync_folder()
        disk.rename(new.name, target.name)
        disk.sync_folder()
    except OSError as error:
        raise _not_written(target, error) from None
    finally:
        with suppress(OSError):
            disk.remove(new.name)
            _settle_older(disk, target, older, previous)
    say(f"{target} is now {version}; `lares upgrade --rollback` restores the previous version")
    if (holder := holder_of(data_dir)) is not None:
        say(f"the running hub (process {holder}) still has the old version; restart the hub")
    return os.EX_OK


def _settle_older(disk: Disk, target: Path, older: Path, previous: Path) -> None:
    """Make the older version the previous one if the target was replaced. Otherwise, remove the older version."""
    if older.exists():
        if filecmp.cmp(older, target, shallow=False):
            disk.remove(older.name)
        else:
            disk.rename(older.name, previous.name)


def _ask_version(new: Path, source: object) -> str:
    """Return the version of the new file. If the file is another program, raise `StartFailed`."""
    name, _, version = _ask(new, ["--version"]).split("\n")[0].partition(" ")
    if name != "lares" or not version:
        raise StartFailed(f"{source} is not a lares.pyz; nothing was changed", os.EX_DATAERR)
    return version


def _ask(new: Path, words: Sequence[str]) -> str:
    """Run a command of the new file and return its output. If the command fails, raise `StartFailed` with its
    message."""
    done = subprocess.run([sys.executable, new, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        first, *more = (done.stdout + done.stderr).removeprefix("lares: ").splitlines() or ["it failed"]
        raise StartFailed(f"{new.name}: {first}", done.returncode, *more, "nothing was changed")
    return done.stdout
