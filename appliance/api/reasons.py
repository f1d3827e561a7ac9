"""Explains the hub's decisions about an automation, a scene, or a device in sentences."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from appliance.api.figures import started_at
from appliance.automations.automations import NOT_YET_ON, View
from appliance.automations.conditions.base import Condition
from appliance.automations.conditions.combine import Combination, list_nested
from appliance.automations.definition import state_fields
from appliance.automations.environment import UNTRUSTED
from appliance.automations.names import HomeNames
from appliance.automations.requirement import ONLY_A_CHANGE
from appliance.clock import timestamp
from appliance.errors import NotFound
from appliance.health import AdapterHealth
from appliance.history.device_history import Resolution
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus
from appliance.history.period import Period
from appliance.home.model import OFFLINE, UNAVAILABLE, Device
from appliance.hub import Hub
from appliance.log_buffer import value_text
from appliance.lua.catalog import Catalog
from appliance.lua.executor import list_executions
from appliance.lua.source import Source
from appliance.store.record_keys import STATE_PREFIX
from appliance.tables.checks import nearest, rounded, suggest

MAX_DECISIONS = 10

ONE, LATEST = Period(limit=1), Period(limit=MAX_DECISIONS)

WHY_AWAY: Mapping[Any, str] = {
    OFFLINE: ": it does not answer",
    UNAVAILABLE: ": its bridge or broker is up, but reports the device as unavailable",
}

WHY_MISSED = (
    "the hub was off, the machine slept, or the clock was set past this time; a missed run starts later only if "
    "the delay is at most five minutes, and not after a power cut or a kill"
)

HOW_TO_LOAD = "correct the errors that `lares check` lists, then run `lares reload`"
"""The advice if the file of an automation, a scene, or a kind is not loaded."""

ReportedDecision = tuple[str, str]
"""A decision's time (RFC 3339), and a sentence that describes the decision."""

Explained = tuple[str, list[str], list[ReportedDecision], dict[str, Any] | None]
"""The parts of an explanation: the kind of object, sentences about the object's current state, the latest decisions,
and an automation's fields."""


