"""Explains an automation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from appliance.api.why.executions import describe_executions, describe_file, list_decisions
from appliance.api.why.explanation import MAX_LISTED, ONE, Explanation, list_safe_mode, take_first, word_for
from appliance.automations.automations import NOT_YET_ON, View
from appliance.automations.conditions.base import Condition
from appliance.automations.conditions.combine import Combination
from appliance.automations.environment import Environment
from appliance.automations.names.home_names import HomeNames
from appliance.automations.stated_fields import state_fields
from appliance.automations.triggers.base import Trigger
from appliance.clock import timestamp
from appliance.event_loop import in_steps
from appliance.hub import Hub

WHY_MISSED = (
    "the hub was off, the machine slept, or the clock was set past this time; a missed run starts later only if "
    "the delay is at most five minutes, and not after a power cut or a kill"
)


async def explain_automation(hub: Hub, id_: str, known: HomeNames) -> Explanation:
    """Raise `NotFound` for an unknown id."""
    automations, trust = hub.automations, hub.environment.clock_watch.trust
    view, file = automations.view(id_), automations.catalog.get(id_)
    definition = view.definition
    figures = automations.due_times.figures_of(id_)
    instant = hub.clock.now() if trust.is_trusted() else None
    count = automations.due_times.count_waits(id_)
    pending = islice(automations.due_times.iterate_waits(id_), MAX_LISTED)
    waits: list[str] = []
    await in_steps(hub.clock, map(waits.append, definition.explain(hub.environment, instant, is_waiting=count > 0)))
    words = ((word_for(hub, each), timestamp(at)) for each, at in pending)
    ends = [f"'{word}' matches; the automation runs at {at} if '{word}' still matches then" for word, at in words]
    now = describe_executions(hub, id_)
    faults = await asyncio.to_thread(lambda: [*known.faults_of(file), *known.inspect(file.source)])
    wrong = take_first([fault.message for fault in faults])
    as_it_was = [*list_safe_mode(hub), *await describe_file(automations.catalog, file)]
    if definition.needs_clock() and (reason := trust.distrust_reason()) is not None:
        as_it_was.append(reason)
    missed_at = automations.due_times.find_missed(id_) if view.is_enabled else None
    missed = [] if missed_at is None else [f"it was due at {timestamp(missed_at)} and did not run: {WHY_MISSED}"]
    idle = _describe(view, figures, now or automations.list_runs(id_, ONE))
    return Explanation(
        kind="automation",
        id=id_,
        summary=[*as_it_was, *now, *idle, *missed, *take_first(waits), *take_first(ends, count), *wrong],
        decisions=await list_decisions(hub, "automation", id_),
        automation={
            "triggers": [_state(trigger) for trigger in definition.triggers],
            "conditions": _state_conditions(definition.conditions, hub.environment, instant),
            "notes": [*as_it_was, *missed, *wrong],
        },
    )


def _state(thing: Trigger | Condition) -> dict[str, Any]:
    """Return the fields. Shorten a long list of device ids, and add the number of ids as `device_count`."""
    fields: dict[str, Any] = state_fields(thing)
    ids = fields.get("device_id")
    if isinstance(ids, list) and len(ids) > MAX_LISTED:
        fields |= {"device_id": ids[:MAX_LISTED], "device_count": len(ids)}
    return fields


def _state_conditions(
    conditions: Sequence[Condition], environment: Environment, instant: datetime | None
) -> list[dict[str, Any]]:
    """Return the fields of each condition, and whether it holds now."""
    stated = []
    for each in conditions:
        fields = {**_state(each), "holds": each.evaluate(environment, instant).holds is True}
        if isinstance(each, Combination):
            fields["conditions"] = _state_conditions(each.conditions, environment, instant)
        stated.append(fields)
    return stated


def _describe(view: View, figures: Mapping[str, Any], runs: Sequence[object]) -> Iterator[str]:
    trigger = " or ".join(dict.fromkeys(each.type for each in view.definition.triggers))
    if not view.is_enabled:
        yield "it is switched off" if view.definition.enabled else NOT_YET_ON
    if (paused := figures.get("braked_secs")) is not None:
        yield f"it is paused for {paused:.0f} s more, because it triggered itself too often"
    if figures.get("next_fire") is not None:
        yield f"its trigger ({trigger}) is next due at {figures['next_fire']}"
    elif figures.get("waiting"):
        yield f"its trigger ({trigger}) has begun to match and waits"
    else:
        yield f"it waits for its trigger ({trigger})"
    if not runs:
        yield "nothing has triggered it since the hub started"
