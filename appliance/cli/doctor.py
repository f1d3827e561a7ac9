"""`lares doctor`: checks this machine, the store, and the running hub."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from appliance.adapters.kinds import kind_of
from appliance.cli.examination import examine
from appliance.cli.hub_client import HubRequest, ask
from appliance.cli.owner import become_owner
from appliance.cli.paths import HubPaths
from appliance.cli.terminal import counted, say, size
from appliance.clock import Clock, timestamp
from appliance.errors import StartFailed
from appliance.lua.running.worker_process import probe_confinement
from appliance.store.card_counts import read_card_counts
from appliance.store.clock_trust import ClockTrust, newest_time
from appliance.store.disk import MAX_STORE_FILE_BYTES, Disk
from appliance.store.lock import holder_of
from appliance.store.month_files import MonthFiles
from appliance.store.record_keys import KEY_PREFIX, MASTER_KEY
from appliance.store.recovery import Recovered
from appliance.store.restore import read_present
from appliance.store.storage import DocumentReader, DocumentSnapshot

NOTHING = DocumentSnapshot({})

NEEDED_BYTES = 4 << 20

Finding = tuple[str, str, str]
"""A result (`ok` or `care`), the subject of the check, and a sentence about the result."""


def doctor(arguments: argparse.Namespace) -> int:
    """Print one line per check. Return 1 if a check finds a problem, otherwise 0."""
    paths = HubPaths.of_process(arguments)
    platform_findings = [*_check_platform()]
    # the check must run as root, because the owner may be unable to read Python
    config_findings = [*_check_config(paths)]
    become_owner(paths.find_data_dir())
    findings = [*config_findings, *_check_data(paths), *platform_findings]
    for how, what, sentence in findings:
        say(f"{how:<5} {what:<15} {sentence}")
    return int(any(how != "ok" for how, _, _ in findings))


def _check_config(paths: HubPaths) -> Iterator[Finding]:
    try:
        file = paths.need_config()
    except StartFailed as error:
        yield "care", "configuration", str(error)
        return
    found = examine(file, paths.find_data_dir())
    for fault in found.faults:
        yield "care", "configuration", str(fault)
    if not found.faults:
        warned = f", {counted(len(found.warnings), 'warning')} (see `lares check`)" if found.warnings else ""
        yield "ok", "configuration", f"{file}{warned}"
    yield from _check_adapters(found.settings.adapters)


def _check_adapters(sections: Mapping[str, Any]) -> Iterator[Finding]:
    """Check the adapter sections and their risks without contacting the hub."""
    for name, settings in sections.items():
        kind = kind_of(settings)
        if (risk := kind.warn(settings)) is not None:
            yield "care", "adapter", f"{name}: {' '.join(risk)}"
        if kind.has_probe:
            is_well, sentence = kind.probe(settings)
            yield "ok" if is_well else "care", "adapter", f"{name}: {sentence}"


def _check_data(paths: HubPaths) -> Iterator[Finding]:
    folder = paths.find_data_dir()
    if not folder.is_dir():
        yield "care", "data directory", f"{folder} does not exist; `lares run` creates it"
        yield _check_clock(NOTHING)
        return
    yield _check_folder(folder)
    if not os.access(folder, os.R_OK | os.X_OK):  # without permission, even the state of the hub is unknown
        yield _check_clock(NOTHING)
        return
    yield _check_space(folder)
    holder = holder_of(folder)
    yield "ok", "hub", "no hub is running" if holder is None else f"process {holder} is running"
    card = None if holder is None else (yield from _check_hub(folder))
    yield from _check_store(folder, card)
    yield _check_history(folder)


def _check_lua(figures: Mapping[str, Any]) -> Iterator[Finding]:
    """Report Lua workers that were lost since the hub's start."""
    for kill in figures.get("last_kills", []):
        yield "care", "Lua", f"at {kill['at']}: {kill['reason']}"
    yield (
        "ok",
        "Lua",
        f"{figures.get('running', 0)} scripts running, {figures.get('kills', 0)} workers lost since the hub's start",
    )


