"""Tokens of keys: their form, their hashes, and the hints of the hashes.

Tokens are hashed with argon2id and checked on a thread, so that the event loop is not blocked.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from appliance.errors import AuthenticationUnavailable
from appliance.tables.fields import Redacted

T = TypeVar("T")

_FORM = re.compile(r"lrs_([a-z0-9]+)_([A-Za-z0-9_-]{43})")


class KeyToken(Redacted, frozen=True, kw_only=True):
    """A token that Lares generated. `text` is the whole token, which contains the id of its key."""

    key_id: str
    HIDDEN = ("text",)
    text: str

    @staticmethod
    def parse(text: str) -> KeyToken | None:
        """Return the token in this text, or None if the text is not a token."""
        match = _FORM.fullmatch(text)
        return None if match is None else KeyToken(key_id=match[1], text=text)

    @staticmethod
    def make(key_id: str) -> KeyToken:
        """Return a new token with 256 random bits."""
        return KeyToken(key_id=key_id, text=f"lrs_{key_id}_{secrets.token_urlsafe(32)}")


class Hasher:
    """Hashes and checks tokens on a separate thread, one token at a time, to limit the memory to 12 MiB.

    `hash` and `check` raise `AuthenticationUnavailable` if the system lacks memory or threads.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="keys")

    def hash(self, text: str) -> asyncio.Future[str]:
        return self._run(hash_token, text)

    def check(self, stored_hash: str, text: str) -> asyncio.Future[bool]:
        return self._run(matches, stored_hash, text)

    def _run(self, work: Callable[..., T], *arguments: str) -> asyncio.Future[T]:
        try:
            return asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        except RuntimeError as error:
            raise AuthenticationUnavailable(f"the hub cannot check a key now ({error}); try again later") from None

    def close(self) -> None:
        """Stop the thread, and cancel waiting checks."""
        self._thread.shutdown(wait=False, cancel_futures=True)


@cache
def _argon2id() -> Any:
    """Return a hasher that needs 12 MiB and, on a PC, about 30 ms per check. OWASP recommends these values, and
    they are suitable for a machine with 512 MB of RAM."""
    from argon2 import PasswordHasher, Type

    return PasswordHasher(time_cost=3, memory_cost=12 * 1024, parallelism=1, type=Type.ID)


def hash_token(text: str) -> str:
    """Return the hash of a token, for storage. A hash takes about 30 ms and 12 MiB, so never call this function on
    the event loop."""
    from argon2.exceptions import Argon2Error

    try:
        return str(_argon2id().hash(text))
    except (Argon2Error, MemoryError) as error:
        raise AuthenticationUnavailable(
            f"the hub cannot create a key now ({error or 'no memory'}); try again later"
        ) from None


def hint_of(text: str) -> str:
    """Return 32 bits of a digest of the token. The hub stores this hint with the hash. With the hint, the hub
    rejects most wrong tokens without computing a hash."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4, person=b"lares-key-hint").hexdigest()


def is_hash(text: str) -> bool:
    """Return whether the text has the form of a `hash_token` result."""
    from argon2 import Type, extract_parameters
    from argon2.exceptions import InvalidHashError

    try:
        found = extract_parameters(text)
    except InvalidHashError:
        return False
    lengths = (found.salt_len, found.hash_len)
    return found.type is Type.ID and lengths == (_argon2id().salt_len, _argon2id().hash_len)


def matches(stored_hash: str, text: str) -> bool:
    """Return whether the hash matches the token. The check costs as much as `hash_token`. Raise
    `AuthenticationUnavailable` if memory is short, because a valid key must not be reported as invalid."""
    from argon2.exceptions import Argon2Error, VerifyMismatchError

    if not is_hash(stored_hash):
        return False
    try:
        return bool(_argon2id().verify(stored_hash, text))
    except (VerifyMismatchError, ValueError):
        return False
    except (Argon2Error, MemoryError) as error:
        raise AuthenticationUnavailable(
            f"the hub cannot check a key now ({error or 'no memory'}); try again later"
        ) from None
