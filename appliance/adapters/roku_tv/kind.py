"""The kind `roku_tv`: its settings, and the adapter that they make."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.adapters.base import Adapter, AdapterContext
from appliance.adapters.kind import POLLING_KEYS, AdapterKind, Simulation, Vendor
from appliance.home.model import Kind
from appliance.sections import Key, whole
from appliance.settings import host


@dataclass(frozen=True, slots=True, kw_only=True)
class RokuTv:
    """An enabled section of this kind."""

    ip_address: str
    port: int
    poll_interval_secs: int


def build(settings: RokuTv, context: AdapterContext) -> Adapter:
    """The adapter of a section. The HTTP client is imported only here, where a section asks for it."""
    from appliance.adapters.http import HttpClient
    from appliance.adapters.roku_tv.adapter import RokuAdapter

    name = f"[{settings.ip_address}]" if ":" in settings.ip_address else settings.ip_address
    http = HttpClient(context.session, f"http://{name}:{settings.port}", context.clock)
    return RokuAdapter(context, http, settings.poll_interval_secs)


def simulate() -> Vendor:
    """A simulated device. The HTTP server is imported only here."""
    from appliance.adapters.roku_tv.simulator import TvSimulator

    return TvSimulator()


ROKU_TV = AdapterKind(
    name="roku_tv",
    keys={"ip_address": Key(host), "port": Key(whole(1, 65535), 8060), **POLLING_KEYS},
    settings=RokuTv,
    device_kinds=frozenset({Kind.SWITCH}),
    build=build,
    late=("appliance.adapters.http", "appliance.adapters.roku_tv.adapter"),
    simulation=Simulation(
        device=simulate,
        settings=lambda device: RokuTv(ip_address=device.host, port=device.port, poll_interval_secs=2),
        in_demo="TV",
    ),
)
