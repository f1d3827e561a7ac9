"""`lares backup`: writes state, configuration, Lua files, and history to one file, even while the hub runs."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from appliance.cli.archive import (
    CONFIG_FOLDER,
    MAX_ARCHIVE_BYTES,
    MAX_HISTORY_BYTES,
    Archive,
    begins_like_archive,
    check_size,
    find_path_fault,
    pack,
)
from appliance.cli.config_swap import MARKER
from appliance.cli.configured_master_key import decode, key_of, without_key
from appliance.cli.log_output import one_line
from appliance.cli.named_files import check_target, is_in_folder, reading, write_named
from appliance.cli.owner import as_owner
from appliance.cli.paths import HubPaths, check_store, config_folder
from appliance.cli.record_checks import find_invalid
from appliance.cli.terminal import counted, progress, say
from appliance.clock import Clock, timestamp
from appliance.config import LUA_FOLDERS, parse_toml
from appliance.errors import Invalid, StartFailed
from appliance.store.month_files import month_in
from appliance.store.record_keys import (
    ADAPTER_PREFIX,
    CARD,
    CLIENT_ID_SUFFIX,
    CRASHES,
    DOUBTFUL,
    LUA_SECRETS_SUFFIX,
    MASTER_KEY,
    RUNNING,
)
from appliance.store.restore import present_history, read_present
from appliance.store.saved_files import MAX_VERSIONS_BYTES, VERSIONS_FOLDER, is_version
from appliance.tables.plain_files import read_plain

log = logging.getLogger("hub")

OF_THE_BOX = (CARD, CRASHES, DOUBTFUL, MASTER_KEY, RUNNING)
"""Keys that apply only to this machine. Backups also omit the client ids for brokers (`CLIENT_ID_SUFFIX`)."""

MAX_SHOWN_RECORDS = 10
"""Maximum number of warnings that name an omitted record."""


def backup(arguments: argparse.Namespace) -> int:
    paths = HubPaths.of_process(arguments)
    config, data_dir = paths.find_config(), paths.need_data_dir()
    file = Path(arguments.file)
    check_target(file, data_dir)
    _check_outside_config(file, config)
    _check_replaced(file)
    with progress(f"writing {file}"):
        with as_owner(data_dir, config):
            check_store(data_dir)
            history, secrets = not arguments.without_history, arguments.with_secrets
            made, warnings = collect(config, data_dir, has_history=history, has_secrets=secrets)
            packed = pack(made)
        write_named(file, packed)
    for warning in warnings:
        say(f"warning: {warning}")
    months = f" and {counted(len(made.months), 'month')} of history" if made.months else ""
    comma = "," if months else " and"
    say(f"{file}: {len(made.values)} state entries{comma} {counted(len(made.files), 'configuration file')}{months}")
    return os.EX_OK


def pack_backup(config: Path, data_dir: Path) -> bytes:
    """Create a backup in the running hub, and return the archive. Raise `Invalid` if the data cannot be packed."""
    try:
        made, warnings = collect(config, data_dir)
        packed = pack(made)
    except StartFailed as failed:
        raise Invalid(str(failed)) from None
    for warning in warnings:
        log.warning("backup: %s", warning)
    return packed


def collect(
    config: Path, data_dir: Path, *, has_history: bool = True, has_secrets: bool = False
) -> tuple[Archive, list[str]]:
    """Return the content of a backup, and warnings.

    If `has_secrets` is true, the content includes secrets of Lua kinds, such as pairing keys.
    """
    found = read_present(data_dir)
    files, copies = _gather(config)
    values = {key: orjson.loads(value) for key, value in found.values.items() if not _is_of_the_box(key)}
    if not has_secrets:
        values = {key: value for key, value in values.items() if not _is_lua_secret(key)}
    invalid = find_invalid(values)
    values = {key: value for key, value in values.items() if key not in invalid}
    months, omitted = _find_months(data_dir) if has_history else ([], [])
    made = Archive(
        created_at=timestamp(Clock().now()),
        main=config.name,
        values=values,
        files=files,
        months=months,
        versions=_read_versions(data_dir),
    )
    return made, [*found.damage, *_list_omitted([*invalid.values()]), *copies, *omitted]


def _list_omitted(invalid: Sequence[str]) -> Iterator[str]:
    """Return warnings about records that a restore would refuse. The hub ignores these records too."""
    for record in invalid[:MAX_SHOWN_RECORDS]:
        yield f"the backup omits an invalid record ({record})"
    if (more := len(invalid) - MAX_SHOWN_RECORDS) > 0:
        yield f"the backup omits {counted(more, 'more invalid record')}"


def _read_versions(data_dir: Path) -> dict[str, bytes]:
    """Return the previous texts of files by file name. Skip any files that the hub removes in the meantime."""
    found = {}
    for path in sorted((data_dir / VERSIONS_FOLDER).glob("*")):
        if is_version(path.name) and find_path_fault(PurePosixPath(VERSIONS_FOLDER, path.name)) is None:
            with suppress(OSError):
                found[path.name] = read_plain(path, MAX_VERSIONS_BYTES)
    return found


def _find_months(data_dir: Path) -> tuple[list[Path], list[str]]:
    """Return the newest months of history within the size limit, and warnings about omitted months."""
    months, omitted, room = [], [], MAX_HISTORY_BYTES
    for month in sorted(present_history(data_dir).glob("*.jsonl"), reverse=True):
        is_plain = month.is_file() and not month.is_symlink() and month_in(month.name) is not None
        room -= month.stat().st_size if is_plain else 0
        if is_plain and room >= 0:
            months.append(month)
        else:
            reason = "the backup would be too large" if is_plain else "no plain file of a month"
            omitted.append(f"{one_line(str(month))} is not in the backup: {reason}")
    return months[::-1], omitted


def _is_lua_secret(key: str) -> bool:
    return key.startswith(ADAPTER_PREFIX) and key.endswith(LUA_SECRETS_SUFFIX)


def _is_of_the_box(key: str) -> bool:
    return key in OF_THE_BOX or (key.startswith(ADAPTER_PREFIX) and key.endswith(CLIENT_ID_SUFFIX))


def _check_outside_config(file: Path, config: Path) -> None:
    """Raise `StartFailed` if the file is in the configuration folder, because the next backup would contain this
    backup."""
    folder = config_folder(config)
    if is_in_folder(file, folder):
        raise StartFailed(f"{file} is in {folder}, which is part of the backup; name another folder", os.EX_CANTCREAT)


def _check_replaced(file: Path) -> None:
    """Raise `StartFailed` if the backup would replace a file other than an earlier backup or an empty file."""
    if not file.is_file() or file.is_symlink():
        return  # `write_named` rejects other kinds of files
    try:
        is_replaceable = file.stat().st_size == 0 or begins_like_archive(file)
    except OSError:  # for example, a file of another user with several hard links
        is_replaceable = False
    if not is_replaceable:
        raise StartFailed(f"{file} exists already and is not a backup; choose another path", os.EX_CANTCREAT)


def _gather(config: Path) -> tuple[dict[PurePosixPath, bytes], list[str]]:
    """Return the configuration files without the master key, and warnings about omitted files and about other files
    that contain the master key."""
    folder = config.parent
    with reading():
        found = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MARKER)
        faults = {path: find_path_fault(PurePosixPath(CONFIG_FOLDER, path.relative_to(folder))) for path in found}
        paths = [path for path, fault in faults.items() if fault is None]
        check_size(sum(path.stat().st_size for path in paths))
        files = {PurePosixPath(path.relative_to(folder)): read_plain(path, MAX_ARCHIVE_BYTES) for path in paths}
    name = PurePosixPath(config.name)
    omitted = [
        f"{one_line(str(path))} is not in the backup: its path {fault}" for path, fault in faults.items() if fault
    ]
    if name not in files:
        return files, omitted
    text = decode(files[name], config)
    files[name] = without_key(text, str(config)).encode()
    key = key_of(text, str(config))
    copies = [path for path, data in files.items() if key and key.encode() in data]
    warnings = [
        f"{folder / path} contains a copy of the master key, so the backup contains the key" for path in copies
    ]
    return files, [*omitted, *warnings, *_list_outside(folder, parse_toml(text, str(config)))]


def _list_outside(folder: Path, raw: dict[str, Any]) -> Iterator[str]:
    """Return a warning for each Lua folder outside of the configuration folder."""
    for name in LUA_FOLDERS:
        section = raw.get(name)
        stated = section.get("directory") if isinstance(section, dict) else None
        if isinstance(stated, str) and not (folder.parent / stated).resolve().is_relative_to(folder.resolve()):
            yield f"the backup omits {folder.parent / stated}, the folder of {name}, because it is outside {folder}"
