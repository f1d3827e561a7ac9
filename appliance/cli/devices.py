"""`lares devices`: lists or searches devices, and prints the data needed to write automations."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from appliance.adapters.kinds import section_kinds_of
from appliance.automations.names.name_watcher import read_past
from appliance.cli.examination import load_or_default
from appliance.cli.hub_client import HubRequest, ask, read_state
from appliance.cli.lua_form import lua_commands, lua_value
from appliance.cli.owner import as_owner
from appliance.cli.paths import HubPaths
from appliance.cli.terminal import counted, fit, paint, say
from appliance.errors import StartFailed
from appliance.home.capabilities import UNITS
from appliance.home.command_specs import CommandSpec
from appliance.home.json_shapes import DEVICE
from appliance.home.values import describe
from appliance.lua.files.folder import folders_of
from appliance.lua.text.source import Source
from appliance.store.records import SectionKinds, read_devices, read_layout
from appliance.store.storage import DocumentSnapshot
from appliance.tables.checks import is_number, nearest, rounded, suggest

_STATE_COLOURS = {"online": "green", "offline": "red", "unavailable": "red"}


def devices(arguments: argparse.Namespace) -> int:
    """Print the devices that match the text. For a single device, also print its commands, events, and files."""
    paths = HubPaths.of_process(arguments)
    file, data_dir = paths.find_config(), paths.find_data_dir()
    with as_owner(data_dir, file):
        settings, faults = load_or_default(file)
        known, is_running = _read_devices(data_dir, None if faults else section_kinds_of(settings.adapters))
        sources = [source for folder in folders_of(settings, settings.root) for source in folder.read().sources]
    found = _matching(known, arguments.text)
    for device in found:
        device["files"] = [source.name for source in sources if _mentions(source, device)]
    if arguments.json:
        say(json.dumps(found))
        return os.EX_OK
    if not is_running:
        say("the hub is not running; these are the stored values", to=sys.stderr)
    if len(found) == 1:
        say(*_describe(found[0]))
    else:
        say(*map(fit, _list(found)))
    return os.EX_OK


def _read_devices(data_dir: Path, sections: SectionKinds | None) -> tuple[list[dict[str, Any]], bool]:
    """Return the devices of these sections as JSON, from the running hub or the store. Also return whether the hub is
    running."""
    values, _ = read_state(data_dir)
    stored = DocumentSnapshot(values)
    layout = read_layout(stored, lambda key, error: None)
    try:
        found: list[dict[str, Any]] = ask(data_dir, HubRequest(path="/devices", query={"include": "commands"}))
        is_running = True
    except (OSError, StartFailed):
        kept = read_devices(stored, layout, lambda key, error: None, sections=sections)
        found, is_running = [DEVICE(each) for each in kept], False
    past = read_past(stored)
    for device in found:
        room = layout.rooms.get(device["room_id"] or "")
        announced = device["metadata"]["vendor_specific"].get("events")
        sent = past[device["id"]].events if device["id"] in past else set()
        device["room"] = None if room is None else room.name
        device["events"] = sorted({*sent, *(announced if isinstance(announced, list) else ())})
    return found, is_running


def _matching(known: list[dict[str, Any]], text: str | None) -> list[dict[str, Any]]:
    """Return the devices that match the text. If the text is exactly the id, alias, or name of one device, return
    only this device."""
    if text is None:
        return known
    word = text.casefold()
    for key in ("id", "alias", "name"):
        if len(exact := [each for each in known if str(each.get(key, "")).casefold() == word]) == 1:
            return exact
    found = [each for each in known if any(word in part.casefold() for part in _parts(each))]
    if not found:
        near = nearest(text, [part for each in known for part in _parts(each)])
        hint = suggest(near, "`lares devices` lists all devices")
        raise StartFailed(f"no device matches '{text}'{hint}", os.EX_NOUSER)
    return found


def _parts(device: Mapping[str, Any]) -> Iterator[str]:
    """Yield the searchable texts of a device: id, alias, name, room, and kind."""
    yield from (device["id"], device["name"], device["kind"])
    others = (device["info"].get("class"), device["room_id"], device["room"], device.get("alias"))
    yield from (each for each in others if each is not None)


def _mentions(source: Source, device: Mapping[str, Any]) -> bool:
    words = [each for each in (device["id"], device.get("alias")) if each is not None]
    return any(f"{quote}{word}{quote}".encode() in source.text for quote in "\"'" for word in words)


def _list(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not found:
        yield "no devices yet; `lares status` shows the adapters, and `lares discover` finds devices on the network"
        return
    rows = [
        (each.get("alias") or each["id"], each["name"], each["room"] or "-", each["attributes"].get("state", ""))
        for each in found
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, each in zip(rows, found, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        state = paint(cells[3], _STATE_COLOURS.get(row[3], "yellow"))
        yield f"{'  '.join(cells[:3])}  {state}  {_summary(each)}".rstrip()


def _summary(device: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_text_of(name, value)}" for name, value in _values_of(device))


def _values_of(device: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in sorted(device["attributes"].items()) if name != "state"]


def _text_of(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if is_number(value):
        unit = UNITS.get(name)
        return str(rounded(value)) if unit is None else f"{rounded(value)} {unit}"
    if isinstance(value, dict) and "value" in value:
        return describe(value)
    return lua_value(value)


def _describe(device: Mapping[str, Any]) -> Iterator[str]:
    word, info = device.get("alias") or device["id"], device["info"]
    yield device["name"]
    yield f"  id: {device['id']}"
    yield f"  alias: {device.get('alias') or '-'}"
    yield "  room: " + ("-" if device["room"] is None else f"{device['room']} ({device['room_id']})")
    is_obvious = info.get("class") in (None, device["kind"].lower())
    yield f"  kind: {device['kind']}" + ("" if is_obvious else f", {info['class']}")
    product = " ".join(str(info[key]) for key in ("manufacturer", "model") if key in info)
    if product:
        yield f"  model: {product}"
    yield f"  state: {device['attributes'].get('state', 'unknown')}"
    yield "attributes:" if (shown := _values_of(device)) else "attributes: -"
    width = max((len(name) for name, _ in shown), default=0)
    yield from (f"  {name.ljust(width)}  {_text_of(name, value)}" for name, value in shown)
    specs = [_spec_of(each) for each in device.get("commands", ())]
    yield "commands:" if specs else "commands: -"
    for spec in specs:
        for call, range_ in lua_commands(word, spec):
            yield f"  {call}" + (f"  -- {range_}" if range_ else "")
    yield f"events: {', '.join(device['events']) or '-'}"
    yield f"used in {counted(len(device['files']), 'file')}" + (":" if device["files"] else "")
    yield from (f"  {name}" for name in device["files"])


def _spec_of(stated: Mapping[str, Any]) -> CommandSpec:
    schema = dict(stated["schema"])
    return CommandSpec(
        capability=stated["capability"],
        actions=tuple(stated["actions"]),
        values=tuple(schema.pop("values")),
        **schema,
    )
