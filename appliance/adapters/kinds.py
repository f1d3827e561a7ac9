"""The catalog of adapter kinds: each folder here with a `kind.py`, and the kinds in Lua."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

from appliance import adapters
from appliance.adapters.kind import AdapterKind
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.home.model import DeviceKind
from appliance.store.records import SectionKind, SectionKinds
from appliance.tables.fields import Settings


def _load_kinds() -> dict[str, AdapterKind]:
    """Import the `kind.py` of each folder, and return the `AdapterKind` of each `kind.py`."""
    names = sorted(f"{adapters.__name__}.{each.name}.kind" for each in iter_modules(adapters.__path__) if each.ispkg)
    modules = [vars(import_module(name)).values() for name in names if find_spec(name) is not None]
    return {value.name: value for values in modules for value in values if isinstance(value, AdapterKind)}


KINDS: Mapping[str, AdapterKind] = _load_kinds()
"""Kinds by name. A section selects its kind with `type`."""

LUA_KIND = AdapterKind(name="lua_kinds", settings=Settings, device_kinds=frozenset(DeviceKind), operations=None)
"""Catalog entry of all kinds in Lua. Each Lua file defines the settings of its sections (`LuaSection`)."""

_BY_SETTINGS: Mapping[type, AdapterKind] = {
    **{kind.settings: kind for kind in KINDS.values()},
    LuaSection: LUA_KIND,
}


def kind_of(settings: Any) -> AdapterKind:
    return _BY_SETTINGS[type(settings)]


def kind_name_of(settings: Any) -> str:
    return settings.kind if isinstance(settings, LuaSection) else kind_of(settings).name


def section_kinds_of(adapters: Mapping[str, Any]) -> SectionKinds:
    return {name: SectionKind(kind_name_of(each), kind_of(each).device_kinds) for name, each in adapters.items()}


def list_operations(adapters: Mapping[str, Any]) -> dict[str, frozenset[str] | None]:
    """Return the operations of each enabled section. If the operations of a section are unknown, the section's value
    is None."""
    return {name: kind_of(settings).operations for name, settings in adapters.items()}
