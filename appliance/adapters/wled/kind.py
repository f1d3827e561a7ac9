"""The kind `wled`: settings and catalog entry."""

from __future__ import annotations

from appliance.adapters.kind import AdapterKind, DiscoveryMethod, PolledUrl
from appliance.home.model import DeviceKind


class Wled(PolledUrl, frozen=True, kw_only=True):
    """Settings of an enabled section."""


WLED = AdapterKind(
    name="wled",
    title="WLED",
    settings=Wled,
    device_kinds=frozenset({DeviceKind.LIGHT}),
    discovery=(DiscoveryMethod(mdns="_wled._tcp", serial=("mac",)),),
)
