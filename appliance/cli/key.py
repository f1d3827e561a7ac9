"""`lares key`: care of the keys on the box itself, whether or not the hub runs."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from appliance import config
from appliance.api.key_access import Access
from appliance.cli.hub_client import Reply, ask_or_act
from appliance.cli.key_commands import KeyCommands
from appliance.cli.owner import act_as_owner
from appliance.cli.paths import HubPaths
from appliance.clock import Clock
from appliance.errors import LaresError
from appliance.home.bus import Bus
from appliance.settings import Auth
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.stored_keys import Keys

NO_AUTH = Auth(master_key=None, source="")
ONLY_NOW = "this is the only time that it is shown"


def key(arguments: argparse.Namespace) -> int:
    """Do what was asked for, through the hub where one runs; the exit code."""
    paths = HubPaths.of_process(arguments.config, arguments.data_dir)
    data_dir = paths.need_data_dir()
    fields = {"label": "label", "role": "role", "key_id": "id"}
    stated = {name: vars(arguments)[each] for each, name in fields.items() if each in arguments}
    auth = _read_auth(paths) if arguments.do == "reset-master" else NO_AUTH
    act_as_owner(data_dir)
    request = {"do": arguments.do, **stated}
    reply = asyncio.run(ask_or_act(data_dir, request, lambda: _answer_alone(data_dir, request, auth)))
    SHOW[arguments.do](reply)
    return os.EX_OK


def _read_auth(paths: HubPaths) -> Auth | LaresError:
    """What configuration and environment say of the master key, or the error; a hub knows it without being asked."""
    try:
        file = paths.find_config()
        return (config.load(file, os.environ) if file.exists() else config.parse("", str(file), os.environ)).auth
    except LaresError as error:
        return error


async def _answer_alone(data_dir: Path, request: dict[str, Any], auth: Auth | LaresError) -> Reply:
    """The reply of a process that has the store to itself."""
    if isinstance(auth, LaresError):
        raise auth
    clock = Clock()
    async with Document(Disk(data_dir), clock) as document, Keys(document, Bus()) as keys:
        with closing(Access.over(keys, clock)) as access:
            return await KeyCommands(access.keyring, auth, data_dir).answer(request)


def _show_created(reply: dict[str, Any]) -> None:
    made = reply["key"]
    _print_note(f"{made['id']} was made, role {made['role']}, label {made['label']}; its secret, {ONLY_NOW}:")
    print(reply["secret"])


def _show_list(reply: dict[str, Any]) -> None:
    rows = [(each["id"], each["role"], each["created_at"], each["label"]) for each in reply["keys"]]
    if not rows:
        _print_note("there are no keys but the master key")
        return
    table = [("id", "role", "created", "label"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(3)]
    for row in table:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]))


def _show_revoked(reply: dict[str, Any]) -> None:
    print(f"{reply['revoked']} is revoked")


def _show_master(reply: dict[str, Any]) -> None:
    _print_note(f"the old master key opens nothing any more; the new one, {ONLY_NOW}:")
    print(reply["secret"])


def _print_note(sentence: str) -> None:
    """Print on standard error, since standard output may be for a program."""
    print(sentence, file=sys.stderr)


SHOW: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "create": _show_created,
    "list": _show_list,
    "revoke": _show_revoked,
    "reset-master": _show_master,
}
"""How each answer is printed."""
