"""The kinds of adapter, one row each. All else of a kind is in its own folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.adapters.elgato_lights.kind import ELGATO_LIGHTS
from appliance.adapters.kind import AdapterKind
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.adapters.matter.kind import MATTER
from appliance.adapters.mqtt.kind import MQTT
from appliance.adapters.notify.kind import NOTIFY
from appliance.adapters.roku_tv.kind import ROKU_TV
from appliance.adapters.virtual.kind import VIRTUAL
from appliance.adapters.wled.kind import WLED
from appliance.home.model import DeviceKind
from appliance.tables.fields import Settings

KINDS: Mapping[str, AdapterKind] = {
    kind.name: kind for kind in (ELGATO_LIGHTS, MATTER, MQTT, NOTIFY, ROKU_TV, VIRTUAL, WLED)
}
"""Every kind by its name, which is what `type` in a section of `[adapters]` says."""

LUA_KIND = AdapterKind(name="lua_kinds", settings=Settings, device_kinds=frozenset(DeviceKind), operations=None)
"""Stands for every kind in Lua; the settings of its sections are those that its file states (`LuaSection`)."""

_BY_SETTINGS: Mapping[type, AdapterKind] = {
    **{kind.settings: kind for kind in KINDS.values()},
    LuaSection: LUA_KIND,
}


def kind_of(settings: Any) -> AdapterKind:
    """The kind whose settings these are."""
    return _BY_SETTINGS[type(settings)]


def list_operations(adapters: Mapping[str, Any]) -> dict[str, frozenset[str] | None]:
    """The operations of each enabled section; None where they are not known."""
    return {name: kind_of(settings).operations for name, settings in adapters.items()}
