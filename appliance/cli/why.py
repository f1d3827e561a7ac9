"""`lares why`: explains the state of an automation, scene, or device, and lists the latest decisions."""

from __future__ import annotations

import argparse
import json
import os

from appliance.cli.hub_client import HubRequest, ask_hub
from appliance.cli.terminal import local_time, say, with_local_times
from appliance.home_locale import load_zone


def why(arguments: argparse.Namespace) -> int:
    """Print the state and the last ten decisions, newest first."""
    reply = ask_hub(arguments, HubRequest(path="/why", query={"id": arguments.id}))
    if arguments.json:
        say(*json.dumps(reply, indent=2).split("\n"))
        return os.EX_OK
    zone = load_zone(reply["timezone"])
    say(f"{reply['kind']} {reply['id']}")
    for sentence in reply["summary"]:
        say(f"  {with_local_times(sentence, zone)}")
    for decision in reply["decisions"]:
        say(f"{local_time(decision['at'], zone)}  {with_local_times(decision['sentence'], zone)}")
    return os.EX_OK
