"""Find the unpacked folder of this version, unpack the single file if necessary, and run the command from there.

The module imports little, because it runs at each start.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import stat
import sys
import zlib
from collections.abc import Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES

from lares_file import BUILD, DATE

TAG = EXTENSION_SUFFIXES[0][1:-3]
"""This Python's tag for compiled modules."""

NAME = f"{BUILD}-{TAG}"
"""Name of the unpacked folder."""

SITE = "site-packages"
FILES = "files.json"
"""A file that lists the size and CRC-32 of every unpacked file."""

BOOTED = "booted"
"""A file that contains the id of the boot during which bytecode was last removed."""

BOOT_ID = "/proc/sys/kernel/random/boot_id"

FOLDERS = ("LARES_DATA_DIR", "STATE_DIRECTORY", "CACHE_DIRECTORY")
INSTALLED = "/opt/lares"
"""The folder of an installation. Root's commands also use this folder, because root must not run files that belong to
the hub's user."""

SHARED = ("/var/tmp", "/tmp", "/run")


def launch() -> int:
    gc.disable()  # imports create almost no garbage
    archive = os.path.abspath(os.path.dirname(__file__))
    try:
        folder = find_folder(archive, candidate_folders(os.environ))
    except OSError as error:
        print(f"lares: {error}", file=sys.stderr)
        return os.EX_CANTCREAT
    except ValueError as error:
        print(f"lares: {archive} is damaged ({error}); copy the file to this box again", file=sys.stderr)
        return os.EX_DATAERR
    return run(folder)


def run(folder: str) -> int:
    """Run the command from the folder. If a damaged file makes the command fail, unpack the files again and
    restart."""
    if not os.environ.get("PYTHONDONTWRITEBYTECODE"):
        sys.dont_write_bytecode = False  # OpenWrt's Python does not write bytecode by default
    sys.path[:] = [os.path.join(folder, SITE), *filter(is_not_foreign, sys.path[1:])]
    user = os.geteuid()
    try:
        from appliance.cli.main import main
    except Exception as error:  # a damaged file can cause any exception
        print(f"lares: cannot be started: {type(error).__name__}: {error}", file=sys.stderr)
        code = os.EX_SOFTWARE
    else:
        code = main()
    if code == os.EX_SOFTWARE and os.geteuid() == user and not is_whole(folder, deep=True):
        with contextlib.suppress(OSError):  # a read-only card cannot be changed
            os.unlink(f"{folder}/{FILES}")  # otherwise, the next start unpacks the files again
            os.execv(sys.executable, sys.orig_argv)
    return code


def is_not_foreign(path: str) -> bool:
    """Return whether the module's folder is part of Python itself. Lares does not use packages that are installed
    on the machine."""
    return not path.rstrip("/").endswith(("site-packages", "dist-packages"))


def candidate_folders(environment: Mapping[str, str]) -> list[str]:
    """Return the possible folders in order of preference."""
    user, home = os.geteuid(), environment.get("HOME", "")
    named = [environment.get(name, "").split(":")[0] for name in FOLDERS]
    if user == 0:
        named.append(INSTALLED)
    own = [*((folder, "program") for folder in named), (home, ".cache/lares")]
    chosen = [os.path.abspath(f"{folder}/{name}") for folder, name in own if folder and is_ours(folder)]
    return [*dict.fromkeys(chosen), *(f"{folder}/lares-{user}" for folder in SHARED)]


def is_ours(folder: str) -> bool:
    """Return whether this user owns the folder. If another user owned the folder, root would leave files there, and
    the owner could not change these files."""
    with contextlib.suppress(OSError):
        return os.stat(f"{folder}/").st_uid == os.geteuid()
    return False


def find_folder(archive: str, bases: Sequence[str]) -> str:
    """Return a folder with all files of this build, and lock it against removal. Unpack the files if necessary.

    Raise `OSError` if no folder can be used, with the reason for each, and `ValueError` if the archive is damaged.
    """
    refusals = []
    for base in bases:
        real = os.path.join(os.path.realpath(os.path.dirname(base)), os.path.basename(base))
        folder = os.path.join(real, NAME)
        try:
            make_base(real)
            if not (hold(folder) and is_whole(folder) and read(f"{folder}/{BOOTED}") == read(BOOT_ID)):
                import lares_unpack  # most starts do not need this module

                lares_unpack.unpack(archive, folder)
                hold(folder)
            return folder
        except OSError as error:
            refusals.append(f"{base}: {(error.strerror or str(error)).lower()}")
    raise OSError(
        f"cannot unpack ({'; '.join(refusals)}); set CACHE_DIRECTORY to a folder that belongs to this user, "
        "allows execution, and has 30 MB free"
    )


def make_base(base: str) -> None:
    """Create the folder with mode 0700. Raise `OSError` if the folder forbids execution, or if other users can
    replace the folder."""
    folder, trusted = base, (os.stat("/").st_uid, os.geteuid())  # in a user namespace, root may have another number
    while folder != "/":
        folder = os.path.dirname(folder)
        if not os.path.lexists(folder):
            continue
        status = os.lstat(folder)
        is_open = status.st_mode & (0o002 if status.st_gid in (0, os.getegid()) else 0o022)
        if status.st_uid not in trusted or (is_open and not status.st_mode & stat.S_ISVTX):
            raise OSError(f"other users can change {folder}")
    os.makedirs(base, 0o700, exist_ok=True)
    status = os.lstat(base)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise OSError("belongs to another user, or other users can write to it")
    if status.st_mode & 0o077:  # other users could open and lock the folder
        os.chmod(base, 0o700)
    if os.statvfs(base).f_flag & os.ST_NOEXEC:
        raise OSError("does not allow execution")


def hold(folder: str) -> bool:
    """Lock the folder against removal until this process ends. Return False if the folder is missing or is being
    removed."""
    with contextlib.suppress(OSError):
        fcntl.flock(os.open(folder, os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    return False


def is_whole(folder: str, *, deep: bool = False) -> bool:
    """Return whether the size and date of every file are unchanged. If `deep` is true, also check the bytecode and
    the contents."""
    try:
        for name, (size, checksum) in json.loads(read(f"{folder}/{FILES}")).items():
            if deep or not name.endswith(".pyc"):  # Python itself replaces bytecode whose size is wrong
                status = os.stat(f"{folder}/{name}")
                is_same = status.st_size == size and status.st_mtime == DATE
                if not is_same or (deep and zlib.crc32(read(f"{folder}/{name}")) != checksum):
                    return False
    except (OSError, ValueError, TypeError, AttributeError):
        return False
    return True


def read(path: str) -> bytes:
    """Return the content of the file, or an empty string if the file cannot be read."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""
