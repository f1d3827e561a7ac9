"""`lares log`: prints the latest log lines of the running hub."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import tzinfo
from typing import Any

from appliance.cli.hub_client import HubRequest, ask_hub
from appliance.cli.terminal import local_time, paint, say
from appliance.home_locale import load_zone
from appliance.log_buffer import MAX_LOG_ENTRIES, fields_text

POLL_INTERVAL_SECS = 0.5

_LEVEL_COLOURS = {"error": "red", "critical": "red", "warning": "yellow", "debug": "grey"}


def log(arguments: argparse.Namespace) -> int:
    """Print the matching lines, oldest first. With `--follow`, print new lines until interrupted."""
    filters = {"level": arguments.level, "part": arguments.part, "contains": arguments.contains}
    reply = _ask_log(arguments, {**filters, "limit": arguments.lines})
    if arguments.part is not None and not reply["entries"]:
        _note_unknown_part(arguments)
    while True:
        # a hub of version 0.2.0, which still runs during an upgrade, does not state its zone
        zone = load_zone(reply["timezone"]) if "timezone" in reply else None
        for entry in reversed(reply["entries"]):
            say(json.dumps(entry) if arguments.json else _log_line(entry, zone))
        if not arguments.follow:
            return os.EX_OK
        time.sleep(POLL_INTERVAL_SECS)
        reply = _ask_log(arguments, {**filters, "limit": MAX_LOG_ENTRIES, "after": reply["last"]})


def _note_unknown_part(arguments: argparse.Namespace) -> None:
    """If no line has the requested part, list the existing parts on standard error."""
    parts = sorted({entry["part"] for entry in _ask_log(arguments, {"limit": MAX_LOG_ENTRIES})["entries"]})
    if arguments.part not in parts:
        say(f"the log has no lines of the part '{arguments.part}'; it has {', '.join(parts)}", to=sys.stderr)


def _ask_log(arguments: argparse.Namespace, query: dict[str, Any]) -> dict[str, Any]:
    reply: dict[str, Any] = ask_hub(arguments, HubRequest(path="/diagnostics/log", query=query))
    return reply


def _log_line(entry: dict[str, Any], zone: tzinfo | None) -> str:
    level = f"{entry['level']:<7}"
    shown = paint(level, _LEVEL_COLOURS[entry["level"]]) if entry["level"] in _LEVEL_COLOURS else level
    return (
        f"{local_time(entry['at'], zone)} {shown} {entry['part']}: {entry['message']}{fields_text(entry['fields'])}"
    )
