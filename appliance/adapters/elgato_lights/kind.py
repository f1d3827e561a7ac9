"""The kind `elgato_lights`: settings and catalog entry."""

from __future__ import annotations

from appliance.adapters.kind import AdapterKind, DiscoveryMethod, PolledUrl
from appliance.home.model import DeviceKind


class ElgatoLights(PolledUrl, frozen=True, kw_only=True):
    """Settings of an enabled section."""


ELGATO_LIGHTS = AdapterKind(
    name="elgato_lights",
    title="Elgato light",
    settings=ElgatoLights,
    device_kinds=frozenset({DeviceKind.LIGHT}),
    operations=frozenset({"identify", "info"}),
    discovery=(DiscoveryMethod(mdns="_elg._tcp", serial=("id",)),),
    simulated=lambda device: ElgatoLights(base_url=device.url, poll_interval_secs=2),
    in_demo="light",
)
