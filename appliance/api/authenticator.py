"""Finds the key of a token.

Wrong keys are logged, but not delayed, because nobody can guess the 256 random bits of a token. Most wrong tokens are
rejected without computing a hash (`tokens.hint_of`), and at most `MAX_WAITING_CHECKS` tokens per key wait for a
check.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import Counter
from collections.abc import Callable

from appliance.api.roles import REACH, Principal, Role
from appliance.api.tokens import Hasher, KeyToken, hint_of
from appliance.errors import TooManyChecks, Unauthenticated
from appliance.store.stored_keys import MASTER, Key

MAX_WAITING_CHECKS = 8
"""Maximum number of different tokens per key that may wait for a check. A further token raises `TooManyChecks`."""

Find = Callable[[str], Key | None]
"""Returns the key with this name, or None. Returns the same object until the key is revoked."""


class Authenticator:
    """Finds the principals of tokens. A verified token is cached until its key is revoked.

    The cache stores keyed digests instead of tokens, so that the duration of a lookup reveals nothing about a token.
    A configured master key replaces the stored master key. Use an authenticator in one event loop only.
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

        Raise `Unauthenticated`, `TooManyChecks`, or `AuthenticationUnavailable` on failure.
        """
        if token is None:
            raise Unauthenticated("authentication required")
        digest = self._digest(token)
        known = self._known.get(digest)
        if known is not None and self.is_valid(known):
            return known
        return await self._verify(token, digest)

    def recheck(self, principal: Principal | None) -> None:
        """Raise `Unauthenticated` if the principal's key has been revoked. The principal of a public route is
        None, which is always valid."""
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
        """Return whether the token belongs to the key. Concurrent requests with the same token share one check."""
        question = (key.token_hash, digest)
        if question not in self._checks:
            if self._waiting[key.id] >= MAX_WAITING_CHECKS:
                raise TooManyChecks("too many keys are waiting to be checked; try again in a second")
            check = self.hasher.check(key.token_hash, token)
            check.add_done_callback(lambda done: self._finish_check(key.id, question, done))
            self._checks[question] = check
            self._waiting[key.id] += 1
        return await asyncio.shield(self._checks[question])

    def _finish_check(self, key_id: str, question: tuple[str, bytes], done: asyncio.Future[bool]) -> None:
        if not done.cancelled():
            done.exception()  # retrieve the error here, because the waiting request may have been cancelled
        del self._checks[question]
        self._waiting[key_id] -= 1
        if not self._waiting[key_id]:
            del self._waiting[key_id]

    def _digest(self, token: str) -> bytes:
        encoded = token.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(encoded, digest_size=32, key=self._salt).digest()
