"""`lares import homeassistant`: imports rooms, names, variables, and Lua files. The import never overwrites
anything."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sized
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from appliance import config
from appliance.adapters.mqtt.announced_devices import MAX_BROKER_DEVICES
from appliance.automations.variables import MAX_VARIABLES
from appliance.cli.homeassistant import scenes, scripts
from appliance.cli.homeassistant.automation import MARK, TIMES, LuaFile, translate, translate_times
from appliance.cli.homeassistant.entities import Entities
from appliance.cli.homeassistant.installation import Installation, read_installation
from appliance.cli.homeassistant.known_devices import KnownDevice
from appliance.cli.homeassistant.not_translated import NotTranslated
from appliance.cli.hub_client import HubRequest, ask, ask_or_act, read_state
from appliance.cli.initial_config import read_template, write_config
from appliance.cli.owner import as_owner, as_owner_of_all, become_owner_of_both, give_new_files
from appliance.cli.paths import HubPaths, config_folder, make_data_dir
from appliance.cli.terminal import counted, say
from appliance.clock import Clock
from appliance.errors import Invalid, LaresError, StartFailed
from appliance.home.layout import MAX_ROOMS
from appliance.home.texts import identifier
from appliance.home.texts import name as checked_name
from appliance.store.disk import Disk, write_file
from appliance.store.document import open_document
from appliance.store.record_keys import ASSIGNMENT_PREFIX, DEVICE_PREFIX, NAME_PREFIX, ROOM_PREFIX, VARIABLE_PREFIX
from appliance.store.storage import DocumentSnapshot
from appliance.tables.plain_files import read_plain

MODULE = Path("scripts") / "homeassistant.lua"
"""The name of the script that the translated automations require."""


class Item(Struct, frozen=True, kw_only=True):
    """A record to import: a sentence that describes it, a key and value for the store, and the equivalent request to
    a running hub.

    The device `device_id` must already exist in the hub.
    """

    sentence: str
    key: str
    value: Any
    request: HubRequest
    device_id: str | None = None


def import_(arguments: argparse.Namespace) -> int:
    """Import from the folder, and print each imported or skipped record and file."""
    folder = Path(arguments.folder)
    with as_owner_of_all(folder):
        installation = read_installation(folder)
    paths = HubPaths.of_process(arguments.config, arguments.data_dir)
    file, data_dir = paths.find_config(), paths.find_data_dir()
    become_owner_of_both(file, data_dir)
    with as_owner(data_dir):
        make_data_dir(data_dir)
        known = _known_devices(data_dir)
    if not file.exists():
        write_config(file.parent, read_template(config.bundled_config()))
    entities = Entities(installation, _mqtt_section(file), known)
    with as_owner(data_dir):
        unknown = _unknown_devices(installation, entities, known)
        items = list(_items(installation, entities, frozenset(unknown[MAX_BROKER_DEVICES:])))
        excess = _excess(installation, unknown)
        through_hub, in_store = partial(_through_hub, items, data_dir), partial(_in_store, items, data_dir)
        steps = excess + asyncio.run(ask_or_act(data_dir, through_hub, in_store))
    with give_new_files(file.parent):
        steps += _import_locale(installation.locale, file)
        steps += _import_files(installation, entities, config_folder(file))
    for is_imported, sentence in steps:
        say(f"{'imported' if is_imported else 'skipped '}  {sentence}")
    if entities.missing:
        say(
            f"not found in Lares: {', '.join(sorted(entities.missing))}; "
            "the files contain guessed ids for these entities, so check the ids"
        )
    has_moved = any(is_imported and sentence.startswith("locale.") for is_imported, sentence in steps)
    if entities.timers:
        say(
            f"the automation {TIMES} sets the timers of input_datetime helpers when the hub starts, at 00:00, and "
            "when a helper changes; if you reload without a restart, run this automation once"
        )
    last = "restart the hub" if has_moved or entities.timers else "`lares reload`"
    other = f", except {TIMES.lower()}," if entities.timers else ""
    say(f"each automation{other} is off until you switch it on; next, run `lares check`, then {last}")
    return os.EX_OK


def _known_devices(data_dir: Path) -> dict[str, KnownDevice]:
    """Return the devices in the running hub or in the store."""
    values, _ = read_state(data_dir)
    snapshot = DocumentSnapshot(values)
    names = dict(snapshot.items(NAME_PREFIX))
    return {
        id_: KnownDevice(
            id=id_,
            name=str(names.get(id_) or value.get("name") or id_),
            serial=str(value.get("info", {}).get("serial") or ""),
        )
        for id_, value in snapshot.items(DEVICE_PREFIX)
    }


def _mqtt_section(file: Path) -> str:
    """Return the name of the first enabled MQTT section, or `mqtt` if there is none."""
    sections = config.parse_toml(read_plain(file).decode(errors="replace"), str(file)).get("adapters", {})
    for name, section in sections.items() if isinstance(sections, Mapping) else ():
        if isinstance(section, Mapping) and section.get("type", name) == "mqtt" and section.get("enabled", True):
            return str(name)
    return "mqtt"


def _items(installation: Installation, entities: Entities, omitted: Container[str]) -> Iterator[Item]:
    """Yield a room for each area, a variable for each helper, and the area and name of each known device, except the
    devices in `omitted`."""
    for area in islice(installation.areas.values(), MAX_ROOMS):
        yield Item(
            sentence=f"room {area.id} ({area.name})",
            key=ROOM_PREFIX + area.id,
            value={"name": area.name},
            request=_post("/rooms", {"id": area.id, "name": area.name}),
        )
    for ha_device in installation.devices.values():
        device_id = entities.device_id(ha_device)
        if device_id is None or device_id in omitted:
            continue
        if (room_id := ha_device.area_id) in installation.areas:
            yield Item(
                sentence=f"{device_id} in room {room_id}",
                key=ASSIGNMENT_PREFIX + device_id,
                value=room_id,
                request=_post(f"/devices/{device_id}/room", {"room_id": room_id}),
                device_id=device_id,
            )
        if (name_ := ha_device.name) is not None:
            yield Item(
                sentence=f"{device_id} named {name_}",
                key=NAME_PREFIX + device_id,
                value=name_,
                request=_post(f"/devices/{device_id}/name", {"name": name_}),
                device_id=device_id,
            )
    for entity_id, value in islice(installation.helpers.items(), MAX_VARIABLES):
        variable = entities.variable(entity_id)
        yield Item(
            sentence=f"variable {variable} = {json.dumps(value)}",
            key=VARIABLE_PREFIX + variable,
            value={"value": value},
            request=HubRequest(path=f"/variables/{variable}", method="PUT", body={"value": value}),
        )


def _unknown_devices(installation: Installation, entities: Entities, known: Container[str]) -> list[str]:
    """Return the ids of the devices that the import matches with MQTT devices that have not appeared in Lares yet."""
    ids = filter(None, map(entities.device_id, installation.devices.values()))
    return [each for each in dict.fromkeys(ids) if each not in known]


def _excess(installation: Installation, unknown_devices: Sized) -> list[tuple[bool, str]]:
    """Describe areas, MQTT devices, and helpers beyond the limits of the hub."""
    limits = (
        (len(installation.areas), MAX_ROOMS, "areas", "rooms"),
        (len(unknown_devices), MAX_BROKER_DEVICES, "new MQTT devices", "devices of a broker"),
        (len(installation.helpers), MAX_VARIABLES, "helpers", "variables"),
    )
    return [
        (False, f"{count - limit} of {count} {what}: Lares supports at most {limit} {parts}")
        for count, limit, what, parts in limits
        if count > limit
    ]


def _post(path: str, body: Any) -> HubRequest:
    return HubRequest(path=path, method="POST", body=body)


async def _in_store(items: Iterable[Item], data_dir: Path) -> list[tuple[bool, str]]:
    steps: list[tuple[bool, str]] = []
    async with open_document(Disk(data_dir), Clock()) as document:
        changes: dict[str, Any] = {}
        for each in items:
            fault = _fault(each)
            if fault is not None or document.get(each.key) is not None:
                steps.append((False, f"{each.sentence}: {fault or 'already set'}"))
            else:
                changes[each.key] = each.value
                steps.append((True, each.sentence))
        await document.put_many(changes)
    return steps


def _fault(item: Item) -> str | None:
    """Return the reason why the API would reject the item, or None."""
    body = item.request.body
    try:
        for key, check in (("id", identifier), ("room_id", identifier), ("name", checked_name)):
            if key in body:
                check(body[key])
    except Invalid as fault:
        return str(fault)
    return None


def _through_hub(items: Iterable[Item], data_dir: Path) -> list[tuple[bool, str]]:
    state, _ = read_state(data_dir)
    return [_post_item(each, state, data_dir) for each in items]


def _post_item(item: Item, state: Collection[str], data_dir: Path) -> tuple[bool, str]:
    if item.key in state:
        return False, f"{item.sentence}: already set"
    if item.device_id is not None and DEVICE_PREFIX + item.device_id not in state:
        return False, f"{item.sentence}: the hub does not know this device yet; import again after it appears"
    try:
        ask(data_dir, item.request)
    except LaresError as refused:
        return False, f"{item.sentence}: {refused}"
    return True, item.sentence


def _import_locale(locale: Mapping[str, Any], file: Path) -> list[tuple[bool, str]]:
    """Set the time zone and coordinates if they still have their initial values."""
    text = read_plain(file).decode()
    stated = config.parse_toml(text, str(file)).get("locale", {})
    missing = {key: each for key, each in locale.items() if stated.get(key, "UTC") == "UTC" and each != "UTC"}
    changed = text
    for key, value in missing.items():
        changed = _with_locale(changed, f"{key} = {json.dumps(value)}")
    try:
        config.parse(changed, str(file), {})
    except LaresError as fault:
        return [(False, f"locale: {fault}")] if missing else []
    if missing:
        _write(file, changed, file.stat().st_mode & 0o777)
    return [(True, f"locale.{key} = {json.dumps(each)}") for key, each in missing.items()]


def _with_locale(text: str, line: str) -> str:
    """Set a line in `[locale]`. If the section has a line or a comment with the same key, replace this line."""
    key = line.split(" ", maxsplit=1)[0]
    head, header, rest = text.partition("[locale]\n")
    if not header:
        return f"{text}\n[locale]\n{line}\n"
    following = re.search(r"^\[", rest, re.MULTILINE)
    section, more = (rest[: following.start()], rest[following.start() :]) if following else (rest, "")
    stated = re.compile(rf"^(?:# )?{key} = .*$", re.MULTILINE)
    section = stated.sub(line, section, count=1) if stated.search(section) else f"{line}\n{section}"
    return head + header + section + more


def _import_files(installation: Installation, entities: Entities, folder: Path) -> list[tuple[bool, str]]:
    """Write one Lua file per automation, script, and scene, and their common module."""
    steps: list[tuple[bool, str]] = []
    taken = {name: _taken(folder / name) for name in ("automations", "scenes", "scripts")}
    taken["scripts"].add(MODULE.stem)
    for what, make in _makers(installation, entities, taken):
        try:
            made = make()
        except NotTranslated as reason:
            steps.append((False, f"{what}: {reason}"))
            continue
        except Exception:  # one unexpected file must not prevent the import of the others
            steps.append((False, f"{what}: unknown format; please report this file"))
            continue
        target, kind = folder / made.folder / f"{made.id}.lua", what.split(" ")[0]
        if target.exists() or target.is_symlink():
            steps.append((False, f"{kind} {made.name}: {target} exists already"))
            continue
        _write(target, made.text)
        parts = f"; {counted(len(made.problems), 'part')} to translate by hand" if made.problems else ""
        steps.append((True, f"{kind} {made.name}: {target}{parts}"))
        steps += [(False, f"  {made.id}: {problem}") for problem in made.problems]
    module = folder / MODULE
    if any(is_imported for is_imported, _ in steps) and not module.exists():
        _write(module, _module(installation.locale))
    return steps


def _makers(
    installation: Installation, entities: Entities, taken: Mapping[str, set[str]]
) -> Iterator[tuple[str, Callable[[], LuaFile]]]:
    """Yield the description and the translation function of each file. The caller must call each function before
    it requests the next pair."""
    scene_ids = iter(scripts.prepare(entities, taken))
    for origin, each in installation.scenes:
        yield f"scene ({origin})", partial(scenes.translate_scene, origin, each, entities, scene_ids)
    for origin, key, each in installation.scripts:
        yield f"script ({origin})", partial(scripts.translate_script, origin, key, each, entities)
    for origin, each in installation.automations:
        yield f"automation ({origin})", partial(translate, each, origin, entities, taken["automations"])
    if entities.timers:
        yield "automation (times)", partial(translate_times, entities, taken["automations"])


def _taken(folder: Path) -> set[str]:
    """Return the ids of existing files that no import has written."""
    files = folder.glob("*.lua")
    return {each.stem for each in files if MARK not in read_plain(each).decode(errors="replace")}


def _module(locale: Mapping[str, Any]) -> str:
    """Return the common module with the coordinates of the home."""
    text = (Path(__file__).parent / "homeassistant" / MODULE.name).read_text(encoding="utf-8")
    coordinates = f"{locale.get('latitude', 0)}, {locale.get('longitude', 0)}"
    return text.replace("LATITUDE, LONGITUDE = 0, 0", f"LATITUDE, LONGITUDE = {coordinates}")


def _write(file: Path, text: str, mode: int = 0o644) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text.encode(), mode)
    except OSError as error:
        raise StartFailed(f"cannot write {file}: {error.strerror}", os.EX_CANTCREAT) from None