class Reasons:
    """Explains decisions from the hub's histories."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def explain(self, id_: str) -> dict[str, Any]:
        """Return `{kind, id, summary, decisions, automation}`: the current state, and the last ten decisions.

        The id can also be the name of an adapter section, or of a file that is not loaded because of an error. For an
        automation, `automation` is `{triggers, conditions, notes}`: the fields of its file, whether each condition
        holds now, and further notes. For other ids, `automation` is None. Raise `NotFound` for an unknown id.
        """
        try:
            id_ = await self._id_of(id_)
        except NotFound:
            if (found := await self._explain_missing(id_)) is None:
                raise
            changes = (await self._hub.adapter_sections.find_config_changes()).sentences()
            summary = [*found["summary"], *changes]
            return {"id": id_, **found, "summary": summary, "decisions": [], "automation": None}
        known = await self._hub.names.find_known()
        for explain in (self._of_automation, self._of_device, self._of_scene):
            try:
                kind, summary, decisions, stated = await explain(id_, known)
            except NotFound:
                continue
            summary += (await self._hub.adapter_sections.find_config_changes()).sentences()
            latest = sorted(decisions, key=lambda each: each[0], reverse=True)[:MAX_DECISIONS]
            sentences = [{"at": at, "sentence": sentence} for at, sentence in latest]
            return {"kind": kind, "id": id_, "summary": summary, "decisions": sentences, "automation": stated}
        raise NotFound("automation", id_)

    async def _id_of(self, word: str) -> str:
        """Return the id for a word. The word can be an id, an alias, or a name. The error `NotFound` suggests the
        nearest id."""
        hub = self._hub
        pairs = [
            *((view.definition.id, view.definition.name) for view in hub.automations.list_views()),
            *((scene.id, scene.name) for scene in hub.scenes.list_scenes()),
            *((device.id, device.name) for device in hub.registry.list_devices()),
        ]
        if any(word == id_ for id_, _ in pairs):
            return word
        if found := hub.registry.find_devices([word]):
            return found[0].id
        named = [id_ for id_, name in pairs if name.casefold() == word.casefold()]
        if named:
            return named[0]
        known = [*(each for pair in pairs for each in pair), *hub.registry.layout.ids_by_alias]
        near = await asyncio.to_thread(nearest, word, known)
        missing = NotFound("automation", word)
        hint = suggest(near, "GET /automations, /scenes, and /devices list them")
        off = "".join(f"; {reason}" for reason in self._list_off())
        missing.args = (f"{missing}, and no scene or device has that id or name{off}{hint}",)
        raise missing

    async def _explain_missing(self, word: str) -> dict[str, Any] | None:
        """Return the state of the adapter with this name, or the reason why the automation, scene, or device with
        this id is missing. Return None if the reason is unknown."""
        catalogs = (("automation", self._hub.automations.catalog), ("scene", self._hub.scenes.catalog))
        for kind, catalog in catalogs:
            if faults := await catalog.find_unloaded(word):
                sentences = [f"it is not loaded: {fault}" for fault in faults]
                return {"kind": kind, "summary": [*self._is_safe(), *sentences, HOW_TO_LOAD]}
        past = self._hub.names.list_removed()
        named = (id_ for id_, each in past.items() if each.name.casefold() == word.casefold())
        word = next(named, self._hub.registry.id_of(word))
        removed = [f"it {past[word]}"] if word in past else []
        section = word.partition(":")[0]
        health = next((each for each in self._hub.health.list_adapters() if each.name == section), None)
        if health is None and section in (await self._hub.names.find_known()).adapters:
            off = f"[adapters.{section}] has enabled = false; set it to true, then run `lares reload`"
            return {"kind": "adapter" if word == section else "device", "summary": [*removed, off]}
        if health is None:
            return {"kind": "device", "id": word, "summary": removed} if removed else None
        sentences = [*_describe_adapter(health, word)]
        if word == section:
            return {"kind": "adapter", "summary": sentences}
        sentences = [*removed, *sentences]
        if self._hub.registry.layout.keeps(word):
            sentences = [
                f"{section} does not report the device now; the device's room, name, and groups are kept",
                *sentences,
            ]
        elif not removed and health.file_fault is None and not _drops_of(health, word):
            return None
        return {"kind": "device", "id": word, "summary": sentences}

    def _listeners_to(self, device: Device) -> Iterator[str]:
        """Yield a sentence for each automation that has a condition on the device, or a trigger for the device, the
        device's room, or one of the device's groups."""
        layout = self._hub.registry.layout
        things: dict[tuple[str, str | None], str] = {
            ("device", device.id): "it",
            ("device", device.alias): "it",
            ("room", device.room_id): f"its room '{device.room_id}'",
        }
        groups = [group for group in layout.groups.values() if device.id in group.members]
        things |= {("group", group.id): f"its group '{group.id}'" for group in groups}
        for definition in self._hub.automations.catalog.list_definitions():
            named = [name for trigger in definition.triggers for name in trigger.names()]
            asked = [name for each in list_nested(definition.conditions) for name in each.names()]
            for verb, names in (("listens to", named), ("has a condition on", asked)):
                for thing in dict.fromkeys(things[each.subject] for each in names if each.subject in things):
                    yield f"automation '{definition.id}' {verb} {thing}"

    def state_since(self, device: Device) -> datetime:
        """Return the time at which the device went online or offline, if it is known.

        If a device was online when the hub stopped and has been offline since then, return the start of the hub.
        """
        entries = self._hub.history.devices.list_values(device.id, "state", ONE)
        if entries:
            # the clock may have been wrong before the hub's last start
            return max(entries[0].observed_at, started_at(self._hub))
        stored = orjson.loads(self._hub.document.get(STATE_PREFIX + device.id) or b"{}")
        was_offline = stored.get("is", {}).get("state") == device.attributes.get("state")
        return device.updated_at if was_offline else started_at(self._hub)

    def _word_for(self, id_: str) -> str:
        """Return the device's alias, or its id if it has no alias."""
        found = self._hub.registry.find_devices([id_])
        return id_ if not found or found[0].alias is None else found[0].alias

    async def _of_automation(self, id_: str, known: HomeNames) -> Explained:
        hub, automations = self._hub, self._hub.automations
        view, file = automations.view(id_), automations.catalog.get(id_)
        armed = automations.figures()["each"].get(id_, {})
        instant = hub.clock.now() if hub.recorder.trust.is_trusted() else None
        waits = [*view.definition.explain(hub.environment, instant)]
        if pending := automations.due_times.list_waits(id_):
            waits = [each.replace(ONLY_A_CHANGE, "") for each in waits]
            words = ((self._word_for(each), timestamp(at)) for each, at in pending)
            waits += [
                f"'{word}' matches; the automation runs at {at} if '{word}' still matches then" for word, at in words
            ]
        now = self._describe_executions(id_)
        wrong = [fault.message for fault in (*known.faults_of(file), *known.inspect(file.source))]
        as_it_was = [*self._is_safe(), *await _describe_file(automations.catalog, file.source)]
        if any(UNTRUSTED in each for each in waits):
            as_it_was += filter(None, [hub.recorder.trust.distrust_reason()])
        missed = [*_describe_missed(automations.due_times.find_missed(id_))] if view.is_enabled else []
        idle = _describe(view, armed, now or automations.list_runs(id_, ONE))
        summary = [*as_it_was, *now, *idle, *missed, *waits, *wrong]
        stated = {
            "triggers": [state_fields(trigger) for trigger in view.definition.triggers],
            "conditions": self._state_conditions(view.definition.conditions, instant),
            "notes": [*as_it_was, *missed, *wrong],
        }
        return "automation", summary, await self._runs("automation", id_), stated

    def _state_conditions(self, conditions: Sequence[Condition], instant: datetime | None) -> list[dict[str, Any]]:
        return [
            {
                **state_fields(each),
                "holds": each.evaluate(self._hub.environment, instant).holds is True,
                **(
                    {"conditions": self._state_conditions(each.conditions, instant)}
                    if isinstance(each, Combination)
                    else {}
                ),
            }
            for each in conditions
        ]

    async def _of_scene(self, id_: str, known: HomeNames) -> Explained:
        now = self._describe_executions(id_)
        catalog = self._hub.scenes.catalog
        source = catalog.get(id_).source
        wrong = [fault.message for fault in known.inspect(source)]
        idle = [] if self._hub.scenes.list_runs(id_, ONE) else ["it has not run since the hub started"]
        summary = [*await _describe_file(catalog, source), *(now or idle), *wrong]
        return "scene", summary, await self._runs("scene", id_), None

    def _describe_executions(self, id_: str) -> list[str]:
        """Return a sentence for each execution of this id that is running or waiting."""
        return [
            f"it has been running since {timestamp(each.started_at)}: {each.doing} (execution {each.id})"
            for each in list_executions(self._hub.executors, id_)
        ]

    async def _of_device(self, id_: str, known: HomeNames) -> Explained:
        device = self._hub.registry.get_device(id_)
        state = device.attributes.get("state")
        health = self._hub.health.get_adapter(device.metadata.source)
        summary = [
            f"it has been {state} since {timestamp(self.state_since(device))}" + WHY_AWAY.get(state, ""),
            *([self._describe_last_seen(device)] if state in WHY_AWAY else []),
            *_describe_adapter(health, id_),
        ]
        commands = await self._commands(id_)
        summary += [f"the last command came at {at}: {sentence}" for at, sentence in commands[:1]]
        summary += self._listeners_to(device)
        return "device", summary, [*commands, *await self._states(id_)], None

    def _describe_last_seen(self, device: Device) -> str:
        """Return a sentence with the time of the device's last message since the hub's start, if any."""
        if device.last_seen < started_at(self._hub):
            return "no message has arrived since the hub started"
        return f"its last message arrived at {timestamp(device.last_seen)}"

    async def _runs(self, kind: str, id_: str) -> list[ReportedDecision]:
        """Return the decisions about the executions of this id, including executions before the hub's last start."""
        return [_run(each, self._word_for) for each in await self._hub.history.list_executions(kind, id_, LATEST)]

    async def _commands(self, device_id: str) -> list[ReportedDecision]:
        commands: list[ReportedDecision] = []
        for entry in await self._hub.history.list_commands(LATEST, device_id):
            command = entry["command"]
            value = f" {value_text(rounded(command['value']))}" if "value" in command else ""
            ended = entry["status"] if entry["message"] is None else f"{entry['status']}, {entry['message']}"
            asked = f"{entry['source']} sent {command['capability']} {command['action']}{value}"
            commands.append((entry["recorded_at"], f"{asked}: {ended}"))
        return commands

    async def _states(self, device_id: str) -> list[ReportedDecision]:
        found = await self._hub.history.attributes.list_values(device_id, "state", LATEST, Resolution.RAW)
        return [(timestamp(entry.observed_at), f"it went {entry.value}") for entry in found.entries]

    def _list_off(self) -> Iterator[str]:
        """Yield the reasons why no automations or no scenes are loaded."""
        yield from self._is_safe()
        for kind in ("automations", "scenes"):
            if not self._hub.folders[kind].enabled and (kind == "scenes" or self._hub.safe_mode.reason is None):
                yield f"{kind}.enabled is false in the configuration"

    def _is_safe(self) -> Iterator[str]:
        if self._hub.safe_mode.reason is not None:
            yield self._hub.safe_mode.reason


