"""Authentication finds the key of a token; authorization compares the key's role with a route.

Tokens are hashed with argon2id and checked on a thread, so that the loop is not blocked.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from msgspec import Struct

from appliance.errors import AuthenticationUnavailable, Forbidden, TooManyChecks, Unauthenticated
from appliance.store.stored_keys import MASTER, Key
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
        """Return the token in this text; None if the text has another form."""
        match = _FORM.fullmatch(text)
        return None if match is None else KeyToken(key_id=match[1], text=text)

    @staticmethod
    def make(key_id: str) -> KeyToken:
        """Return a new token with 256 random bits."""
        return KeyToken(key_id=key_id, text=f"lrs_{key_id}_{secrets.token_urlsafe(32)}")


class Hasher:
    """Hashes and checks tokens on a separate thread, one at a time, so that all of them together need 12 MiB.

    Both methods raise `AuthenticationUnavailable` if the system has no memory or no thread left.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="keys")

    def hash(self, text: str) -> asyncio.Future[str]:
        """Run `hash_token` on the thread."""
        return self._run(hash_token, text)

    def check(self, stored_hash: str, text: str) -> asyncio.Future[bool]:
        """Run `matches` on the thread."""
        return self._run(matches, stored_hash, text)

    def _run(self, work: Callable[..., T], *arguments: str) -> asyncio.Future[T]:
        try:
            return asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        except RuntimeError as error:
            raise AuthenticationUnavailable(f"the hub cannot check a key now ({error}); try again later") from None

    def close(self) -> None:
        """Stop the thread; waiting checks are cancelled."""
        self._thread.shutdown(wait=False, cancel_futures=True)


@cache
def _argon2id() -> Any:
    """Return a hasher that needs 12 MiB and about 30 ms per check on a PC. OWASP lists these values; a box with 512
    MB of RAM can afford them."""
    from argon2 import PasswordHasher, Type

    return PasswordHasher(time_cost=3, memory_cost=12 * 1024, parallelism=1, type=Type.ID)


def hash_token(text: str) -> str:
    """Return the hash of a token, for storage. The hash takes about 30 ms and 12 MiB, so never compute it on the
    loop."""
    from argon2.exceptions import Argon2Error

    try:
        return str(_argon2id().hash(text))
    except (Argon2Error, MemoryError) as error:
        raise AuthenticationUnavailable(
            f"the hub cannot make a key now ({error or 'no memory'}); try again later"
        ) from None


def hint_of(text: str) -> str:
    """Return the hint that is stored with the hash of a token: 32 bits of a digest of the token. With the hint, most
    wrong tokens are rejected without computing a hash."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4, person=b"lares-key-hint").hexdigest()


def is_hash(text: str) -> bool:
    """Return whether this could be a result of `hash_token`."""
    from argon2 import Type, extract_parameters
    from argon2.exceptions import InvalidHashError

    try:
        found = extract_parameters(text)
    except InvalidHashError:
        return False
    lengths = (found.salt_len, found.hash_len)
    return found.type is Type.ID and lengths == (_argon2id().salt_len, _argon2id().hash_len)


def matches(stored_hash: str, text: str) -> bool:
    """Return whether the hash matches the token. The check costs as much as `hash_token`. Raises
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


MAX_WAITING_CHECKS = 8
"""The maximum number of different tokens for one key that may wait to be checked; one more raises
`TooManyChecks`."""

Find = Callable[[str], Key | None]
"""Returns the key with this name; the same object until the key is revoked, then None."""


