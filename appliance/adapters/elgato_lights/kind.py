"""The kind `elgato_lights`: its settings, and the adapter that they make."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.adapters.base import Adapter, AdapterContext
from appliance.adapters.kind import AdapterKind, KindSimulation, PolledUrl, Vendor, http_client
from appliance.home.model import DeviceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ElgatoLights(PolledUrl):
    """An enabled section of this kind."""


def build(settings: ElgatoLights, context: AdapterContext) -> Adapter:
    """The adapter of a section. Its module is imported only here, where a section asks for it."""
    from appliance.adapters.elgato_lights.adapter import ElgatoAdapter

    return ElgatoAdapter(context, http_client(settings.base_url, context), settings.poll_interval_secs)


def simulate() -> Vendor:
    """A simulated device. The HTTP server is imported only here."""
    from appliance.adapters.elgato_lights.simulator import LightSimulator

    return LightSimulator()


ELGATO_LIGHTS = AdapterKind(
    name="elgato_lights",
    settings=ElgatoLights,
    device_kinds=frozenset({DeviceKind.LIGHT}),
    build=build,
    late=("appliance.adapters.http", "appliance.adapters.elgato_lights.adapter"),
    simulation=KindSimulation(
        device=simulate,
        settings=lambda device: ElgatoLights(base_url=device.url, poll_interval_secs=2),
        in_demo="light",
    ),
)
