"""Find the unpacked folder of this version, unpack the single file if necessary, and run the command from there.

Each start compares the size and date of every unpacked file. This module imports little, because each start runs it.
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
from typing import Any

from lares_file import BUILD

TAG = EXTENSION_SUFFIXES[0][1:-3]
"""The tag of compiled modules of this Python."""

NAME = f"{BUILD}-{TAG}"
"""The name of the folder of this build for this Python."""

SITE = "site-packages"
FILES = "files.json"
"""Lists every unpacked file with its size and CRC-32."""

BOOTED = "booted"
"""Contains the id of the boot at which bytecode was last removed."""

DATE = 1_500_000_000
"""The date of every unpacked file; a change of the file changes it."""

ROOM = 24 << 20
"""Free bytes needed for the files and their bytecode."""

OWN = ("STATE_DIRECTORY", "CACHE_DIRECTORY")
INSTALLED = "/opt/lares"
"""The folder of install.sh, for commands of root, which cannot use files of the hub's user."""

SHARED = ("/var/tmp", "/tmp", "/run")
UNMAPPED = 65534
"""The owner of root's files in a namespace without that user, such as under `PrivateUsers=`."""

EX_DATAERR, EX_SOFTWARE, EX_CANTCREAT = 65, 70, 73

held: list[int] = []
"""The open folder of this process, locked against removal."""


class Unusable(Exception):
    """The reason why files cannot be unpacked to a folder."""


def launch() -> int:
    """Run the command line; return the exit code."""
    gc.disable()  # until the command is imported: next to nothing of that is garbage
    archive, bases = os.path.abspath(os.path.dirname(__file__)), candidate_folders(sys.argv[1:], os.environ)
    try:
        folder = find_folder(archive, bases)
    except Unusable as error:
        print(f"lares: {error}", file=sys.stderr)
        return EX_CANTCREAT
    except ValueError as error:
        print(f"lares: {archive} is damaged ({error}); copy it to this box again", file=sys.stderr)
        return EX_DATAERR
    if starts_a_hub(sys.argv[1:]):
        remove_old_versions(bases, folder)
    return run(archive, folder)


def run(archive: str, folder: str) -> int:
    """Run the command from the folder; if it fails and a file there is damaged, unpack and start again."""
    if not os.environ.get("PYTHONDONTWRITEBYTECODE"):
        sys.dont_write_bytecode = False  # OpenWrt's Python does not write bytecode by default
    sys.path[:] = [os.path.join(folder, SITE), *filter(is_not_foreign, sys.path[1:])]
    user = os.geteuid()
    try:
        from appliance.cli.main import main
    except Exception as error:  # a damaged file can fail in any way
        print(f"lares: cannot be started: {type(error).__name__}: {error}", file=sys.stderr)
        code = EX_SOFTWARE
    else:
        code = main()
    if code == EX_SOFTWARE and os.geteuid() == user and is_damaged(folder, deep=True):
        sys.path.insert(0, archive)
        discard(folder)
        os.execv(sys.executable, sys.orig_argv)
    return code


def is_not_foreign(path: str) -> bool:
    """Return whether a folder of modules belongs to Python itself; other packages of the box are not used."""
    return not path.rstrip("/").endswith(("site-packages", "dist-packages"))


# --- places --------------------------------------------------------------------------------------


def candidate_folders(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the folders to unpack to, in the order of preference."""
    data = data_dir(arguments, environment)
    own = [data, *(environment.get(name, "").split(":")[0] for name in OWN)]
    chosen = [os.path.join(folder, "program") for folder in own if folder and is_ours(folder)]
    # a hub creates that folder anyway, and then stays there
    if starts_a_hub(arguments) and not os.path.lexists(data):
        chosen.insert(0, os.path.join(data, "program"))
    if os.geteuid() == 0 and is_ours(INSTALLED):  # on the card, and removed with the installation
        chosen.append(os.path.join(INSTALLED, "program"))
    return list(dict.fromkeys([*chosen, *(f"{folder}/lares-{os.geteuid()}" for folder in SHARED)]))


def starts_a_hub(arguments: Sequence[str]) -> bool:
    """Return whether the command line starts a hub: `run` or no command, and no invalid option."""
    words, expected = iter(arguments), "run"
    for word in words:
        if word in ("--config", "--data-dir"):
            if next(words, "-").startswith("-"):  # the option has no value
                return False
        elif word == expected:
            expected = "--safe"
        elif not word.startswith(("--config=", "--data-dir=")):
            return False
    return True


def is_ours(folder: str) -> bool:
    """Return whether this user owns the folder: root must not put files there that the owner cannot use."""
    try:
        status = os.stat(folder)
    except OSError:
        return False
    return os.path.isdir(folder) and status.st_uid == os.geteuid()


def data_dir(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the data directory, found in the same way as the hub does."""
    named = ""
    for index, word in enumerate(arguments):
        if word == "--data-dir":
            named = "".join(arguments[index + 1 : index + 2])
        elif word.startswith("--data-dir="):
            named = word.partition("=")[2]
    given = named or environment.get("LARES_DATA_DIR") or environment.get("STATE_DIRECTORY", "").split(":")[0]
    if given:
        return given
    beside = os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), "data")
    if os.path.isdir(beside) and not os.path.isdir("data"):
        return beside
    try:
        return os.path.abspath("data")
    except FileNotFoundError:
        return "/proc/self/cwd/data"  # the working directory was deleted, which the command itself reports


