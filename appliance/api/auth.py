"""Authentication: which key a token belongs to; authorization: what the role of that key may do."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum

from msgspec import Struct

from appliance.api.key_tokens import Hasher, KeyToken, hint_of
from appliance.errors import Forbidden, TooManyChecks, Unauthenticated
from appliance.store.stored_keys import MASTER, Key

MAX_WAITING_CHECKS = 8
"""Different tokens that claim to be one key and wait for their hash at the same time; more raise `TooManyChecks`."""

Find = Callable[[str], Key | None]
"""Looks a key up by its name; returns the same object until the key is revoked, then None."""


class Role(StrEnum):
    """What a key may do."""

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
"""The routes that each role reaches, by the role that the route asks for."""


class Principal(Struct, frozen=True, kw_only=True):
    """The key of a valid token; `key` is what the token was checked against, None for a configured master key.

    `is_on_box`: the request came over the control socket, from root or the hub's own user, and needs no key.
    """

    key_id: str
    role: Role
    key: Key | None = None
    is_on_box: bool = False

    def require(self, role: Role, hook: str | None = None) -> None:
        """Raise `Forbidden` when this principal does not reach routes of the role; that of a hook, this hook."""
        is_other_hook = self.role is Role.HOOK and (self.key is None or self.key.hook != hook)
        if role not in REACH[self.role] or is_other_hook:
            raise Forbidden("insufficient permissions")


ON_BOX = Principal(key_id="control socket", role=Role.ADMIN, is_on_box=True)
"""Whoever may use the control socket."""


class Authenticator:
    """Turns tokens into principals. A verified token is cached until its key is revoked.

    The cache is keyed by a keyed digest of the token, so that the time of a look-up reveals nothing about a token.
    A configured master key replaces the one that is stored. Use it from one event loop.
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
        """The principal of the token; raises `Unauthenticated`, `TooManyChecks` or `AuthenticationUnavailable`."""
        if token is None:
            raise Unauthenticated("authentication required")
        digest = self._digest(token)
        known = self._known.get(digest)
        if known is not None and self._is_valid(known):
            return known
        return await self._verify(token, digest)

    def recheck(self, principal: Principal) -> None:
        """Raise `Unauthenticated` when the principal's key was revoked meanwhile."""
        if not self._is_valid(principal):
            raise Unauthenticated("authentication required")

    def close(self) -> None:
        """Shut the hashing thread down."""
        self.hasher.close()

    def _is_valid(self, principal: Principal) -> bool:
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
        """Cache the token, and drop those of revoked keys."""
        self._known = {each: known for each, known in self._known.items() if self._is_valid(known)}
        self._known[digest] = principal
        if self._first_used is not None:
            self._first_used(principal.key_id)

    async def _check(self, key: Key, token: str, digest: bytes) -> bool:
        """Whether the token is the key's; concurrent requests with the same token share one check."""
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
            done.exception()  # retrieved: the request may have been cancelled
        del self._checks[question]
        self._waiting[key_id] -= 1
        if not self._waiting[key_id]:
            del self._waiting[key_id]

    def _digest(self, token: str) -> bytes:
        encoded = token.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(encoded, digest_size=32, key=self._salt).digest()


def bearer_of(header: str | None) -> str | None:
    """The token of an `Authorization` header, or None; the scheme's case does not matter."""
    scheme, _, token = (header or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
