"""The kind `wled`: its settings, and its row in the table of kinds."""

from __future__ import annotations

from appliance.adapters.kind import AdapterKind, PolledUrl
from appliance.home.model import DeviceKind


class Wled(PolledUrl, frozen=True, kw_only=True):
    """An enabled section of this kind."""


WLED = AdapterKind(
    name="wled",
    settings=Wled,
    device_kinds=frozenset({DeviceKind.LIGHT}),
)
