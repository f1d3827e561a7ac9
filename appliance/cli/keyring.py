"""The keyring of the hub process and of `lares key`."""

from __future__ import annotations

from pathlib import Path

from appliance.api.keyring import Keyring
from appliance.cli.first_key import create_first_key, first_key, remove_first_key
from appliance.clock import Clock
from appliance.settings import Auth
from appliance.store.stored_keys import MASTER, Keys


async def open_keyring(auth: Auth, keys: Keys, data_dir: Path, clock: Clock) -> Keyring:
    """Open the keyring with the configured master key. If no master key is configured, use the stored key. At the
    first start without any key, generate a key."""
    if auth.master_key is None and keys.master is None:
        await create_first_key(keys, first_key(data_dir), clock)
    return keyring_of(auth, keys, data_dir, clock)


def keyring_of(auth: Auth, keys: Keys, data_dir: Path, clock: Clock) -> Keyring:
    """Return a keyring that removes the first key's file when the key is first used or replaced."""
    key_file = first_key(data_dir)

    def forget_used(key_id: str) -> None:
        if key_id == MASTER:
            remove_first_key(key_file, is_used=True)

    return Keyring(
        keys,
        clock,
        master_key=auth.master_key,
        master_source=auth.source,
        first_used=forget_used,
        on_master_reset=lambda: remove_first_key(key_file, is_used=False),
    )
