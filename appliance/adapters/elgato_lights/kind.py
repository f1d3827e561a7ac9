"""The kind `elgato_lights`: its settings, and the adapter that they make."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.adapters.base import Adapter, AdapterContext
from appliance.adapters.kind import POLLING_KEYS, AdapterKind, Simulation, Vendor
from appliance.home.model import Kind
from appliance.sections import Key
from appliance.settings import base_url


@dataclass(frozen=True, slots=True, kw_only=True)
class ElgatoLights:
    """An enabled section of this kind."""

    base_url: str
    poll_interval_secs: int


def build(settings: ElgatoLights, context: AdapterContext) -> Adapter:
    """The adapter of a section. The HTTP client is imported only here, where a section asks for it."""
    from appliance.adapters.elgato_lights.adapter import ElgatoAdapter
    from appliance.adapters.http import HttpClient

    http = HttpClient(context.session, settings.base_url, context.clock)
    return ElgatoAdapter(context, http, settings.poll_interval_secs)


def simulate() -> Vendor:
    """A simulated device. The HTTP server is imported only here."""
    from appliance.adapters.elgato_lights.simulator import LightSimulator

    return LightSimulator()


ELGATO_LIGHTS = AdapterKind(
    name="elgato_lights",
    keys={"base_url": Key(base_url), **POLLING_KEYS},
    settings=ElgatoLights,
    device_kinds=frozenset({Kind.LIGHT}),
    build=build,
    late=("appliance.adapters.http", "appliance.adapters.elgato_lights.adapter"),
    simulation=Simulation(
        device=simulate,
        settings=lambda device: ElgatoLights(base_url=device.url, poll_interval_secs=2),
        in_demo="light",
    ),
)
