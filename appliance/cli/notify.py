"""`lares notify`: sends a test message through a section."""

from __future__ import annotations

import argparse
import os
from urllib.parse import quote

from appliance.cli.hub_client import HubRequest, ask_hub
from appliance.cli.terminal import say
from appliance.errors import StartFailed


def notify(arguments: argparse.Namespace) -> int:
    payload = {"message": arguments.text, **({} if arguments.title is None else {"title": arguments.title})}
    section, _, operation = arguments.section.partition(":")
    if not section:
        raise StartFailed("the section is empty; `lares status` lists the sections", os.EX_USAGE)
    path = f"/adapters/{quote(section, safe='')}/operations/{quote(operation or 'send', safe='')}"
    result = ask_hub(arguments, HubRequest(method="POST", path=path, body=payload))["result"]
    status = result["status"] if isinstance(result, dict) and "status" in result else "sent"
    say(f"{arguments.section}: {status}")
    return os.EX_OK