def _drops_of(health: AdapterHealth, id_: str) -> list[str]:
    """Return a sentence for each dropped value of the device or adapter."""
    what = "" if id_ == health.name else " was dropped"
    return [f"{each.attribute}{what}: {each.reason}" for each in health.dropped if each.device_id == id_]


def _describe_adapter(health: AdapterHealth, id_: str) -> Iterator[str]:
    yield f"its adapter {health.name} is {health.status}" + (f": {health.message}" if health.message else "")
    if health.file_fault is not None and health.file_fault != health.message:
        yield f"the file of its kind has an error: {health.file_fault}"
    if health.file_fault is not None:
        yield HOW_TO_LOAD
    if health.last_success is None:
        yield f"{health.name} has not answered yet"
    else:
        yield f"{health.name} last answered at {timestamp(health.last_success)}"
    yield from _drops_of(health, id_)[:MAX_DECISIONS]
    if id_ == health.name and health.dropped:
        yield f"GET /adapters/{id_} lists all dropped values"


async def _describe_file(catalog: Catalog[Any], source: Source) -> list[str]:
    """Return how the file on disk differs from the loaded version, and why."""
    if catalog.is_refused:
        fault = next((each for each in catalog.rejected if each.file == source.name), catalog.rejected[0])
        return [f"the previous version still runs, because the latest reload failed: {fault}"]
    copies = [
        f"not loaded: {each}"
        for each in catalog.rejected
        if each.message.startswith(f"{source.name} already has the id ")
    ]
    if await catalog.is_outdated(source):
        return [
            f"{source.name} was changed, but the previous version still runs; to load the change, run `lares reload`",
            *copies,
        ]
    return copies


