"""Tokens of keys: made, hashed with argon2id and checked on a thread, so that the loop is not blocked."""

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
    """A token of Lares' own making: the name of the key that it claims to be, and all of it as the secret."""

    key_id: str
    HIDDEN = ("text",)
    text: str

    @staticmethod
    def parse(text: str) -> KeyToken | None:
        """The token in this text, or None when it is of another form."""
        match = _FORM.fullmatch(text)
        return None if match is None else KeyToken(key_id=match[1], text=text)

    @staticmethod
    def make(key_id: str) -> KeyToken:
        """A new token with 256 random bits."""
        return KeyToken(key_id=key_id, text=f"lrs_{key_id}_{secrets.token_urlsafe(32)}")


class Hasher:
    """Hashes and checks on a thread of its own, one at a time, so that all of them together need 12 MiB.

    Both raise `AuthenticationUnavailable` where the system grants no memory or no thread.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="keys")

    def hash(self, text: str) -> asyncio.Future[str]:
        """As `hash_token`, off the loop."""
        return self._run(hash_token, text)

    def check(self, stored_hash: str, text: str) -> asyncio.Future[bool]:
        """As `matches`, off the loop."""
        return self._run(matches, stored_hash, text)

    def _run(self, work: Callable[..., T], *arguments: str) -> asyncio.Future[T]:
        try:
            return asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        except RuntimeError as error:
            raise AuthenticationUnavailable(f"keys cannot be checked now: {error}") from None

    def close(self) -> None:
        """Shut the thread down; what waits is cancelled."""
        self._thread.shutdown(wait=False, cancel_futures=True)


@cache
def _argon2id() -> Any:
    """12 MiB and some 30 ms a check on a PC: costly to guess, affordable with 512 MB of RAM (OWASP lists it)."""
    from argon2 import PasswordHasher, Type

    return PasswordHasher(time_cost=3, memory_cost=12 * 1024, parallelism=1, type=Type.ID)


def hash_token(text: str) -> str:
    """The hash to keep of a token. Takes some 30 ms and 12 MiB: never call it on the loop."""
    from argon2.exceptions import Argon2Error

    try:
        return str(_argon2id().hash(text))
    except (Argon2Error, MemoryError) as error:
        raise AuthenticationUnavailable(f"keys cannot be made now: {error or 'no memory'}") from None


def hint_of(text: str) -> str:
    """What is kept of a token beside its hash: 32 of its 256 bits, digested, so that a guess costs no hash."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4, person=b"lares-key-hint").hexdigest()


def is_hash(text: str) -> bool:
    """Whether this could be what `hash_token` returned."""
    from argon2 import Type, extract_parameters
    from argon2.exceptions import InvalidHashError

    try:
        found = extract_parameters(text)
    except InvalidHashError:
        return False
    lengths = (found.salt_len, found.hash_len)
    return found.type is Type.ID and lengths == (_argon2id().salt_len, _argon2id().hash_len)


def matches(stored_hash: str, text: str) -> bool:
    """Whether the hash is that of the token. It costs as much as `hash_token`.

    Raises `AuthenticationUnavailable` where there is no memory for it: a valid key must not be called invalid.
    """
    from argon2.exceptions import Argon2Error, VerifyMismatchError

    if not is_hash(stored_hash):
        return False
    try:
        return bool(_argon2id().verify(stored_hash, text))
    except (VerifyMismatchError, ValueError):
        return False
    except (Argon2Error, MemoryError) as error:
        raise AuthenticationUnavailable(f"keys cannot be checked now: {error or 'no memory'}") from None
