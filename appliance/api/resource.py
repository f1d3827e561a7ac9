"""Resources: classes whose methods answer routes; and what they all can use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from appliance.adapters.discovery.discovery import Found
from appliance.api.device_encoder import DeviceEncoder
from appliance.api.hooks import Hooks
from appliance.api.hub_metrics import Metrics, Probe
from appliance.api.keyring import Keyring
from appliance.api.route import Route
from appliance.api.stream import EventStream
from appliance.hub import Hub

Search = Callable[[float], Awaitable[list[Found]]]
"""Searches the local network for so many seconds."""

MakeBackup = Callable[[], bytes]
"""Gives the archive's bytes; called on a thread of its own. Raises `Invalid` where nothing can be backed up."""


class ApiParts(Struct, frozen=True, kw_only=True):
    """What handlers use: the hub, and the parts of the API. `probes` are what diagnostics show, by name."""

    hub: Hub
    encoder: DeviceEncoder
    hooks: Hooks
    keyring: Keyring
    metrics: Metrics
    probes: Mapping[str, Probe]
    stream: EventStream
    search: Search
    make_backup: MakeBackup
    routes: Sequence[Route]


class ApiResource:
    """The base of all resources: methods with a `@route` answer it."""

    def __init__(self, parts: ApiParts) -> None:
        self.parts = parts
        self.hub = parts.hub
