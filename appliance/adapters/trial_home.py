"""An empty home for the trial of one adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from appliance.adapters.address_gates import AddressGates
from appliance.adapters.base import AdapterContext, Secrets
from appliance.adapters.lua_kinds.host import KindHost
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.home_locale import ANYWHERE, Locale


class TrialHome:
    """A home with a single section, `name`. The home collects the section's devices, the section's latest error, and
    a message for each dropped value.

    The adapter can read the section's `stored` secrets. Nothing is stored.
    """

    def __init__(self, name: str, clock: Clock, stored: Secrets | None = None) -> None:
        self.name = name
        self.bus = Bus()
        self.registry = Registry(self.bus, clock)
        self.secrets: Secrets = _BorrowedSecrets(stored)
        self.error: str | None = None
        self.dropped: list[str] = []
        self._clock = clock
        self.bus.listen(self._note)

    def context(
        self,
        open_session: Callable[[], Any],
        root: Path,
        *,
        locale: Locale = ANYWHERE,
        lua_host: KindHost | None = None,
    ) -> AdapterContext:
        return AdapterContext(
            name=self.name,
            clock=self._clock,
            publish=Publisher(self.name, self.registry, self.bus, self._clock),
            secrets=self.secrets,
            open_session=open_session,
            gates=AddressGates(),
            record=_record_nothing,
            root=root,
            locale=locale,
            lua_host=lua_host,
        )

    def _note(self, event: events.Event) -> None:
        if isinstance(event, events.ObservationDropped):
            self.dropped.append(f"{event.attribute} of {event.device_id} {event.reason}")
        elif isinstance(event, events.AdapterErrored):
            self.error = event.message
        elif isinstance(event, events.AdapterReady | events.AdapterAnswered):
            self.error = None


class _BorrowedSecrets:
    """Reads stored secrets, and keeps new secrets until the trial ends.

    The client id is not shared, because a broker would close the connection of the running section.
    """

    def __init__(self, stored: Secrets | None) -> None:
        self._stored = stored
        self._kept: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        if key in self._kept or key == "client_id" or self._stored is None:
            return self._kept.get(key)
        return self._stored.get(key)

    async def put(self, key: str, value: str) -> None:
        self._kept[key] = value


async def _record_nothing(devices: Iterable[Device]) -> None:
    """Store nothing, because a trial has no storage."""
