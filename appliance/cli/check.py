"""`lares check`: lists errors in the configuration and Lua files."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from appliance.cli.examination import examine
from appliance.cli.hub_client import HubRequest, ask
from appliance.cli.owner import need_access
from appliance.cli.paths import HubPaths
from appliance.cli.terminal import counted, say, with_local_times
from appliance.errors import StartFailed


def check(arguments: argparse.Namespace) -> int:
    """Print each error as `file:line: message`. Return 0 if there are no errors, otherwise 78. Warnings do not change
    the exit code."""
    paths = HubPaths.of_process(arguments)
    file, data_dir = paths.need_config(), paths.find_data_dir()
    need_access(data_dir, file)
    found = examine(file, data_dir)
    zone = found.settings.locale.timezone
    for fault in found.faults:
        say(str(fault))
    for warning in found.warnings:
        say(f"warning: {with_local_times(warning, zone)}")
    if found.faults:
        say(f"lares: {counted(len(found.faults), 'fault')} found", to=sys.stderr)
        return os.EX_CONFIG
    say(*(with_local_times(each, zone) for each in _list_changes(data_dir)))
    if found.off:
        say(f"automations switched off: {', '.join(found.off)}; edit each file, then switch the automation on")
    warned = f", {counted(len(found.warnings), 'warning')}" if found.warnings else ""
    say(f"{file}: no faults{warned}")
    return os.EX_OK


def _list_changes(data_dir: Path) -> list[str]:
    """Return configuration changes that the running hub has not applied. If no hub answers, return an empty list."""
    try:
        changes: list[str] = ask(data_dir, HubRequest(path="/diagnostics/status")).get("config", [])
    except (OSError, StartFailed):
        return []
    return changes
