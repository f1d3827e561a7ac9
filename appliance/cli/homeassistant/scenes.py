"""Translates scenes of Home Assistant to scenes of Lares.

Field names follow Home Assistant's documentation of scenes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from appliance.cli.homeassistant.actions import Actions
from appliance.cli.homeassistant.entities import Entities
from appliance.cli.homeassistant.lua import quote
from appliance.cli.homeassistant.lua_file import LuaFile, description, head, mode_of
from appliance.cli.homeassistant.not_translated import NotTranslated
from appliance.cli.homeassistant.values import title_of


def translate_scene(origin: str, definition: Any, entities: Entities, ids: Iterator[str]) -> LuaFile:
    """Translate one scene. The scene gets the next id from `ids`. Raise `NotTranslated` if the definition is not a
    scene."""
    if not isinstance(definition, Mapping):
        raise NotTranslated("this part is not a YAML mapping")
    id_, title, states = next(ids), scene_title(definition), definition.get("entities")
    if not isinstance(states, Mapping):
        raise NotTranslated("the scene has no entities")
    actions = Actions(entities, fields={})
    actions.services.apply(states)
    return write_scene(id_, title, origin, {"mode": "restart"}, actions)


def write_scene(id_: str, title: str, origin: str, definition: Mapping[str, Any], actions: Actions) -> LuaFile:
    """Return the file of a scene that runs these actions."""
    body = actions.body()
    lines = [
        *head(title, origin, [], body),
        "---@type Scene",
        "return {",
        f"  id = {quote(id_)},",
        f"  name = {quote(title)},",
        *description(definition),
        *mode_of(definition),
        "  execute = function(ctx)",
        body,
        "  end,",
        "}",
        "",
    ]
    return LuaFile(folder="scenes", id=id_, name=title, text="\n".join(lines), problems=tuple(actions.problems))


def scene_title(definition: Mapping[str, Any]) -> str:
    return title_of(definition.get("name"), definition.get("id"), "scene")
