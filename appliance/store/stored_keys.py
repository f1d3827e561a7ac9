"""The API keys, stored as hashes. A change takes effect after it is stored."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import convert

from appliance.clock import timestamp
from appliance.errors import NotFound
from appliance.home.bus import Bus
from appliance.home.events import KeyRevoked
from appliance.store.document import Document
from appliance.store.file_format import EncodedChanges, encode_values
from appliance.store.record_keys import KEY_PREFIX, MASTER_KEY, PREFERENCES_PREFIX
from appliance.store.records import OnFault, read_all, refuse
from appliance.store.storage import DocumentReader
from appliance.tables.fields import Redacted

MASTER = MASTER_KEY.removeprefix(KEY_PREFIX)
"""The id of the master key that the hub created."""

KEY_ID_PREFIX = "key_"
"""The prefix of all other key ids."""


class Key(Redacted, frozen=True, kw_only=True):
    """A stored API key: its label, its role, and the hash of its secret.

    `hint` is a short digest of the secret. With the hint, wrong guesses are rejected without a slow hash. For keys
    from old versions, `hint` is None. `hook` is the id of the only hook that a key with the role hook can call.
    """

    HIDDEN = ("token_hash", "hint")
    id: str
    label: str
    role: str
    token_hash: str
    created_at: datetime
    hint: str | None = None
    hook: str | None = None

    @property
    def name(self) -> str:
        """Return the part of the id that the secret also contains."""
        return self.id.removeprefix(KEY_ID_PREFIX)


class Keys:
    """The API keys of the hub. A change that cannot be stored has no effect. A started change always finishes.

    `find` returns the same object until the key is replaced or revoked. When a key is replaced or revoked,
    `KeyRevoked` is published.
    """

    def __init__(self, document: Document, bus: Bus, on_fault: OnFault = refuse) -> None:
        self._document = document
        self._bus = bus
        self._by_name = {key.name: key for key in read_keys(document, on_fault)}

    @property
    def master(self) -> Key | None:
        """Return the master key that the hub created, or None."""
        return self.find(MASTER)

    def find(self, name: str) -> Key | None:
        """Return the key whose secret contains this name, or None. Master keys are included."""
        return self._by_name.get(name)

    def list_all(self) -> list[Key]:
        """Return all keys except the master key, sorted by id."""
        return sorted((key for key in self._by_name.values() if key.id != MASTER), key=lambda key: key.id)

    async def put(self, key: Key) -> None:
        """Store the key. Replace any key with the same id. Raise `StoreFailed` on failure."""
        encoded = encode_values({KEY_PREFIX + key.id: _encode(key)})

        def commit() -> None:
            before = self._by_name.get(key.name)
            self._by_name[key.name] = key
            if before is not None:
                self._bus.publish(KeyRevoked(key_id=key.id))

        await self._document.change(lambda _: encoded, commit)

    async def remove(self, key_id: str) -> None:
        """Revoke the key. Raise `NotFound` for unknown keys and for the master key. Raise `StoreFailed` on
        failure."""
        name, stored_as = key_id.removeprefix(KEY_ID_PREFIX), KEY_PREFIX + key_id

        def prepare(before: EncodedChanges) -> EncodedChanges:
            key = self._by_name.get(name)
            if key is None or key.id != key_id or key_id == MASTER or before.get(stored_as, b"") is None:
                raise NotFound("key", key_id)
            return {stored_as: None, PREFERENCES_PREFIX + key_id: None}

        def commit() -> None:
            del self._by_name[name]
            self._bus.publish(KeyRevoked(key_id=key_id))

        await self._document.change(prepare, commit)


def read_keys(document: DocumentReader, on_fault: OnFault = refuse) -> list[Key]:
    """Return the stored API keys, including the master key."""
    return [*read_all(document, KEY_PREFIX, _decode, on_fault).values()]


def _encode(key: Key) -> dict[str, str]:
    optional = {"hint": key.hint, "hook": key.hook}
    return {
        **{name: value for name, value in optional.items() if value is not None},
        "label": key.label,
        "role": key.role,
        "hash": key.token_hash,
        "created_at": timestamp(key.created_at),
    }


def _decode(key_id: str, value: Any) -> Key:
    return convert({**value, "id": key_id, "token_hash": value["hash"]}, Key)
