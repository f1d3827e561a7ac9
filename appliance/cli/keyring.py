"""The keyring of the hub process and of `lares key`. If no key is configured, a master key is generated at the first
start. Only the key's hash is stored."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

from appliance.api.keyring import Keyring, make_master
from appliance.api.tokens import KeyToken, hash_token, hint_of
from appliance.cli.named_files import write_private
from appliance.cli.terminal import say
from appliance.clock import Clock
from appliance.errors import StartFailed, StoreFailed
from appliance.settings import Auth
from appliance.store.stored_keys import MASTER, Keys

log = logging.getLogger("keys")


async def open_keyring(auth: Auth, keys: Keys, data_dir: Path, clock: Clock) -> Keyring:
    """Open the keyring with the configured master key. If no master key is configured, use the stored key. At the
    first start without any key, generate a key."""
    if auth.master_key is None and keys.master is None:
        await _create_first_key(keys, _first_key(data_dir), clock)
    return keyring_of(auth, keys, data_dir, clock)


def keyring_of(auth: Auth, keys: Keys, data_dir: Path, clock: Clock) -> Keyring:
    """Return a keyring that removes the first key's file when the key is first used or replaced."""
    key_file = _first_key(data_dir)

    def forget_used(key_id: str) -> None:
        if key_id == MASTER:
            _remove_first_key(key_file, is_used=True)

    return Keyring(
        keys,
        clock,
        master_key=auth.master_key,
        master_source=auth.source,
        first_used=forget_used,
        on_master_reset=lambda: _remove_first_key(key_file, is_used=False),
    )


def _first_key(data_dir: Path) -> Path:
    """Return the path of the first key's file. The file exists until the key's first use."""
    return data_dir / "first-key"


async def _create_first_key(keys: Keys, key_file: Path, clock: Clock) -> None:
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


def _remove_first_key(key_file: Path, *, is_used: bool) -> None:
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
