"""Explains a scene, and the executions and the file of an automation or a scene."""

from __future__ import annotations

import asyncio
from typing import Any

from appliance.api.why.explanation import LATEST, ONE, Decision, Explanation, word_for
from appliance.automations.names.home_names import HomeNames
from appliance.clock import timestamp
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus
from appliance.hub import Hub
from appliance.lua.files.catalog import Catalog, LoadedFile
from appliance.lua.running.executor import list_executions


async def explain_scene(hub: Hub, id_: str, known: HomeNames) -> Explanation:
    """Raise `NotFound` for an unknown id."""
    file = hub.scenes.catalog.get(id_)
    idle = [] if hub.scenes.list_runs(id_, ONE) else ["it has not run since the hub started"]
    faults = await asyncio.to_thread(lambda: [*known.inspect(file.source)])
    wrong = [fault.message for fault in faults]
    now = describe_executions(hub, id_) or idle
    summary = [*await describe_file(hub.scenes.catalog, file), *now, *wrong]
    return Explanation(kind="scene", id=id_, summary=summary, decisions=await list_decisions(hub, "scene", id_))


def describe_executions(hub: Hub, id_: str) -> list[str]:
    """Return a sentence for each execution of this id that is running or waiting."""
    return [
        f"it has been running since {timestamp(each.started_at)}: {each.doing} (execution {each.id})"
        for each in list_executions(hub.executors, id_)
    ]


async def list_decisions(hub: Hub, kind: str, id_: str) -> list[Decision]:
    """Return the decisions about the executions of this id, including executions before the hub's last start."""
    decisions: list[Decision] = []

    def add(entry: ExecutionEntry) -> bool:
        decisions.append(_decision(hub, entry))
        return True

    await hub.history.read_executions(kind, id_, LATEST, add)
    return decisions


async def describe_file(catalog: Catalog[Any], file: LoadedFile[Any]) -> list[str]:
    """Return how the file on disk differs from the loaded version, and why."""
    name = file.source.name
    if catalog.is_refused:
        fault = next((each for each in catalog.rejected if each.file == name), catalog.rejected[0])
        return [f"the previous version still runs, because the latest reload failed: {fault}"]
    changed = f"{name} was changed, but the previous version still runs; to load the change, run `lares reload`"
    outdated = [changed] if await catalog.is_outdated(file.source) else []
    return [*outdated, *(f"not loaded: {each}" for each in catalog.list_copies(file))]


def _decision(hub: Hub, entry: ExecutionEntry) -> Decision:
    event = entry.trigger_payload or {}
    because, device_id = event.get("type"), event.get("device_id")
    trigger = "" if because is None else f" ({because})"
    at = timestamp(entry.executed_at)
    if entry.status in (ExecutionStatus.SKIPPED, ExecutionStatus.DROPPED):
        if entry.status is ExecutionStatus.DROPPED and because is not None and device_id is not None:
            trigger = f" ({because} of {device_id})"
        return Decision(at, f"did not run{trigger}: {entry.error}")
    others = [each for each in entry.warnings if each.partition(": ")[2] not in (entry.error or "")]
    reached = [word_for(hub, each["target"]) for each in entry.results if each["status"] == "ok"]
    sentences = "; ".join([*(f"{each} ok" for each in reached), *others])
    took = f"{trigger} in {entry.duration_ms} ms" + (f": {sentences}" if sentences else "")
    if entry.status is ExecutionStatus.OK:
        return Decision(at, f"ran{took}")
    ended = {ExecutionStatus.CANCELLED: "was cancelled", ExecutionStatus.TIMEOUT: "took too long"}
    return Decision(at, f"{ended.get(entry.status, 'failed')}{took}; {entry.error}")
