"""`lares notify`: sends a message through a section, to try it."""

from __future__ import annotations

import argparse
import os
from urllib.parse import quote

from appliance.cli.hub_client import HubRequest, ask_hub
from appliance.cli.terminal import say


def notify(arguments: argparse.Namespace) -> int:
    """Send the text and print the result; return the exit code. Raise `StartFailed` if it fails."""
    payload = {"message": arguments.text, **({} if arguments.title is None else {"title": arguments.title})}
    section, _, operation = arguments.section.partition(":")
    path = f"/adapters/{quote(section, safe='')}/operations/{quote(operation or 'send', safe='')}"
    result = ask_hub(arguments, HubRequest(method="POST", path=path, body=payload))["result"]
    status = result["status"] if isinstance(result, dict) and "status" in result else "sent"
    say(f"{arguments.section}: {status}")
    return os.EX_OK
