"""The context of an adapter in a test: its own home, and secrets in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from appliance.adapters.address_gates import AddressGates
from appliance.adapters.base import AdapterContext
from appliance.adapters.lua_kinds.host import KindHost
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import Registry


class KeptInMemory:
    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        return self.kept.get(key)

    async def put(self, key: str, value: str) -> None:
        self.kept[key] = value


def context_of(
    name: str,
    session: Any,
    clock: Clock,
    *,
    registry: Registry | None = None,
    bus: Bus | None = None,
    gates: AddressGates | None = None,
    kinds: KindHost | None = None,
) -> AdapterContext:
    """Return the context of an adapter with this name. Create the parts that are not given."""
    bus = bus or Bus()
    return AdapterContext(
        name=name,
        clock=clock,
        publish=Publisher(name, registry or Registry(bus, clock), bus, clock),
        secrets=KeptInMemory(),
        open_session=lambda: session,
        gates=gates or AddressGates(),
        record=_record_nothing,
        lua_host=kinds,
    )


async def _record_nothing(_: Iterable[Device]) -> None: ...
