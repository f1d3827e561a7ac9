"""Home: what automations live in, as one value to hand on."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.clock import Clock, Trust
from appliance.home.bus import Bus
from appliance.home.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The devices, the news, and the time with whether it is believed."""

    registry: Registry
    bus: Bus
    clock: Clock
    trust: Trust
