"""`lares restore`: put back what `lares backup` took, and keep what it replaces."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from appliance.cli import archive
from appliance.cli.archive import Archive
from appliance.cli.backup import decode
from appliance.cli.master_key import key_of, with_key, without_key
from appliance.cli.paths import Places, config_folder, make_data_dir
from appliance.clock import Clock
from appliance.errors import ConfigFailed, StartFailed
from appliance.store.lock import Lock
from appliance.store.reading import replace_document
from appliance.store.records import CARD, MASTER_KEY

STAGE = ".restore-part"


def restore(arguments: argparse.Namespace) -> int:
    """Restore the archive; refuses while a hub runs on the data directory."""
    found = archive.read(Path(arguments.file))
    places = Places.of_process(arguments.config, arguments.data_dir)
    file, data_dir = places.find_config(), places.find_data_dir()
    files = _files_for(file, found)
    make_data_dir(data_dir)
    lock = Lock(data_dir)
    try:
        kept = _replace(file, files, data_dir, found)
    finally:
        lock.release()
    print(f"restored the backup of {found.created_at}: {len(found.values)} entries, {len(found.files)} files")
    for path in kept:
        print(f"what was there is kept as {path}")
    return os.EX_OK


def _files_for(file: Path, found: Archive) -> dict[PurePosixPath, bytes]:
    """What the configuration's folder shall hold: the archive's files, the main one under the name that it has here.

    The box's own master key is put into it. Where the archive has no main file, the box's own stays.
    """
    config_folder(file)
    files, main = dict(found.files), PurePosixPath(file.name)
    restored = files.pop(PurePosixPath(found.main), None)
    present = _read_present(file)
    if restored is None:
        return files if present is None else {**files, main: present}
    key = _present_key(file, present)
    text, name = decode(restored, Path(found.main)), f"{found.main} in the backup"
    return {**files, main: (without_key(text, name) if key is None else with_key(text, key, name)).encode()}


def _read_present(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StartFailed(f"{file} cannot be read: {error.strerror}", os.EX_NOINPUT) from None


def _present_key(file: Path, present: bytes | None) -> str | None:
    """The master key of the box's configuration, if it states one."""
    if present is None:
        return None
    try:
        return key_of(decode(present, file), str(file))
    except ConfigFailed as failed:
        raise StartFailed(
            f"{failed}\nnothing is restored, for the master key in it would be lost: mend the file or move it away",
            os.EX_CONFIG,
        ) from None


def _replace(file: Path, files: dict[PurePosixPath, bytes], data_dir: Path, found: Archive) -> list[Path]:
    """Replace configuration and document, both or neither; the paths under which the old ones are kept."""
    stamp = Clock().now().strftime("%Y%m%dT%H%M%SZ")
    with _told(), _new_config(file, files, stamp) as kept:
        return [*kept, *replace_document(data_dir, found.values, stamp, own=[CARD, MASTER_KEY])]


@contextlib.contextmanager
def _new_config(file: Path, files: dict[PurePosixPath, bytes], stamp: str) -> Iterator[list[Path]]:
    """Put these files in place of the configuration's folder, and the old ones back if the context fails."""
    folder = file.parent
    if not files:
        yield []
        return
    old = folder.with_name(f"{folder.name}.before-restore-{stamp}")
    kept = [old] if folder.exists() else []
    _write_stage(folder, files)
    try:
        _swap(folder, old)
        yield kept
    except BaseException:
        _swap_back(folder, old)
        raise


def _write_stage(folder: Path, files: dict[PurePosixPath, bytes]) -> None:
    """Write the new folder beside the present one, on the device when this returns."""
    stage = folder.with_name(folder.name + STAGE)
    shutil.rmtree(stage, ignore_errors=True)
    try:
        for path, data in files.items():
            target = stage / path
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.touch(mode=0o600)
            target.write_bytes(data)
        if folder.exists():
            _look_alike(stage, folder)
        os.sync()
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise


def _look_alike(stage: Path, folder: Path) -> None:
    """Give what is staged the owner and mode of what it replaces, so that whoever runs the hub can read it."""
    for path in [stage, *stage.rglob("*")]:
        there = folder / path.relative_to(stage)
        like = (there if there.exists() else folder).stat()
        mode = like.st_mode & (0o777 if there.exists() or path.is_dir() else 0o666)
        with contextlib.suppress(PermissionError):  # one who may not give files away owns them himself
            os.chown(path, like.st_uid, like.st_gid)
        path.chmod(mode)


def _swap(folder: Path, old: Path) -> None:
    if folder.exists():
        folder.rename(old)
    folder.with_name(folder.name + STAGE).rename(folder)


def _swap_back(folder: Path, old: Path) -> None:
    stage = folder.with_name(folder.name + STAGE)
    try:
        if not stage.exists():
            folder.rename(stage)
        if old.exists():
            old.rename(folder)
    except OSError as error:
        raise StartFailed(
            f"cannot restore, nor undo what was begun: {error.strerror}; rename {old} to {folder}", os.EX_IOERR
        ) from None
    shutil.rmtree(stage, ignore_errors=True)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn what the file system refuses into a sentence."""
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise StartFailed(
            f"cannot restore: {where}{error.strerror}; everything is as it was", os.EX_IOERR
        ) from None
