"""`lares discover`: finds devices on the local network, and prints a configuration section for each device."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Collection
from functools import partial
from pathlib import Path

import orjson
from msgspec.structs import asdict

from appliance import config
from appliance.adapters.network_search.search import MAX_SEARCH_SECS, Discovery
from appliance.cli.owner import as_owner
from appliance.cli.paths import HubPaths
from appliance.cli.terminal import say
from appliance.clock import Clock
from appliance.errors import ConfigFailed, StartFailed


def discover(arguments: argparse.Namespace) -> int:
    """Search the network from this machine, and print the found devices. A running hub is not necessary."""
    try:
        seconds = float(arguments.seconds)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_SEARCH_SECS:
        must = f"must be a number of seconds above 0, at most {MAX_SEARCH_SECS}"
        raise StartFailed(f"--seconds {must}, not {arguments.seconds!r}", os.EX_USAGE)
    file = HubPaths.of_process(arguments).find_config()
    sections = _sections(file)
    search = Discovery(Clock(), partial(config.list_kinds, file), lambda: sections).search
    found = asyncio.run(search(seconds))
    if arguments.json:
        say(orjson.dumps({"found": found}, default=asdict).decode())
        return os.EX_OK
    for each in found:
        serial = "" if each.serial is None else f", {each.serial}"
        say(f"# {each.name}, {each.address}{serial}", *each.section.splitlines(), "")
    if not found:
        why = "answers may be blocked by a container's network, another VLAN, or a firewall on this machine"
        say(f"no devices found; {why}", to=sys.stderr)
    return os.EX_OK


def _sections(file: Path) -> Collection[str]:
    """Return the names of all adapter sections. If the configuration is missing or invalid, return an empty list."""
    try:
        with as_owner(file):
            return config.load(file, os.environ).adapter_names if file.exists() else ()
    except ConfigFailed:
        return ()
