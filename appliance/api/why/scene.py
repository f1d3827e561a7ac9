"""Explains a scene."""

from __future__ import annotations

from appliance.api.why.executions import describe_executions, describe_file, list_decisions
from appliance.api.why.explanation import ONE, Explanation
from appliance.automations.names.home_names import HomeNames
from appliance.hub import Hub


async def explain_scene(hub: Hub, id_: str, known: HomeNames) -> Explanation:
    """Raise `NotFound` for an unknown id."""
    file = hub.scenes.catalog.get(id_)
    idle = [] if hub.scenes.list_runs(id_, ONE) else ["it has not run since the hub started"]
    wrong = [fault.message for fault in known.inspect(file.source)]
    now = describe_executions(hub, id_) or idle
    summary = [*await describe_file(hub.scenes.catalog, file), *now, *wrong]
    return Explanation(kind="scene", id=id_, summary=summary, decisions=await list_decisions(hub, "scene", id_))
