"""The kind `wled`: its settings, and the adapter that they make."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.adapters.base import Adapter, AdapterContext
from appliance.adapters.http import HttpClient
from appliance.adapters.kind import POLLING_FIELDS, AdapterKind, Simulation, Vendor
from appliance.adapters.wled.adapter import WledAdapter
from appliance.home.model import Kind
from appliance.tables.addresses import base_url
from appliance.tables.fields import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Wled:
    """An enabled section of this kind."""

    base_url: str
    poll_interval_secs: int


def build(settings: Wled, context: AdapterContext) -> Adapter:
    """The adapter of a section."""
    http = HttpClient(context.session, settings.base_url, context.clock)
    return WledAdapter(context, http, settings.poll_interval_secs)


def simulate() -> Vendor:
    """A simulated device. The HTTP server is imported only here."""
    from appliance.adapters.wled.simulator import WledSimulator

    return WledSimulator()


WLED = AdapterKind(
    name="wled",
    fields={"base_url": Field(base_url), **POLLING_FIELDS},
    settings=Wled,
    device_kinds=frozenset({Kind.LIGHT}),
    build=build,
    simulation=Simulation(
        device=simulate,
        settings=lambda device: Wled(base_url=device.url, poll_interval_secs=2),
    ),
)