def _check_hub(folder: Path) -> Generator[Finding, None, Mapping[str, Any] | None]:
    """Report the Lua workers, adapters, and card of the running hub. Return the figures of the card if the hub
    answers."""
    try:
        reply = ask(folder, HubRequest(path="/diagnostics/status"))
    except (OSError, StartFailed) as error:
        reason = error if isinstance(error, StartFailed) else error.strerror or "too late"
        yield "care", "hub", f"the hub does not answer on its socket: {reason}"
        return None
    yield from _check_lua(reply["lua"])
    for adapter in reply.get("adapters", []):
        if adapter["status"] == "degraded":
            yield "care", "adapter", f"{adapter['name']}: {adapter['message']}"
    card: Mapping[str, Any] = reply["card"]
    if card["failure"] is not None:
        yield "care", "store", f"changes cannot be stored: {card['failure']}"
    return card


def _check_space(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    sentence = f"{free / 1e6:.1f} MB free where {folder} is stored"
    if free < NEEDED_BYTES:
        return "care", "free space", f"{sentence}, but {NEEDED_BYTES / 1e6:.1f} MB are needed; delete files there"
    return "ok", "free space", sentence


def _check_folder(folder: Path) -> Finding:
    found = folder.stat()
    mode = found.st_mode & 0o777
    shown = f"{folder} (mode {mode:04o})"
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return "care", "data directory", f"{shown} is read-only; check the SD card or disk, then restart the machine"
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return "care", "data directory", f"{shown} belongs to user {found.st_uid}; run `sudo lares doctor`"
    if mode & 0o077:
        return "care", "data directory", f"{shown} is accessible to other users; run `chmod 700 {folder}`"
    return "ok", "data directory", shown


def _check_store(folder: Path, card: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Check the stored data. `card` contains the figures of the running hub, which are newer than the stored ones."""
    try:
        found = read_present(folder)
    except StartFailed as error:
        yield "care", "store", str(error)
        yield _check_clock(NOTHING)
        return
    how = "care" if found.damage else "ok"
    for note in found.notes:
        yield how, "store", note
    yield "ok", "store", f"generation {found.generation}, record {found.sequence}, {len(found.values)} entries"
    yield "ok", "keys", _describe_keys(found)
    yield "ok", "written", _describe_wear(card or _read_card(found))
    yield _check_clock(DocumentSnapshot(found.values))


def _check_history(folder: Path) -> Finding:
    files = MonthFiles(Disk(folder))
    try:
        months = files.list_months()
        if huge := [month for month, size in months.items() if size > MAX_STORE_FILE_BYTES]:
            return "care", "history", f"the file of {huge[0]} is larger than {MAX_STORE_FILE_BYTES >> 20} MiB"
        bad = sum(line is None for month in months for line in files.read_all(month))
    except OSError as error:
        return "care", "history", f"{error.filename or 'the history'} cannot be read: {error.strerror}"
    sentence = f"{counted(len(months), 'month')} stored, {sum(months.values()) / 1e6:.1f} MB"
    return ("care", "history", f"{sentence}, {bad} damaged lines skipped") if bad else ("ok", "history", sentence)


def _describe_keys(found: Recovered) -> str:
    own = "a generated master key" if MASTER_KEY in found.values else "no generated master key"
    count = sum(key.startswith(KEY_PREFIX) for key in found.values) - (MASTER_KEY in found.values)
    return f"{counted(count, 'API key')}, {own}"


def _read_card(found: Recovered) -> Mapping[str, Any] | None:
    counts = read_card_counts(DocumentSnapshot(found.values))
    return None if counts is None else asdict(counts)


def _describe_wear(card: Mapping[str, Any] | None) -> str:
    if card is None:
        return "no writes recorded yet"
    return f"{size(card['bytes_written'])} in {card['syncs']} syncs since {card['since']}"


def _check_clock(stored: DocumentReader) -> Finding:
    """Check whether the hub can trust the clock. If the clock cannot be trusted, explain what to do."""
    clock = Clock()
    trust = ClockTrust(clock, newest_time(stored))
    if (distrust_reason := trust.distrust_reason()) is not None:
        return "care", "clock", distrust_reason
    how = "is synchronised" if clock.is_synchronised() else "not synchronised, but later than every stored time"
    return "ok", "clock", f"{timestamp(clock.now())}, {how}"


def _check_platform() -> Iterator[Finding]:
    yield _check_confinement()
    yield "ok", "platform", f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"


def _check_confinement() -> Finding:
    """Check the sandbox, which confines code that breaks out of Lua."""
    try:
        missing = probe_confinement()
    except OSError as error:
        return "care", "Lua worker", f"Lua cannot be started: {error}"
    if missing:
        return "care", "Lua worker", f"Lua runs, but its sandbox is incomplete: {missing}"
    return "ok", "Lua worker", "its sandbox is complete: no access to files or processes, and few system calls"
