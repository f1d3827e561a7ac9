"""The kind `wled`: its settings, and the adapter that they make."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.adapters.base import Adapter, AdapterContext
from appliance.adapters.kind import AdapterKind, KindSimulation, PolledUrl, Vendor, http_client
from appliance.home.model import DeviceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Wled(PolledUrl):
    """An enabled section of this kind."""


def build(settings: Wled, context: AdapterContext) -> Adapter:
    """The adapter of a section. Its module is imported only here, where a section asks for it."""
    from appliance.adapters.wled.adapter import WledAdapter

    return WledAdapter(context, http_client(settings.base_url, context), settings.poll_interval_secs)


def simulate() -> Vendor:
    """A simulated device. The HTTP server is imported only here."""
    from appliance.adapters.wled.simulator import WledSimulator

    return WledSimulator()


WLED = AdapterKind(
    name="wled",
    settings=Wled,
    device_kinds=frozenset({DeviceKind.LIGHT}),
    build=build,
    late=("appliance.adapters.http", "appliance.adapters.wled.adapter"),
    simulation=KindSimulation(
        device=simulate,
        settings=lambda device: Wled(base_url=device.url, poll_interval_secs=2),
    ),
)
