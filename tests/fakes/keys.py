"""Keys whose secrets the tests know."""

from __future__ import annotations

from datetime import UTC, datetime

import argon2
from argon2 import PasswordHasher

from appliance.api.roles import Role
from appliance.api.tokens import KeyToken, hash_token
from appliance.store.stored_keys import KEY_ID_PREFIX, MASTER, Key


class CheapHasher(PasswordHasher):
    """The same algorithm at a thousandth of the cost, for tests that are not about hashes."""

    def __init__(self, **_: object) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)


vars(argon2)["PasswordHasher"] = CheapHasher

MADE_AT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)


def key_of(token: KeyToken, role: Role) -> Key:
    return keep(token.key_id, role, hash_token(token.text))


def keep(name: str, role: Role, token_hash: str) -> Key:
    """Return a key with this hash."""
    id_ = name if name == MASTER else KEY_ID_PREFIX + name
    return Key(id=id_, label=f"the {name}'s", role=role.value, token_hash=token_hash, created_at=MADE_AT)
