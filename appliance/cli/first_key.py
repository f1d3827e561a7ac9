"""The master key of a box on which none is configured: made at the first start, kept as a hash only."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from appliance.api.auth import Authenticator, Credential, Role
from appliance.api.keys import Token, hash_token, is_hash
from appliance.cli.private import write_private
from appliance.errors import StartFailed
from appliance.settings import Auth

MASTER = "master"

log = logging.getLogger("keys")


def open_door(auth: Auth, data_dir: Path) -> Authenticator:
    """The authenticator for the configured master key, or for the box's own, which is made if there is none yet."""
    if auth.master_key is not None:
        return Authenticator(master_key=auth.master_key)
    hash_file = data_dir / "master-key"
    token_hash = _read(hash_file) if hash_file.exists() else _make(hash_file, data_dir / "first-key")
    credential = Credential(key_id=MASTER, role=Role.ADMIN, token_hash=token_hash)
    return Authenticator(credentials=[credential], first_used=_remover(data_dir / "first-key"))


def _read(file: Path) -> str:
    try:
        text = file.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise StartFailed(f"the master key's hash {file} cannot be read: {error.strerror}", os.EX_NOINPUT) from None
    if not is_hash(text):
        raise StartFailed(f"the master key's hash {file} is damaged; remove it to be given a new key", os.EX_DATAERR)
    return text


def _make(hash_file: Path, key_file: Path) -> str:
    """Make the key and tell it once: on the terminal, or in a file that goes when the key has been used."""
    token = Token.make(MASTER)
    token_hash = hash_token(token.text)
    on_terminal = sys.stdout.isatty()
    if not on_terminal:
        write_private(key_file, f"{token.text}\n".encode())
    write_private(hash_file, f"{token_hash}\n".encode())
    if on_terminal:
        print(f"\nThe master key of this hub, shown this once:\n\n    {token.text}\n", flush=True)
    else:
        log.warning("the master key was made and is in %s until it is first used", key_file)
    return token_hash


def _remover(key_file: Path) -> Callable[[str], None]:
    def remove(key_id: str) -> None:
        """Remove the file that tells the first key, once that key has been used."""
        if key_id != MASTER or not key_file.exists():
            return
        try:
            key_file.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the master key has been used, but %s cannot be removed: %s", key_file, error.strerror)
        else:
            log.info("the master key has been used; %s is removed", key_file)

    return remove
