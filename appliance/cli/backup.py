"""`lares backup`: state, configuration and Lua in one file, also while the hub runs."""

from __future__ import annotations

import argparse
import os
from pathlib import Path, PurePosixPath

import orjson

from appliance.cli import archive
from appliance.cli.archive import Archive
from appliance.cli.master_key import key_of, without_key
from appliance.cli.paths import MARKER, Places, config_folder
from appliance.cli.terminal import progress
from appliance.clock import Clock, timestamp
from appliance.errors import StartFailed
from appliance.store.reading import read_document
from appliance.store.records import CARD, CRASHES, MASTER_KEY

OF_THE_BOX = (CARD, CRASHES, MASTER_KEY)
"""What tells of this box and no other."""


def backup(arguments: argparse.Namespace) -> int:
    """Write the archive and say what is in it."""
    places = Places.of_process(arguments.config, arguments.data_dir)
    config, data_dir = places.find_config(), places.find_data_dir()
    file = Path(arguments.file)
    _check_places(file, config, data_dir)
    found = read_document(data_dir)
    made = Archive(
        created_at=timestamp(Clock().now()),
        main=config.name,
        values={key: orjson.loads(value) for key, value in found.values.items() if key not in OF_THE_BOX},
        files=_gather(config),
    )
    with progress(f"writing {file}"):
        archive.write(file, made)
    for note in found.damage:
        print(f"warning: {note}")
    print(f"{file}: {len(made.values)} entries of state and {len(made.files)} files of configuration")
    return os.EX_OK


def _check_places(file: Path, config: Path, data_dir: Path) -> None:
    """Raise `StartFailed` where there is nothing to back up, or where the backup would be part of the next one."""
    if not config.exists() and not data_dir.is_dir():
        raise StartFailed(f"there is nothing to back up: neither {config} nor {data_dir} exists", os.EX_NOINPUT)
    folder = config_folder(config)
    if file.resolve().is_relative_to(folder.resolve()):
        raise StartFailed(f"{file} lies in {folder}, which is backed up; name another place", os.EX_CANTCREAT)


def _gather(config: Path) -> dict[PurePosixPath, bytes]:
    """The files of the configuration's folder, the master key left out of the main one."""
    folder = config.parent
    try:
        paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MARKER)
        files = {PurePosixPath(path.relative_to(folder)): path.read_bytes() for path in paths}
    except OSError as error:
        raise StartFailed(f"{error.filename} cannot be read: {error.strerror}", os.EX_NOINPUT) from None
    name = PurePosixPath(config.name)
    if name in files:
        text = decode(files[name], config)
        files[name] = without_key(text, str(config)).encode()
        _warn_of_copies(key_of(text, str(config)), files, folder)
    return files


def _warn_of_copies(key: str | None, files: dict[PurePosixPath, bytes], folder: Path) -> None:
    for path, data in files.items():
        if key and key.encode() in data:
            print(f"warning: {folder / path} holds the master key too, and so does the backup")


def decode(data: bytes, file: Path) -> str:
    """The text of a configuration file; `StartFailed` where it is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StartFailed(f"{file} is not UTF-8 text; `lares check` tells where", os.EX_CONFIG) from None