def _describe(view: View, armed: Mapping[str, Any], runs: Sequence[object]) -> Iterator[str]:
    trigger = " or ".join(dict.fromkeys(each.type for each in view.definition.triggers))
    if not view.is_enabled:
        yield "it is switched off" if view.definition.enabled else NOT_YET_ON
    if (paused := armed.get("braked_secs")) is not None:
        yield f"it is paused for {paused:.0f} s more, because it triggered itself too often"
    if armed.get("next_fire") is not None:
        yield f"its trigger ({trigger}) is next due at {armed['next_fire']}"
    elif armed.get("waiting"):
        yield f"its trigger ({trigger}) has begun to match and waits"
    else:
        yield f"it waits for its trigger ({trigger})"
    if not runs:
        yield "nothing has triggered it since the hub started"


def _describe_missed(at: datetime | None) -> Iterator[str]:
    if at is not None:
        yield f"it was due at {timestamp(at)} and did not run: {WHY_MISSED}"


def _run(entry: ExecutionEntry, word_for: Callable[[str], str]) -> ReportedDecision:
    because = (entry.trigger_payload or {}).get("type")
    trigger = "" if because is None else f" ({because})"
    at = timestamp(entry.executed_at)
    if entry.status in (ExecutionStatus.SKIPPED, ExecutionStatus.DROPPED):
        return at, f"did not run{trigger}: {entry.error}"
    others = [each for each in entry.warnings if each.partition(": ")[2] not in (entry.error or "")]
    reached = [word_for(each["target"]) for each in entry.results if each["status"] == "ok"]
    sentences = "; ".join([*(f"{each} ok" for each in reached), *others])
    took = f"{trigger} in {entry.duration_ms} ms" + (f": {sentences}" if sentences else "")
    if entry.status is ExecutionStatus.OK:
        return at, f"ran{took}"
    ended = {ExecutionStatus.CANCELLED: "was cancelled", ExecutionStatus.TIMEOUT: "took too long"}
    return at, f"{ended.get(entry.status, 'failed')}{took}; {entry.error}"
