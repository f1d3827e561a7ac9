"""Translates an automation of Home Assistant to a Lua file."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from msgspec import structs

from appliance.cli.homeassistant import conditions, triggers
from appliance.cli.homeassistant.actions import Actions
from appliance.cli.homeassistant.conditions import Declared
from appliance.cli.homeassistant.entities import Entities
from appliance.cli.homeassistant.entity_values import value_in_lua
from appliance.cli.homeassistant.lua import literal, negated, quote, rows
from appliance.cli.homeassistant.lua_file import LuaFile, description, free_id, head, mode_of
from appliance.cli.homeassistant.not_translated import MISSING_BLUEPRINT, Disabled, NotTranslated
from appliance.cli.homeassistant.statements import ODD_FORMS, as_yaml, words_of
from appliance.cli.homeassistant.triggers import Trigger
from appliance.cli.homeassistant.values import as_list, mentions, title_of

TIMES = "Times of helpers"


def translate(definition: Any, origin: str, entities: Entities, taken: set[str]) -> LuaFile:
    """Translate an automation. Comments in the file contain the automation's `origin`. Add the new id to the used
    ids `taken`. Raise `NotTranslated` if the definition is not an automation."""
    if not isinstance(definition, Mapping):
        raise NotTranslated("the automation is not a YAML mapping")
    if "use_blueprint" in definition:
        raise NotTranslated(MISSING_BLUEPRINT)
    if not {"trigger", "triggers", "action", "actions"} & definition.keys():
        raise NotTranslated("the automation has neither triggers nor actions")
    title = title_of(definition.get("alias"), definition.get("id"), "automation")
    id_ = free_id(title, taken)
    notes: list[str] = []
    found = _triggers(definition, entities, notes)
    event_entities = tuple(dict.fromkeys(each for trigger in found for each in trigger.entities))
    sequence = definition.get("actions", definition.get("action"))
    actions = Actions(entities, event_entities, reads_waits=mentions(sequence, "wait."))
    actions.define(definition.get("trigger_variables"))
    actions.define(definition.get("variables"))
    found = _unique(_guard(found, actions), actions)
    declared = _conditions(definition, actions, notes)
    actions.sequence(sequence)
    text = _render(id_, title, definition, origin, found, declared, actions, notes)
    return LuaFile(
        folder="automations", id=id_, name=title, text=text, problems=(*_reasons(notes), *actions.problems)
    )


def translate_times(entities: Entities, taken: set[str]) -> LuaFile:
    """Return an automation that starts timers for all other automations, including disabled automations."""
    id_, title = free_id("helper_times", taken), TIMES
    body = [
        f"    ha.start_timer(ctx, {literal(timer)}, {value_in_lua(helper)}, {offset})"
        for timer, (helper, offset) in entities.timers.items()
    ]
    variables = dict.fromkeys(helper.name for helper, _ in entities.timers.values())
    found = [
        {"type": "adapter_lifecycle", "event": "started"},
        {"type": "wall_clock", "time": "00:00"},
        *({"type": "variable_change", "name": each} for each in variables),
        *({"type": "timer", "name": each} for each in entities.timers),
    ]
    lines = [
        *head(title, "the times that other automations wait for", [], "\n".join(body)),
        "---@type Automation",
        "return {",
        f"  id = {quote(id_)},",
        f"  name = {quote(title)},",
        '  description = "Starts the timers of imported automations. Keep this automation on.",',
        *_trigger_lines(id_, [Trigger(table=each) for each in found]),
        '  mode = "restart",',
        "  execute = function(ctx)",
        *body,
        "  end,",
        "}",
        "",
    ]
    return LuaFile(folder="automations", id=id_, name=title, text="\n".join(lines), problems=())


def _triggers(definition: Mapping[str, Any], entities: Entities, notes: list[str]) -> list[Trigger]:
    found: list[Trigger] = []
    is_asked = mentions(definition, "trigger.id") or _has_trigger_condition(definition)
    for number, each in enumerate(as_list(definition.get("triggers", definition.get("trigger"))), 1):
        for part in triggers.split(each):
            try:
                made = triggers.translate(part, entities)
                # Home Assistant uses the index if a trigger has no id
                found += [
                    structs.replace(row, id=str(number - 1)) if is_asked and row.id is None else row for row in made
                ]
            except ODD_FORMS as reason:
                notes.append(_note(f"trigger {number}", words_of(reason), part))
    return found


def _has_trigger_condition(value: Any) -> bool:
    if isinstance(value, Mapping):
        return value.get("condition") == "trigger" or any(map(_has_trigger_condition, value.values()))
    return isinstance(value, list) and any(map(_has_trigger_condition, value))


def _guard(found: list[Trigger], actions: Actions) -> list[Trigger]:
    """Give an id to each trigger with a guard or variables. Write the guards, then the variables."""
    made: list[Trigger] = []
    own: dict[str, Mapping[str, Any]] = {}
    ids: dict[str, str] = {}
    for number, each in enumerate(found, 1):
        if not each.guard and not each.variables:
            made.append(each)
            continue
        is_unique = all(other.guard == each.guard for other in found if other.id == each.id)
        id_ = each.id if each.id is not None and is_unique else ids.get(each.guard, f"trigger_{number}")
        if each.id is not None and id_ != each.id:
            actions.problems.append(
                f"several triggers have the id {each.id}, so the trigger with a condition has the new id {id_}"
            )
        made.append(structs.replace(each, id=id_))
        own |= {id_: each.variables} if each.variables else {}
        if each.guard and each.guard not in ids:
            ids[each.guard] = id_
            actions.lines.return_if(f"event.trigger_id == {literal(id_)} and {negated(each.guard)}")
    actions.define_by_trigger(own)
    return made


def _unique(found: list[Trigger], actions: Actions) -> list[Trigger]:
    """Give different ids to triggers that share an id. Write code that restores the original id in the event."""
    made: list[Trigger] = []
    taken: set[str] = set()
    shared: dict[str, str] = {}
    for each in found:
        id_ = each.id
        if id_ is not None and id_ in taken:
            id_ = next(new for number in count(2) if (new := f"{each.id}_{number}") not in taken)
            shared[id_] = str(each.id)
        taken |= {id_} if id_ is not None else set()
        made.append(structs.replace(each, id=id_))
    if shared:
        line = f"event.trigger_id = ({literal(shared)})[event.trigger_id] or event.trigger_id"
        actions.lines.lines.insert(0, actions.lines.indent + line)
    return made


def _conditions(definition: Mapping[str, Any], actions: Actions, notes: list[str]) -> list[Mapping[str, Any]]:
    """Return the conditions that a Lares definition can declare. Write all other conditions as Lua tests."""
    declared: list[Mapping[str, Any]] = []
    for number, each in enumerate(as_list(definition.get("conditions", definition.get("condition"))), 1):
        try:
            made = conditions.translate(each, actions.statements.scope)
        except ODD_FORMS as reason:
            notes.append(_note(f"condition {number}", words_of(reason), each))
            if not isinstance(reason, Disabled):
                actions.statements.end_run(f"condition {number}")
            continue
        if isinstance(made, Declared):
            declared.append(made.table)
        else:
            actions.lines.return_if(negated(made.lua))
    return declared


def _note(what: str, reason: str, part: Any) -> str:
    return "\n".join([f"{what}: {reason}", *(f"  {line}" for line in as_yaml(part).splitlines())])


def _reasons(notes: list[str]) -> list[str]:
    return [each.split("\n")[0] for each in notes]


def _render(
    id_: str,
    title: str,
    definition: Mapping[str, Any],
    origin: str,
    found: list[Trigger],
    declared: list[Mapping[str, Any]],
    actions: Actions,
    notes: list[str],
) -> str:
    body = actions.body()
    lines = head(title, origin, notes, body)
    lines += ["---@type Automation", "return {", f"  id = {quote(id_)},", f"  name = {quote(title)},"]
    lines += description(definition)
    lines.append("  enabled = false, -- check this file, then switch the automation on")
    lines += _trigger_lines(id_, found)
    if declared:
        first, *rest = rows(declared, "  ")
        lines += [f"  conditions = {first}", *rest]
        lines[-1] += ","
    lines += mode_of(definition)
    lines += ["  execute = function(ctx, event)", body, "  end,", "}", ""]
    return "\n".join(lines)


def _trigger_lines(id_: str, found: list[Trigger]) -> list[str]:
    if not found:
        return [
            "  -- no trigger was translated; replace this hook with a Lares trigger",
            f"  trigger = {literal({'type': 'webhook', 'hook': id_})},",
        ]
    tables = [{**({"id": each.id} if each.id is not None else {}), **each.table} for each in found]
    is_one = len(tables) == 1 and "id" not in tables[0]
    first, *rest = rows(tables[0] if is_one else tables, "  ")
    made = [f"  {'trigger' if is_one else 'triggers'} = {first}", *rest]
    made[-1] += ","
    return made
