"""Reads the entities that users define: helpers, timers, schedules, and groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from appliance.cli.homeassistant.folder import ConfigFolder
from appliance.cli.homeassistant.registries import HaEntity, registry_rows
from appliance.cli.homeassistant.values import as_list, as_mapping, as_text, number, word_of, words

HELPERS = frozenset(
    {"input_boolean", "input_button", "input_datetime", "input_number", "input_select", "input_text", "counter"}
)
"""Domains whose entities become variables."""

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def read_timers(folder: ConfigFolder, integrations: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        str(name): as_mapping(row).get("duration") for name, row in as_mapping(integrations.get("timer")).items()
    }
    for row in registry_rows(folder, "timer", "items"):
        if id_ := as_text(row.get("id")):
            found[id_] = row.get("duration")
    return found


class Group(Struct, frozen=True, kw_only=True):
    """The members of a group. If `needs_all` is true, the group is on only while all members are on."""

    members: tuple[str, ...]
    needs_all: bool


def read_groups(
    folder: ConfigFolder, integrations: Mapping[str, Any], entities: Mapping[str, HaEntity]
) -> Iterator[tuple[str, Group]]:
    """Yield each group, from the configuration or from Home Assistant's user interface."""
    renamed = {each.unique_id: each.entity_id for each in entities.values() if each.platform == "group"}
    for name, row in as_mapping(integrations.get("group")).items():
        members, settings = words(as_mapping(row).get("entities", row)), as_mapping(row)
        entity_id = renamed.get(str(settings.get("unique_id")), name if "." in str(name) else f"group.{name}")
        yield entity_id, Group(members=tuple(members), needs_all=settings.get("all") is True)
    entries = {str(row.get("entry_id")): row for row in registry_rows(folder, "core.config_entries", "entries")}
    for entity_id, each in entities.items():
        options = as_mapping(as_mapping(entries.get(each.config_entry or "")).get("options"))
        if each.platform == "group" and options:
            members = words(options.get("entities"))
            yield entity_id, Group(members=tuple(members), needs_all=options.get("all") is True)


def read_schedules(
    folder: ConfigFolder, integrations: Mapping[str, Any], entities: Mapping[str, HaEntity]
) -> Iterator[tuple[str, tuple[tuple[str, str, str], ...]]]:
    """Yield day, start, and end of each schedule block."""
    for entity_id, row in _named_rows(folder, "schedule", integrations, entities):
        blocks = [
            (day[:3], str(as_mapping(block).get("from")), str(as_mapping(block).get("to")))
            for day in DAYS
            for block in as_list(row.get(day))
        ]
        yield entity_id, tuple(blocks)


def _named_rows(
    folder: ConfigFolder, domain: str, integrations: Mapping[str, Any], entities: Mapping[str, HaEntity]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the entity id and the row of each helper in a domain, from the configuration or from Home Assistant's
    user interface."""
    for name, row in as_mapping(integrations.get(domain)).items():
        yield f"{domain}.{name}", as_mapping(row)
    renamed = {each.unique_id: each.entity_id for each in entities.values() if each.platform == domain}
    for row in registry_rows(folder, domain, "items"):
        id_ = str(row.get("id"))
        yield renamed.get(id_, f"{domain}.{id_}"), row


def read_helper_rows(
    folder: ConfigFolder, integrations: Mapping[str, Any], entities: Mapping[str, HaEntity]
) -> dict[str, Mapping[str, Any]]:
    """Return the settings of each helper."""
    return {
        entity_id: row
        for domain in sorted(HELPERS)
        for entity_id, row in _named_rows(folder, domain, integrations, entities)
    }


def read_helpers(folder: ConfigFolder, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the last state of each helper or, if no last state is stored, the initial state."""
    found = {entity_id: first_state(entity_id.partition(".")[0], row) for entity_id, row in rows.items()}
    stored = as_mapping(folder.read_json("core.restore_state")).get("data")
    for row in stored if isinstance(stored, list) else ():
        state = as_mapping(as_mapping(row).get("state"))
        entity_id, value = str(state.get("entity_id")), state.get("state")
        domain = entity_id.split(".", maxsplit=1)[0]
        if domain in HELPERS - {"input_button"} and value not in (None, "unknown", "unavailable"):
            found[entity_id] = helper_value(domain, value)
    return found


def first_state(domain: str, row: Mapping[str, Any]) -> Any:
    if (initial := row.get("initial")) is not None:
        return helper_value(domain, initial)
    options = row.get("options")
    if domain == "input_select" and isinstance(options, list) and options:
        return helper_value(domain, options[0])
    if domain == "input_datetime" and row.get("has_time") is True and row.get("has_date") is not True:
        return "00:00:00"
    return {"input_boolean": False, "input_number": number(row.get("min", 0)), "counter": 0}.get(domain, "")


def helper_value(domain: str, state: Any) -> Any:
    """Convert a helper's state to the value of its variable. Words and times remain texts."""
    if domain == "input_boolean":
        return state in ("on", True)
    if isinstance(state, bool) and domain in ("input_select", "input_text"):
        return word_of(state)
    return number(state) if domain in ("input_number", "counter") else str(state)
