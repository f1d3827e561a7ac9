"""From configuration to adapters: the table of kinds."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp

from appliance.adapters.base import Adapter
from appliance.adapters.elgato_lights.adapter import ElgatoAdapter
from appliance.adapters.http import VendorHttp
from appliance.adapters.roku_tv.adapter import RokuAdapter
from appliance.clock import Clock
from appliance.home.model import Kind
from appliance.settings import AdapterSettings, ElgatoLights, RokuTv

KINDS: Mapping[type[AdapterSettings], Kind] = {ElgatoLights: Kind.LIGHT, RokuTv: Kind.SWITCH}
"""The kind of device that each kind of adapter makes."""


def build_adapters(
    settings: Mapping[str, AdapterSettings], session: aiohttp.ClientSession, clock: Clock
) -> list[Adapter]:
    """One adapter for each section, in the order of the configuration."""
    return [_build(name, section, session, clock) for name, section in settings.items()]


def _build(name: str, section: AdapterSettings, session: aiohttp.ClientSession, clock: Clock) -> Adapter:
    match section:
        case ElgatoLights():
            return ElgatoAdapter(name, section, VendorHttp(session, section.base_url, clock), clock)
        case RokuTv():
            host = f"[{section.ip_address}]" if ":" in section.ip_address else section.ip_address
            address = f"http://{host}:{section.port}"
            return RokuAdapter(name, section, VendorHttp(session, address, clock), clock)
