"""What the rest of the house knows of a kind of adapter, and the settings that many share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from appliance.adapters.base import Adapter, AdapterContext
from appliance.home.model import Kind
from appliance.sections import Key
from appliance.settings import POLL_INTERVAL


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterKind:
    """One kind of adapter.

    `keys` are the keys of its sections beside `type` and `enabled`; `settings` is the class whose objects hold their
    values, and `build` makes an adapter of one. `device_kinds` are the kinds of device that it may publish: of what
    is stored, no other is restored as its own.
    """

    name: str
    keys: Mapping[str, Key]
    settings: type[Any]
    device_kinds: frozenset[Kind]
    build: Callable[[Any, AdapterContext], Adapter]


POLLING_KEYS: Mapping[str, Key] = {"poll_interval_secs": POLL_INTERVAL}
"""What every kind that polls has."""
