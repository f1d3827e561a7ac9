"""The kind `wled`: its settings, and the adapter that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from appliance.adapters.base import Adapter, AdapterContext
from appliance.adapters.kind import POLLED_URL_FIELDS, AdapterKind, PolledUrl, Simulation, Vendor, build_polling
from appliance.home.model import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Wled(PolledUrl):
    """An enabled section of this kind."""


def make(context: AdapterContext, http: Any, poll_interval_secs: int) -> Adapter:
    """The adapter of a section, imported only where there is one."""
    from appliance.adapters.wled.adapter import WledAdapter

    return WledAdapter(context, http, poll_interval_secs)


def simulate() -> Vendor:
    """A simulated device. The HTTP server is imported only here."""
    from appliance.adapters.wled.simulator import WledSimulator

    return WledSimulator()


WLED = AdapterKind(
    name="wled",
    fields=POLLED_URL_FIELDS,
    settings=Wled,
    device_kinds=frozenset({Kind.LIGHT}),
    build=build_polling(make),
    late=("appliance.adapters.http", "appliance.adapters.wled.adapter"),
    simulation=Simulation(
        device=simulate,
        settings=lambda device: Wled(base_url=device.url, poll_interval_secs=2),
    ),
)