def find_folder(archive: str, bases: Sequence[str]) -> str:
    """Return a folder with all files of this build, unpacked now if necessary; raise `Unusable` if none is
    possible."""
    refusals = []
    for place in bases:
        base = os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))
        folder = os.path.join(base, NAME)
        try:
            make_base(base)
            if not take(folder):
                if sys.stderr.isatty():
                    print("lares: unpacking, once for this version ...", file=sys.stderr, flush=True)
                load_unpacker().remove_others(base, keep=folder)
                check_room(base)
                load_unpacker().unpack(archive, folder)
                lock_shared(folder)
        except Unusable as error:
            refusals.append(str(error))
        except OSError as error:
            refusals.append(f"{base}: {(error.strerror or str(error)).lower()}")
        else:
            return folder
    raise Unusable(
        f"there is no folder to unpack to, which must be writable, allow execution and have {ROOM >> 20} MB free: "
        f"{'; '.join(refusals)}; name another one with --data-dir"
    )


def remove_old_versions(bases: Sequence[str], folder: str) -> None:
    """For a hub that starts: remove other versions from all places of this user."""
    for base in bases:
        with contextlib.suppress(OSError):
            if os.lstat(base).st_uid == os.geteuid() and list_others(os.path.realpath(base), keep=folder):
                load_unpacker().remove_others(os.path.realpath(base), keep=folder)


def list_others(base: str, *, keep: str) -> list[str]:
    """Return the folders of other versions, and leftovers of killed starts."""
    paths = [os.path.join(base, name) for name in os.listdir(base) if "-cpython-" in name]
    return [path for path in paths if path != keep and not os.path.islink(path)]


def make_base(base: str) -> None:
    """Create the folder with mode 0700; raise `Unusable` if it cannot hold programs, or if others can change it."""
    check_way(base)
    os.makedirs(os.path.dirname(base), mode=0o700, exist_ok=True)
    check_way(base)  # others may have created a missing folder meanwhile
    with contextlib.suppress(FileExistsError):
        os.mkdir(base, 0o700)
    status = os.lstat(base)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise Unusable(f"{base} belongs to another user, or others can write to it")
    if status.st_mode & 0o077:  # others could open and lock it
        os.chmod(base, 0o700)
    if os.statvfs(base).f_flag & os.ST_NOEXEC:
        raise Unusable(f"{base} does not allow execution")


def check_way(base: str) -> None:
    """Raise `Unusable` if others could replace a folder on the path to the base."""
    owners, folder = trusted_owners(), base
    while folder != "/":
        folder = os.path.dirname(folder)
        try:
            status = os.lstat(folder)
        except FileNotFoundError:
            continue
        is_open = status.st_mode & (0o002 if status.st_gid in (0, os.getegid()) else 0o022)
        if status.st_uid not in owners or (is_open and not status.st_mode & stat.S_ISVTX):
            raise Unusable(f"{base} lies in {folder}, which others can change")


def trusted_owners() -> tuple[int, ...]:
    """Return the users that may own folders on the path to a program.

    These are this user, and root by its number here.
    """
    mapped = read_text("/proc/self/uid_map").split()
    is_whole = mapped in ([], ["0", "0", "4294967295"])
    return (0, os.geteuid()) if is_whole else (0, os.geteuid(), UNMAPPED)


def check_room(base: str) -> None:
    """Raise `Unusable` if the folder has no room for unpacking."""
    room = os.statvfs(base)
    if room.f_flag & os.ST_RDONLY or not os.access(base, os.W_OK | os.X_OK):
        raise Unusable(f"{base} cannot be written")
    if room.f_bavail * room.f_frsize < ROOM:
        raise Unusable(f"{base} has {room.f_bavail * room.f_frsize >> 20} MB free")


# --- the unpacked folder -------------------------------------------------------------------------


def take(folder: str) -> bool:
    """Return whether the folder is complete; if so, lock it against removal. Remove a damaged folder."""
    if not lock_shared(folder):
        return False
    if is_damaged(folder):
        discard(folder)
        return False
    if this_boot() != read_text(os.path.join(folder, BOOTED)):
        load_unpacker().drop_bytecode(folder)
    return True


def lock_shared(folder: str) -> bool:
    """Lock the folder against removal; return False if it is missing or being removed."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return False
    held.append(descriptor)
    return True


def is_damaged(folder: str, *, deep: bool = False) -> bool:
    """Return whether a file is missing or has another size or date, or, if `deep`, another content."""
    try:
        with open(os.path.join(folder, FILES), "rb") as file:
            files = json.load(file)
        for name, (size, check) in files.items():
            status = os.stat(f"{folder}/{name}")
            if status.st_size != size or status.st_mtime != DATE or (deep and checksum(f"{folder}/{name}") != check):
                return True
    except (OSError, ValueError, TypeError, AttributeError):
        return True
    return False


def checksum(path: str) -> int:
    """Return the CRC-32 of a file."""
    with open(path, "rb") as file:
        return zlib.crc32(file.read())


def discard(folder: str) -> None:
    """Remove the locked folder, so that it is unpacked again."""
    os.close(held.pop())
    load_unpacker().discard(folder)


def this_boot() -> str:
    """Return the id of this boot of the box; empty if it is unknown."""
    return read_text("/proc/sys/kernel/random/boot_id")


def read_text(path: str) -> str:
    """Return the text of a small file; empty if it cannot be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def load_unpacker() -> Any:
    """Return the module that unpacks, which most starts do not need."""
    import lares_unpack

    return lares_unpack
