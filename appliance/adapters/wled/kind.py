"""The kind `wled`: its settings, and the adapter that they make."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.adapters.base import Adapter, AdapterContext
from appliance.adapters.kind import POLLING_KEYS, AdapterKind, Simulation, Vendor
from appliance.home.model import Kind
from appliance.sections import Key
from appliance.settings import base_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Wled:
    """An enabled section of this kind."""

    base_url: str
    poll_interval_secs: int


def build(settings: Wled, context: AdapterContext) -> Adapter:
    """The adapter of a section. The HTTP client is imported only here, where a section asks for it."""
    from appliance.adapters.http import HttpClient
    from appliance.adapters.wled.adapter import WledAdapter

    http = HttpClient(context.session, settings.base_url, context.clock)
    return WledAdapter(context, http, settings.poll_interval_secs)


def simulate() -> Vendor:
    """A simulated device. The HTTP server is imported only here."""
    from appliance.adapters.wled.simulator import WledSimulator

    return WledSimulator()


WLED = AdapterKind(
    name="wled",
    keys={"base_url": Key(base_url), **POLLING_KEYS},
    settings=Wled,
    device_kinds=frozenset({Kind.LIGHT}),
    build=build,
    late=("appliance.adapters.http", "appliance.adapters.wled.adapter"),
    simulation=Simulation(
        device=simulate,
        settings=lambda device: Wled(base_url=device.url, poll_interval_secs=2),
    ),
)
