"""`lares reload`: reloads the Lua files and the changed adapter sections of the running hub."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Any

from appliance.cli.hub_client import HubRequest, ask_hub
from appliance.cli.terminal import counted, say
from appliance.errors import Fault

NOUNS = {"adapters": "kind", "scenes": "scene", "automations": "automation", "scripts": "script"}


def reload(arguments: argparse.Namespace) -> int:
    """Print each change and each error. Return 78 if there is an error."""
    reply = ask_hub(arguments, HubRequest(method="POST", path="/diagnostics/reload"))
    faults = [fault for done in reply["reloads"] for fault in done["errors"]]
    for done in reply["reloads"]:
        say(*_describe(done))
    say(*reply["config"], *filter(None, [reply.get("safe")]))
    if faults:
        say(f"lares: {counted(len(faults), 'fault')} found", to=sys.stderr)
        return os.EX_CONFIG
    return os.EX_OK


def _describe(done: dict[str, Any]) -> Iterator[str]:
    target, count = done["target"], done["loaded_count"]
    verb = "checked" if target == "scripts" else "loaded"
    if done["errors"] and not count:
        yield f"{target}: not reloaded; the previous files remain active"
    else:
        yield f"{target}: {counted(count, NOUNS[target])} {verb}"
    for name, change in done.get("sections", {}).items():
        yield f"  [adapters.{name}] {change}"
    for fault in done["errors"]:
        yield f"  {Fault(**fault)}"
