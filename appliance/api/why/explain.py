"""Finds the explained object by id, alias, or name, and returns its explanation."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from appliance.api.why.automation import explain_automation
from appliance.api.why.device import explain_device
from appliance.api.why.executions import explain_scene
from appliance.api.why.explanation import MAX_DECISIONS, Explanation, list_safe_mode
from appliance.api.why.missing import explain_missing
from appliance.automations.names.home_names import describe_ambiguous
from appliance.errors import Invalid, NotFound
from appliance.hub import Hub
from appliance.tables.checks import nearest, suggest


async def explain(hub: Hub, word: str) -> dict[str, Any]:
    """Return `{kind, id, summary, decisions, automation}`: the current state, and the last ten decisions.

    The word can be an id, an alias, or a name. It can also be the name of an adapter section, or of a file that is
    not loaded because of an error. For an automation, `automation` is `{triggers, conditions, notes}`: the fields of
    its file, whether each condition holds now, and further notes. For other ids, `automation` is None. Raise
    `NotFound` for an unknown word, and `Invalid` for the name of several objects.
    """
    try:
        found = await _explain_known(hub, await _find_id(hub, word))
    except NotFound:
        if (missing := await explain_missing(hub, word)) is None:
            raise
        found = missing
    changes = (await hub.adapter_sections.find_config_changes()).sentences()
    latest = sorted(found.decisions, key=lambda each: each.at, reverse=True)[:MAX_DECISIONS]
    complete = replace(found, summary=[*found.summary, *changes], decisions=latest)
    explained: dict[str, Any] = to_builtins(complete)
    return explained


async def _explain_known(hub: Hub, id_: str) -> Explanation:
    known = await hub.names.find_known()
    try:
        return await explain_automation(hub, id_, known)
    except NotFound:
        pass
    try:
        return await explain_device(hub, id_)
    except NotFound:
        return await explain_scene(hub, id_, known)


async def _find_id(hub: Hub, word: str) -> str:
    """Return the id for a word. The word can be an id, an alias, or a name. The error `NotFound` suggests the nearest
    id. Raise `Invalid` if several automations, scenes, or devices have this name."""
    pairs = [
        *((each.id, each.name) for each in hub.automations.catalog.list_definitions()),
        *((scene.id, scene.name) for scene in hub.scenes.catalog.list_definitions()),
        *((device.id, device.name) for device in hub.registry.list_devices()),
    ]
    if any(word == id_ for id_, _ in pairs):
        return word
    if (found := hub.registry.find_device(word)) is not None:
        return found.id
    # a scene and an automation can have the same id
    named = list(dict.fromkeys(id_ for id_, name in pairs if name.casefold() == word.casefold()))
    if len(named) > 1:
        raise Invalid(describe_ambiguous(word, named))
    if named:
        return named[0]
    known = [*(each for pair in pairs for each in pair), *hub.registry.layout.ids_by_alias]
    near = await asyncio.to_thread(nearest, word, known)
    raise _unknown(hub, word, near)  # a local variable with the exception would form a cycle with the traceback


def _unknown(hub: Hub, word: str, near: str | None) -> NotFound:
    unknown = NotFound("automation", word)
    hint = suggest(near, "`lares status` lists the automations, and `lares devices` lists the devices")
    off = "".join(f"; {reason}" for reason in _list_off(hub))
    unknown.args = (f"{unknown}, and no scene or device has that id or name{off}{hint}",)
    return unknown


def _list_off(hub: Hub) -> list[str]:
    """Return the reasons why no automations or no scenes are loaded."""
    off = list_safe_mode(hub)
    for kind in ("automations", "scenes"):
        if not hub.folders[kind].enabled and (kind == "scenes" or hub.safe_mode.reason is None):
            off.append(f"{kind}.enabled is false in the configuration")
    return off
