"""The kind `roku_tv`: its settings, and the adapter that they make."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.adapters.base import Adapter, AdapterContext
from appliance.adapters.kind import AdapterKind, KindSimulation, Vendor, http_client, poll_interval
from appliance.home.model import DeviceKind
from appliance.tables import addresses
from appliance.tables.checks import whole
from appliance.tables.fields import key


@dataclass(frozen=True, slots=True, kw_only=True)
class RokuTv:
    """An enabled section of this kind."""

    ip_address: str = key(addresses.host)
    port: int = key(whole(1, 65535), 8060)
    poll_interval_secs: int = poll_interval()

    @property
    def base_url(self) -> str:
        """The base of the TV's addresses."""
        host = f"[{self.ip_address}]" if ":" in self.ip_address else self.ip_address
        return f"http://{host}:{self.port}"


def build(settings: RokuTv, context: AdapterContext) -> Adapter:
    """The adapter of a section. Its module is imported only here, where a section asks for it."""
    from appliance.adapters.roku_tv.adapter import RokuAdapter

    return RokuAdapter(context, http_client(settings.base_url, context), settings.poll_interval_secs)


def simulate() -> Vendor:
    """A simulated device. The HTTP server is imported only here."""
    from appliance.adapters.roku_tv.simulator import TvSimulator

    return TvSimulator()


ROKU_TV = AdapterKind(
    name="roku_tv",
    settings=RokuTv,
    device_kinds=frozenset({DeviceKind.SWITCH}),
    build=build,
    late=("appliance.adapters.http", "appliance.adapters.roku_tv.adapter"),
    simulation=KindSimulation(
        device=simulate,
        settings=lambda device: RokuTv(ip_address=device.host, port=device.port, poll_interval_secs=2),
        in_demo="TV",
    ),
)
