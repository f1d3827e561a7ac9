"""`lares key`: creates, lists, and revokes API keys on this machine, with or without a running hub."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from appliance import config
from appliance.api import schemas
from appliance.api.keyring import KEY_BODY, Keyring
from appliance.cli.hub_client import HubRequest, ask, ask_or_act, open_stored
from appliance.cli.keyring import keyring_of
from appliance.cli.log_output import discard
from appliance.cli.owner import become_owner
from appliance.cli.paths import HubPaths, check_store
from appliance.cli.terminal import check_output, say
from appliance.errors import Invalid, LaresError, StartFailed
from appliance.home.bus import Bus
from appliance.home.texts import identifier
from appliance.settings import Auth
from appliance.store.stored_keys import Keys

Act = Callable[[Keyring], Awaitable[Any]]
"""Does the work of a request directly, without a running hub."""

KeyCommand = tuple[HubRequest, Act, Callable[[Any], None]]
"""The request to a running hub, the equivalent work without a hub, and a function that prints the answer."""

NO_AUTH = Auth(master_key=None, source="")
ONLY_NOW = "shown only once"


def key(arguments: argparse.Namespace) -> int:
    """Change or list keys, through the hub if it runs."""
    paths = HubPaths.of_process(arguments)
    data_dir = paths.need_data_dir()
    become_owner(data_dir)
    auth = _read_auth(paths) if arguments.do == "reset-master" else NO_AUTH
    request, act, show = _COMMANDS[arguments.do](arguments)
    if arguments.do in ("list", "revoke"):
        check_store(data_dir)
    else:
        check_output()
    show(
        asyncio.run(
            ask_or_act(data_dir, lambda: ask(data_dir, request), lambda: _act_without_hub(data_dir, act, auth))
        )
    )
    return os.EX_OK


def _read_auth(paths: HubPaths) -> Auth | LaresError:
    """Return the master key from the configuration or environment, or the error. The master key is needed only for
    work without a running hub."""
    try:
        return config.load_or_defaults(paths.find_config(), os.environ).auth
    except LaresError as error:
        return error


async def _act_without_hub(data_dir: Path, act: Act, auth: Auth | LaresError) -> Any:
    """Do the work with exclusive access to the store. Return the same answer as the hub."""
    if isinstance(auth, LaresError):
        raise auth
    async with open_stored(data_dir) as (document, clock):
        with closing(keyring_of(auth, Keys(document, Bus()), data_dir, clock)) as keyring:
            return await act(keyring)


def _create(arguments: argparse.Namespace) -> KeyCommand:
    stated = {"label": arguments.label, "role": arguments.role}
    if arguments.hook is not None:
        stated["hook"] = arguments.hook

    async def act(keyring: Keyring) -> Any:
        key, token = await keyring.create(**KEY_BODY(stated))
        return {**schemas.KEY(key), "key": token}

    return HubRequest(method="POST", path="/auth/keys", body=stated), act, _show_created


def _list(arguments: argparse.Namespace) -> KeyCommand:
    async def act(keyring: Keyring) -> Any:
        return [*map(schemas.KEY, keyring.list_all())]

    return HubRequest(path="/auth/keys"), act, _show_list


def _revoke(arguments: argparse.Namespace) -> KeyCommand:
    try:
        key_id = identifier(arguments.key_id)
    except Invalid as fault:
        raise StartFailed(f"id {fault}", os.EX_USAGE) from None
    path = f"/auth/keys/{quote(key_id, safe='')}"
    request = HubRequest(method="DELETE", path=path)
    return request, lambda keyring: keyring.revoke(key_id), lambda _: say(f"{key_id} is revoked")


def _reset_master(arguments: argparse.Namespace) -> KeyCommand:
    async def act(keyring: Keyring) -> Any:
        return {"key": await keyring.reset_master()}

    return HubRequest(method="POST", path="/auth/master"), act, _show_master


def _show_created(made: dict[str, Any]) -> None:
    _print_note(f"{made['id']} was created, role {_role(made)}, label {made['label']}; its secret, {ONLY_NOW}:")
    if "warning" in made:
        _print_note(f"warning: {made['warning']}")
    _print_secret(made["key"], f"run `lares key revoke {made['id']}`, and create another key")


def _role(key: dict[str, Any]) -> str:
    return f"{key['role']} {key['hook']}" if "hook" in key else str(key["role"])


def _show_list(keys: list[dict[str, Any]]) -> None:
    rows = [(each["id"], _role(each), each["created_at"], each["label"]) for each in keys]
    if not rows:
        _print_note("the master key is the only key")
        return
    table = [("id", "role", "created", "label"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(3)]
    for row in table:
        say("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]))


def _show_master(reply: dict[str, Any]) -> None:
    _print_note(f"the old master key no longer works; this is the new one, {ONLY_NOW}:")
    _print_secret(reply["key"], "run `lares key reset-master` again")


def _print_secret(secret: str, remedy: str) -> None:
    """Print the secret. If that fails, raise `StartFailed` with the remedy, because the secret is lost."""
    try:
        say(secret)
    except (StartFailed, BrokenPipeError) as error:
        discard(sys.stdout)
        reason = error if isinstance(error, StartFailed) else "standard output has no reader"
        raise StartFailed(f"{reason}; the secret is lost: {remedy}", os.EX_IOERR) from None


def _print_note(sentence: str) -> None:
    """Print on standard error, because a program may read standard output."""
    say(sentence, to=sys.stderr)


_COMMANDS: Mapping[str, Callable[[argparse.Namespace], KeyCommand]] = {
    "create": _create,
    "list": _list,
    "revoke": _revoke,
    "reset-master": _reset_master,
}
