"""The keyring creates, lists, and revokes keys, and checks tokens."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Any

from appliance.api.authenticator import Authenticator
from appliance.api.roles import Role
from appliance.api.tokens import KeyToken, hint_of
from appliance.api.validation import body_check, member_of, nullable
from appliance.clock import Clock
from appliance.errors import Invalid, MalformedRequest
from appliance.home.texts import hook_id, text
from appliance.store.stored_keys import KEY_ID_PREFIX, MASTER, Key, Keys
from appliance.tables.fields import Field
from appliance.tables.json_schema import Check

log = logging.getLogger("keys")

MAX_LABEL_CHARS = 100

MAX_KEYS = 1_000
"""Maximum number of API keys. The hub keeps all keys in memory, and lists all of them at once."""

_FIELDS = body_check(
    "KeyRequest",
    {
        "label": Field(text(MAX_LABEL_CHARS)),
        "role": Field(member_of(Role)),
        "hook": Field(nullable(hook_id), required=False),
    },
)


def _check_key(raw: Any) -> dict[str, Any]:
    fields: dict[str, Any] = _FIELDS(raw)
    if fields["role"] is Role.HOOK and fields["hook"] is None:
        raise MalformedRequest("hook is missing; a key with the role 'hook' needs the id of a hook")
    if fields["role"] is not Role.HOOK and fields["hook"] is not None:
        raise Invalid(f"hook is only allowed with the role 'hook', not with '{fields['role']}'")
    return fields


KEY_BODY = Check(schema=_FIELDS.schema, run=_check_key)
"""The request for a new key, with the arguments of `Keyring.create`."""


class Keyring:
    """Creates and revokes the keys of one store. When a method returns, its change has been stored and has taken
    effect.

    - `authenticator`: accepts these keys.
    - `master_key`: a configured master key, which replaces the hub's own master key.
    - `master_source`: the place where `master_key` is configured.
    - `first_used`: called with the key's id after each newly verified token in this process, but never for a
      configured master key. Must be idempotent, because each start of the hub verifies tokens again.
    - `on_master_reset`: called after the master key was replaced.

    Only the returned token contains the secret. The hub neither stores nor logs the secret. One thread computes all
    hashes, one after another, so that the memory for a single hash is enough.
    """

    def __init__(
        self,
        keys: Keys,
        clock: Clock,
        *,
        master_key: str | None = None,
        master_source: str = "the configuration",
        first_used: Callable[[str], None] | None = None,
        on_master_reset: Callable[[], None] = lambda: None,
    ) -> None:
        self.authenticator = Authenticator(keys.find, master_key=master_key, first_used=first_used)
        self._keys = keys
        self._clock = clock
        self._master_source = None if master_key is None else master_source
        self._on_master_reset = on_master_reset
        self._created_now = 0

    def close(self) -> None:
        self.authenticator.close()

    async def create(self, label: str, role: Role, hook: str | None = None) -> tuple[Key, str]:
        """Create a key, and return it with its token. `hook` is the only hook that a key of the role `hook` may call.

        Raise `Invalid`, `StoreFailed`, or `AuthenticationUnavailable` on failure.
        """
        if len(self.list_all()) + self._created_now >= MAX_KEYS:
            raise Invalid(f"the hub has {MAX_KEYS} keys and accepts no more; revoke keys that are no longer used")
        self._created_now += 1
        try:
            return await self._create(label, role, hook)
        finally:
            self._created_now -= 1

    async def _create(self, label: str, role: Role, hook: str | None) -> tuple[Key, str]:
        name = self._new_name()
        token = KeyToken.make(name).text
        token_hash, now = await self.authenticator.hasher.hash(token), self._clock.now()
        key = Key(
            id=KEY_ID_PREFIX + name,
            label=label,
            role=role.value,
            token_hash=token_hash,
            created_at=now,
            hint=hint_of(token),
            hook=hook,
        )
        await self._keys.put(key)
        of_hook = "" if hook is None else f" for the hook {hook!r}"
        log.info("%s was created (role %s%s, label %s)", key.id, role, of_hook, label)
        return key, token

    def list_all(self) -> list[Key]:
        """Return every key except the master key, sorted by id."""
        return self._keys.list_all()

    async def revoke(self, key_id: str) -> None:
        """Revoke the key. Raise `NotFound` for unknown keys and for the master key, and `StoreFailed` if storage
        fails."""
        await self._keys.remove(key_id)
        log.info("%s was revoked", key_id)

    async def reset_master(self) -> str:
        """Replace the hub's own master key with a new one, and return its token.

        Raise `StoreFailed`, or `Invalid` if the master key is configured.
        """
        if self._master_source is not None:
            raise Invalid(f"the master key was not replaced; it comes from {self._master_source}, so change it there")
        token = KeyToken.make(MASTER).text
        await self._keys.put(make_master(await self.authenticator.hasher.hash(token), hint_of(token), self._clock))
        log.info("the master key was replaced")
        self._on_master_reset()
        return token

    def _new_name(self) -> str:
        while self._keys.find(name := secrets.token_hex(4)) is not None:
            continue
        return name


def make_master(token_hash: str, hint: str | None, clock: Clock) -> Key:
    """Return a new master key of the hub."""
    label, role = "the master key", Role.ADMIN.value
    return Key(id=MASTER, label=label, role=role, token_hash=token_hash, created_at=clock.now(), hint=hint)
