"""Who is asking, and what their role may do."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

from appliance.api import keys
from appliance.errors import Forbidden, TooManyChecks, Unauthenticated

MOST_WAITING = 8
"""Different secrets of one key id that may wait for the hash; more are turned away."""


class Role(StrEnum):
    """What a key may do."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    AUTOMATION = "automation"


REACH: Mapping[Role, frozenset[Role]] = {
    Role.READ: frozenset({Role.READ}),
    Role.WRITE: frozenset({Role.READ, Role.WRITE}),
    Role.ADMIN: frozenset(Role),
    Role.AUTOMATION: frozenset(Role),
}
"""The routes that each role reaches, by the role that the route asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who a valid token belongs to."""

    key_id: str
    role: Role

    def require(self, role: Role) -> None:
        """Raise `Forbidden` when this principal does not reach routes of the role."""
        if role not in REACH[self.role]:
            raise Forbidden("insufficient permissions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A key that opens the door: an argon2id hash of its token. The id is the part after `lrs_`."""

    key_id: str
    role: Role
    token_hash: str


class Authenticator:
    """Turns tokens into principals. A token that was verified once is known by its SHA-256 from then on."""

    def __init__(
        self,
        *,
        master_key: str | None = None,
        credentials: Iterable[Credential] = (),
        first_used: Callable[[str], None] | None = None,
    ) -> None:
        self._credentials = {credential.key_id: credential for credential in credentials}
        self._known: dict[bytes, Principal] = {}
        self._checks: dict[bytes, asyncio.Future[bool]] = {}
        self._waiting: Counter[str] = Counter()
        self._first_used = first_used
        self._hashing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="keys")
        if master_key is not None:
            self._known[_digest(master_key)] = Principal(key_id="master", role=Role.ADMIN)

    async def identify(self, token: str | None) -> Principal:
        """The principal of the token; raises `Unauthenticated`, or `TooManyChecks` when too many wait."""
        if token is None:
            raise Unauthenticated("authentication required")
        digest = _digest(token)
        known = self._known.get(digest)
        return known if known is not None else await self._verify(token, digest)

    def close(self) -> None:
        """Let go of the thread that hashes."""
        self._hashing.shutdown(wait=False, cancel_futures=True)

    async def _verify(self, token: str, digest: bytes) -> Principal:
        claimed = keys.Token.parse(token)
        credential = None if claimed is None else self._credentials.get(claimed.key_id)
        if credential is None or not await self._check(credential, token, digest):
            raise Unauthenticated("authentication required")
        principal = Principal(key_id=credential.key_id, role=credential.role)
        if self._first_used is not None and digest not in self._known:
            self._first_used(credential.key_id)
        self._known[digest] = principal
        return principal

    async def _check(self, credential: Credential, token: str, digest: bytes) -> bool:
        """Whether the token is the credential's; who comes with the same one meanwhile shares the check."""
        if digest not in self._checks:
            if self._waiting[credential.key_id] >= MOST_WAITING:
                raise TooManyChecks("too many keys wait to be checked; try again in a second")
            loop = asyncio.get_running_loop()
            check = loop.run_in_executor(self._hashing, keys.matches, credential.token_hash, token)
            check.add_done_callback(lambda _: self._conclude(credential.key_id, digest))
            self._checks[digest] = check
            self._waiting[credential.key_id] += 1
        return await asyncio.shield(self._checks[digest])

    def _conclude(self, key_id: str, digest: bytes) -> None:
        del self._checks[digest]
        self._waiting[key_id] -= 1


def bearer_of(header: str | None) -> str | None:
    """The token of an `Authorization` header, or None; the scheme's case does not matter."""
    scheme, _, token = (header or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
