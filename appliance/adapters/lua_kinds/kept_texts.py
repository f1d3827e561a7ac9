"""A section's texts that `ctx:keep` stores across restarts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import orjson

from appliance.adapters.base import Secrets
from appliance.adapters.redaction import texts_in
from appliance.clock import Clock
from appliance.errors import Invalid

MAX_KEPT, MAX_KEPT_BYTES = 16, 4096
"""Maximum number of texts per section, and maximum size of a text in bytes."""

MAX_KEPT_WRITES, KEPT_WRITE_SECS = 60, 10.0
"""Number of changes that are allowed without a pause, and the number of seconds until one more change is allowed."""

KEPT = "kept"
"""Key in the secrets of a section. The value holds all kept texts as one JSON object."""

MIN_INNER_CHARS = 8
"""Minimum length of a secret inside a kept JSON text. Shorter texts are treated as ordinary words."""

_KEY = re.compile(r"[a-z0-9_.-]{1,64}")


class KeptTexts:
    """One section's texts that `ctx:keep` stores. All texts are secrets."""

    def __init__(self, secrets: Secrets, clock: Clock | None = None) -> None:
        self._secrets = secrets
        self._clock = clock or Clock()
        self._writes_left, self._counted_at = float(MAX_KEPT_WRITES), self._clock.monotonic()
        self._lock = asyncio.Lock()
        stored = secrets.get(KEPT)
        self._texts: Mapping[str, str] = {} if stored is None else orjson.loads(stored)
        self.secrets = _secrets_in(self._texts.values())
        """All texts. If a text is JSON, the long texts inside it are also secrets."""

    def get(self, key: str) -> str | None:
        return self._texts.get(key)

    async def put(self, key: Any, text: Any) -> None:
        """Store a text durably. If `text` is None, delete the stored text. Raise `Invalid` or `StoreFailed` on
        failure."""
        if not isinstance(key, str) or _KEY.fullmatch(key) is None:
            raise Invalid("ctx:keep: the key must have 1 to 64 characters from a-z, 0-9, _, -, and .")
        if text is not None and not isinstance(text, str):
            raise Invalid("ctx:keep: the value must be a text; use json.encode for a table")
        if text is not None and len(text.encode()) > MAX_KEPT_BYTES:
            raise Invalid(f"ctx:keep: the text is larger than {MAX_KEPT_BYTES} bytes")
        async with self._lock:
            texts = {name: each for name, each in self._texts.items() if name != key}
            texts |= {} if text is None else {key: text}
            if len(texts) > MAX_KEPT:
                raise Invalid(f"ctx:keep: at most {MAX_KEPT} texts can be kept; to remove one, set it to nil")
            if texts != self._texts:
                self._count_write()
                await self._secrets.put(KEPT, orjson.dumps(texts).decode())
                self._texts, self.secrets = texts, _secrets_in(texts.values())

    def _count_write(self) -> None:
        """Raise `Invalid` if the file stores texts too often, because each write wears out the storage."""
        now = self._clock.monotonic()
        earned = (now - self._counted_at) / KEPT_WRITE_SECS
        self._writes_left, self._counted_at = min(self._writes_left + earned, float(MAX_KEPT_WRITES)), now
        if self._writes_left < 1:
            raise Invalid("ctx:keep: too many changes; store a text only if it must survive a restart")
        self._writes_left -= 1


def _secrets_in(texts: Collection[str]) -> tuple[str, ...]:
    found = list(texts)
    for text in texts:
        with suppress(orjson.JSONDecodeError):
            found += [each for each in texts_in(orjson.loads(text)) if len(each) >= MIN_INNER_CHARS]
    return tuple(found)
