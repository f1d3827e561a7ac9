"""Translates scripts of Home Assistant to scenes, or to functions if they have fields or a response.

Field names follow Home Assistant's documentation of scripts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from appliance.cli.homeassistant.actions import Actions
from appliance.cli.homeassistant.entities import Entities, Script
from appliance.cli.homeassistant.installation import Installation
from appliance.cli.homeassistant.lua import key_of, literal, quote
from appliance.cli.homeassistant.lua_file import LuaFile, free_id, head
from appliance.cli.homeassistant.not_translated import MISSING_BLUEPRINT, NotTranslated
from appliance.cli.homeassistant.scenes import scene_title, write_scene
from appliance.cli.homeassistant.values import as_list, as_mapping, mentions, object_id, title_of

NO_FIELDS = frozenset({"entity_id", "variables"})


def prepare(entities: Entities, taken: Mapping[str, set[str]]) -> list[str]:
    """Assign an id to each script and scene, so that automations can refer to them. Return the scenes' ids in order.

    `taken` contains the ids in use, by folder.
    """
    installation = entities.installation
    passed = _passed_fields(installation)
    for _, key, definition in installation.scripts:
        if not isinstance(definition, Mapping):
            continue
        declared = definition.get("fields")
        fields = dict.fromkeys([*(declared if isinstance(declared, Mapping) else ()), *sorted(passed[key])])
        is_function = bool(fields) or mentions(definition.get("sequence"), "response_variable")
        folder = "scripts" if is_function else "scenes"
        names = tuple(map(str, fields))
        entities.scripts[key] = Script(id=free_id(key, taken[folder]), fields=names, is_function=is_function)
    scene_ids: list[str] = []
    renamed = {each.unique_id: each for each in installation.entities.values() if each.platform == "homeassistant"}
    for _, definition in installation.scenes:
        if isinstance(definition, Mapping):
            title = scene_title(definition)
            entity = renamed.get(str(definition.get("id")))
            key = entity.entity_id.partition(".")[2] if entity is not None else object_id(title)
            scene_ids.append(free_id(title, taken["scenes"]))
            entities.scenes.setdefault(key, scene_ids[-1])
    for action in _actions(installation):
        if str(action.get("action") or action.get("service")) == "scene.create":
            data = action.get("data")
            entities.snapshots |= {str(data.get("scene_id"))} if isinstance(data, Mapping) else set()
    return scene_ids


def translate_script(origin: str, key: str, definition: Any, entities: Entities) -> LuaFile:
    """Translate one script. Raise `NotTranslated` if the definition is not a script."""
    if not isinstance(definition, Mapping):
        raise NotTranslated("this part is not a YAML mapping")
    if "use_blueprint" in definition:
        raise NotTranslated(MISSING_BLUEPRINT)
    script, title = entities.scripts[key], title_of(definition.get("alias"), key, "script")
    sequence = definition.get("sequence")
    actions = Actions(
        entities,
        reads_waits=mentions(sequence, "wait."),
        fields={each: f"fields{_index(each)}" for each in script.fields},
        depth=1 if script.is_function else 2,
    )
    _defaults(actions, definition)
    actions.define(definition.get("variables"))
    actions.sequence(sequence)
    if script.is_function:
        body = actions.body()
        mode = str(definition.get("mode", "single"))
        notes = (
            [f"the mode {mode} is omitted, because a function has no mode"] if mode in ("restart", "queued") else []
        )
        call = f"-- Call it with require({quote(script.id)})(ctx, {{ … }})."
        lines = [*head(title, origin, notes, body), call, "return function(ctx, fields)", body, "end", ""]
        problems = (*notes, *actions.problems)
        return LuaFile(folder="scripts", id=script.id, name=title, text="\n".join(lines), problems=problems)
    return write_scene(script.id, title, origin, definition, actions)


def _defaults(actions: Actions, definition: Mapping[str, Any]) -> None:
    declared = definition.get("fields")
    for key, row in declared.items() if isinstance(declared, Mapping) else ():
        if isinstance(row, Mapping) and row.get("default") is not None:
            target = f"fields{_index(str(key))}"
            actions.lines.open(f"if {target} == nil then")
            actions.lines.add(f"{target} = {literal(row['default'])}")
            actions.lines.close()


def _index(field: str) -> str:
    key = key_of(field)
    return key if key.startswith("[") else f".{key}"


def _passed_fields(installation: Installation) -> defaultdict[str, set[str]]:
    """Return the names of the fields that calls pass to each script."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for action in _actions(installation):
        domain, _, verb = str(action.get("action") or action.get("service")).partition(".")
        data = action.get("data") or action.get("data_template")
        if domain != "script" or not isinstance(data, Mapping):
            continue
        if verb != "turn_on":
            found[verb] |= {str(each) for each in data} - NO_FIELDS
        elif isinstance(variables := data.get("variables"), Mapping):
            for part in (as_mapping(action.get("target")), action, data):
                for each in as_list(part.get("entity_id")):
                    found[str(each).removeprefix("script.")] |= set(map(str, variables))
    return found


def _actions(installation: Installation) -> Iterator[Mapping[str, Any]]:
    """Yield every mapping with an action in automations and scripts."""
    rows: list[Any] = [each for _, each in installation.automations]
    rows += [each for _, _, each in installation.scripts]
    while rows:
        each = rows.pop()
        if isinstance(each, Mapping):
            rows += each.values()
            if isinstance(each.get("action") or each.get("service"), str):
                yield each
        elif isinstance(each, list):
            rows += each
