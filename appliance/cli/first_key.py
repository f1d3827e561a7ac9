"""Generates a master key at the first start if no key is configured. Only the key's hash is stored."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

from appliance.api.keyring import make_master
from appliance.api.tokens import KeyToken, hash_token, hint_of
from appliance.cli.named_files import write_private
from appliance.cli.terminal import say
from appliance.clock import Clock
from appliance.errors import StartFailed, StoreFailed
from appliance.store.stored_keys import MASTER, Keys

log = logging.getLogger("keys")


def first_key(data_dir: Path) -> Path:
    """Return the path of the first key's file. The file exists until the key's first use."""
    return data_dir / "first-key"


async def create_first_key(keys: Keys, key_file: Path, clock: Clock) -> None:
    """Generate the key and show it once, on the terminal or in a file that exists until the key's first use."""
    token = KeyToken.make(MASTER)
    master = make_master(await asyncio.to_thread(hash_token, token.text), hint_of(token.text), clock)
    on_terminal = sys.stdout.isatty()
    if not on_terminal:
        write_private(key_file, f"{token.text}\n".encode())
    try:
        await keys.put(master)
    except StoreFailed as error:
        raise StartFailed(f"the master key cannot be stored: {error}", os.EX_IOERR) from None
    if on_terminal:
        say("", "The master key of this hub (it is not shown again):", "", f"    {token.text}", "")
    else:
        log.warning("the master key was created; it is in %s until its first use", key_file)


def remove_first_key(key_file: Path, *, is_used: bool) -> None:
    """Remove the file, which the hub no longer needs. After a use, log the removal or its failure."""
    if not key_file.exists():
        return
    try:
        key_file.unlink(missing_ok=True)
    except OSError as error:
        if is_used:
            log.warning("the master key has been used, but %s cannot be removed: %s", key_file, error.strerror)
    else:
        if is_used:
            log.info("the master key has been used; %s is removed", key_file)
