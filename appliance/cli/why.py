"""`lares why`: the last decisions about an automation, a scene or a device, as sentences."""

from __future__ import annotations

import argparse
import json
import os
import re
from zoneinfo import ZoneInfo

from appliance.cli.hub_client import HubRequest, ask_hub
from appliance.cli.terminal import local_time, say
from appliance.home_locale import load_zone

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def why(arguments: argparse.Namespace) -> int:
    """Print how it is, and the last ten decisions, newest first; the exit code."""
    reply = ask_hub(arguments, HubRequest(path="/why", query={"id": arguments.id}))
    if arguments.json:
        say(*json.dumps(reply, indent=2).split("\n"))
        return os.EX_OK
    zone = load_zone(reply["timezone"])
    say(f"{reply['kind']} {reply['id']}")
    for sentence in reply["summary"]:
        say(f"  {_in_local_time(sentence, zone)}")
    for decision in reply["decisions"]:
        say(f"{local_time(decision['at'], zone)}  {_in_local_time(decision['sentence'], zone)}")
    return os.EX_OK


def _in_local_time(sentence: str, zone: ZoneInfo) -> str:
    return _TIME.sub(lambda found: local_time(found[0], zone), sentence)