class Role(StrEnum):
    """The permissions of a key."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    AUTOMATION = "automation"
    HOOK = "hook"


REACH: Mapping[Role, frozenset[Role]] = {
    Role.READ: frozenset({Role.READ}),
    Role.WRITE: frozenset({Role.READ, Role.WRITE}),
    Role.ADMIN: frozenset(Role),
    Role.AUTOMATION: frozenset(Role),
    Role.HOOK: frozenset({Role.HOOK}),
}
"""For each role that a route can require, the roles of keys that may use the route."""


class Principal(Struct, frozen=True, kw_only=True):
    """The holder of a valid token; `key` is the stored key, None for a configured master key.

    If it `is_on_box`, the request came over the control socket, from root or the hub's own user, and needs no key.
    """

    key_id: str
    role: Role
    key: Key | None = None
    is_on_box: bool = False

    def require(self, role: Role, hook: str | None = None) -> None:
        """Raise `Forbidden` if this principal may not use a route that requires the role, or not this hook."""
        is_other_hook = self.role is Role.HOOK and (self.key is None or self.key.hook != hook)
        if role not in REACH[self.role] or is_other_hook:
            raise Forbidden("insufficient permissions")


ON_BOX = Principal(key_id="control socket", role=Role.ADMIN, is_on_box=True)
"""The principal of requests over the control socket."""


class Authenticator:
    """Turns tokens into principals. A verified token is cached until its key is revoked.

    The cache stores keyed digests instead of tokens, so that the duration of a look-up reveals nothing about a
    token. A configured master key replaces the stored one. Use an authenticator only from one event loop.
    """

    def __init__(
        self,
        find: Find,
        *,
        master_key: str | None = None,
        first_used: Callable[[str], None] | None = None,
    ) -> None:
        self.hasher = Hasher()
        self._find_stored = find
        self._salt = secrets.token_bytes(16)
        self._master = None if master_key is None else self._digest(master_key)
        self._known: dict[bytes, Principal] = {}
        self._checks: dict[tuple[str, bytes], asyncio.Future[bool]] = {}
        self._waiting: Counter[str] = Counter()
        self._first_used = first_used
        if self._master is not None:
            self._known[self._master] = Principal(key_id=MASTER, role=Role.ADMIN)

    async def identify(self, token: str | None) -> Principal:
        """Return the principal of the token.

        Raises `Unauthenticated`, `TooManyChecks` or `AuthenticationUnavailable`.
        """
        if token is None:
            raise Unauthenticated("authentication required")
        digest = self._digest(token)
        known = self._known.get(digest)
        if known is not None and self.is_valid(known):
            return known
        return await self._verify(token, digest)

    def recheck(self, principal: Principal | None) -> None:
        """Raise `Unauthenticated` if the principal's key has been revoked; accept None, the principal of public
        routes."""
        if principal is not None and not self.is_valid(principal):
            raise Unauthenticated("authentication required")

    def close(self) -> None:
        self.hasher.close()

    def is_valid(self, principal: Principal) -> bool:
        """Return whether the principal's key is still valid."""
        return principal.key is None or self._find(principal.key.name) is principal.key

    def _find(self, name: str) -> Key | None:
        return None if name == MASTER and self._master is not None else self._find_stored(name)

    async def _verify(self, token: str, digest: bytes) -> Principal:
        claimed = KeyToken.parse(token)
        key = None if claimed is None else self._find(claimed.key_id)
        if key is None or key.role not in REACH or key.hint not in (None, hint_of(token)):
            raise Unauthenticated("authentication required")
        if not await self._check(key, token, digest):
            raise Unauthenticated("authentication required")
        principal = Principal(key_id=key.id, role=Role(key.role), key=key)
        self.recheck(principal)
        known = self._known.get(digest)
        if known is not None and known.key is key:
            return known
        self._remember(digest, principal)
        return principal

    def _remember(self, digest: bytes, principal: Principal) -> None:
        """Cache the token, and drop tokens of revoked keys."""
        self._known = {each: known for each, known in self._known.items() if self.is_valid(known)}
        self._known[digest] = principal
        if self._first_used is not None:
            self._first_used(principal.key_id)

    async def _check(self, key: Key, token: str, digest: bytes) -> bool:
        """Return whether the token is the key's; concurrent requests with the same token share one check."""
        question = (key.token_hash, digest)
        if question not in self._checks:
            if self._waiting[key.id] >= MAX_WAITING_CHECKS:
                raise TooManyChecks("too many keys wait to be checked; try again in a second")
            check = self.hasher.check(key.token_hash, token)
            check.add_done_callback(lambda done: self._finish_check(key.id, question, done))
            self._checks[question] = check
            self._waiting[key.id] += 1
        return await asyncio.shield(self._checks[question])

    def _finish_check(self, key_id: str, question: tuple[str, bytes], done: asyncio.Future[bool]) -> None:
        if not done.cancelled():
            done.exception()  # The result is retrieved here, because the request may have been cancelled.
        del self._checks[question]
        self._waiting[key_id] -= 1
        if not self._waiting[key_id]:
            del self._waiting[key_id]

    def _digest(self, token: str) -> bytes:
        encoded = token.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(encoded, digest_size=32, key=self._salt).digest()


def bearer_of(header: str | None) -> str | None:
    """Return the token of an `Authorization` header, or None; the scheme may be in upper or lower case."""
    scheme, _, token = (header or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
