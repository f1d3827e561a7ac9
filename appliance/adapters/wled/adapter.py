"""A WLED strip as devices: the whole strip, and each segment with its own colour and effect.

Protocol: WLED's JSON API, https://kno.wled.ge/interfaces/json-api/, and its WebSocket `/ws`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Any

import orjson

from appliance.adapters.base import AdapterContext, CommandResult
from appliance.adapters.device_http import HttpClient
from appliance.adapters.polling import PollingAdapter
from appliance.errors import BadAnswer, Invalid
from appliance.home.commands import Command, CommandSpec, check_offered
from appliance.home.model import DeviceKind, Info, Observation, Report
from appliance.home.values import Value
from appliance.tables.checks import integer, shown

EFFECT = "custom.wled.effect"
SILENCE_SECS, MAX_FADE_SECS = 20.0, 65.5
"""Seconds before a ping is sent over the WebSocket, and of the longest fade that WLED takes."""

MALFORMED = (AttributeError, Invalid, KeyError, TypeError, ValueError, IndexError, OverflowError)

_NOWHERE = (0, -1)
"""Where a segment ends that has been removed."""

WHOLE = (
    CommandSpec(capability="brightness", actions=("set",), min=1, max=100),
    CommandSpec(capability="power", actions=("on", "off", "toggle")),
)
SEGMENT = (CommandSpec(capability="color_rgb", actions=("set",)), *WHOLE)

log = logging.getLogger("adapters")

_CHANGES: Mapping[tuple[str, str], Callable[[Any, tuple[str, ...]], dict[str, Any]]] = {
    ("power", "on"): lambda _, effects: {"on": True},
    ("power", "off"): lambda _, effects: {"on": False},
    ("power", "toggle"): lambda _, effects: {"on": "t"},
    ("brightness", "set"): lambda percent, effects: {"bri": max(1, round(percent * 255 / 100))},
    ("color_rgb", "set"): lambda rgb, effects: {"col": [[rgb["r"], rgb["g"], rgb["b"]]]},
    (EFFECT, "set"): lambda name, effects: {"fx": effects.index(name)},
}
"""What each command writes."""


class WledAdapter(PollingAdapter):
    """One WLED controller: `<name>:light`, and `<name>:segment:<id>` for each segment."""

    def __init__(self, context: AdapterContext, http: HttpClient, poll_interval: float) -> None:
        super().__init__(context, http, poll_interval)
        self._effects: tuple[str, ...] = ()
        self._info: Mapping[str, Any] = {}
        self._segments_known_by: object = None
        self._segments: tuple[Observation, ...] = ()
        self._is_unreadable = False

    async def poll(self) -> Report:
        """The strip as it describes itself."""
        found = await self.http.request_json("GET", "/json")
        return self._report(found, found.get("effects") if isinstance(found, dict) else None)

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Write the change, and compare it with the state that the strip answers."""
        if not self._effects:
            await self.poll()
        is_whole = device_id == f"{self.name}:light"
        check_offered(device_id, WHOLE if is_whole else _segment_commands(self._effects), command)
        change = _CHANGES[command.capability, command.action](command.value, self._effects)
        body: dict[str, Any] = change if is_whole else {"seg": [{"id": int(device_id.rpartition(":")[2]), **change}]}
        if command.transition_secs is not None:
            body["tt"] = round(min(command.transition_secs, MAX_FADE_SECS) * 10)
        repeat = command.action != "toggle"
        answer = await self.http.request_json("POST", "/json/state", json={**body, "v": True}, repeat=repeat)
        report = self._report({"state": answer, "info": self._info}, self._effects)
        return CommandResult(report=report, error=_mismatch(report, device_id, command))

    def open_push(self) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        """The strip's WebSocket, which sends the state when it opens and whenever it changes."""
        return self.http.messages("/ws", silence_secs=SILENCE_SECS)

    def receive(self, message: Any) -> None:
        """Publish the state, once a poll has read the names of the effects."""
        if self._effects:
            self.publish.report(self._report(message, self._effects))
            self.publish.answered()

    def _report(self, answer: Any, effects: Any) -> Report:
        """The strip and its segments, from an object of state and info; raises `BadAnswer`."""
        try:
            state, info = answer["state"], answer["info"]
            if state.keys().isdisjoint(("on", "bri", "seg")):
                raise KeyError("on")
            self._info = {**info}
            listed = orjson.dumps(state.get("seg"))
        except MALFORMED:
            raise BadAnswer(f"{self.http.address} answered with something that is not WLED's") from None
        if effects is not self._effects:
            self._effects = tuple(map(str, effects)) if isinstance(effects, list | tuple) else ()
        seen = (self._whole(state), *self._all_segments(listed, state.get("seg")))
        return Report(adapter=self.name, present=frozenset([each.device_id for each in seen]), observations=seen)

    def _whole(self, state: Mapping[str, Any]) -> Observation:
        facts, (attributes, wrong) = self._info, _light(state)
        info = Info(
            manufacturer="WLED", model=facts.get("product"), firmware=facts.get("ver"), serial=facts.get("mac")
        )
        return Observation(
            device_id=f"{self.name}:light",
            kind=DeviceKind.LIGHT,
            attributes=attributes,
            wrong=wrong if isinstance(state.get("seg", []), list) else {**wrong, "seg": "seg is no list"},
            name=facts.get("name"),
            info=info,
            commands=WHOLE,
        )

    def _all_segments(self, listed: bytes, segments: Any) -> tuple[Observation, ...]:
        """The segments; most pushes change the strip as a whole, and list them as they were."""
        known_by = (listed, self._effects, self._info.get("name"))
        if known_by != self._segments_known_by:
            self._segments_known_by, self._segments = known_by, tuple(self._read_segments(segments))
        return self._segments

    def _read_segments(self, listed: Any) -> Iterator[Observation]:
        """Those of the list that have a number and a length."""
        for segment in listed if isinstance(listed, list) else ():
            try:
                number = integer(segment["id"], 0)
                if segment.get("stop") not in _NOWHERE:
                    yield self._segment(number, segment)
            except MALFORMED as fault:
                if not self._is_unreadable:
                    log.warning("%s: a segment cannot be read (%s: %s)", self.name, type(fault).__name__, fault)
                self._is_unreadable = True

    def _segment(self, number: int, segment: Mapping[str, Any]) -> Observation:
        attributes, wrong = _light(segment)
        try:
            attributes["color_rgb"] = dict(zip("rgb", segment["col"][0], strict=False))
        except MALFORMED:
            wrong["color_rgb"] = f"col must be a list of colours, not {shown(segment.get('col'))}"
        effect = segment.get("fx")
        if type(effect) is int and 0 <= effect < len(self._effects):
            attributes[EFFECT] = self._effects[effect]
        return Observation(
            device_id=f"{self.name}:segment:{number}",
            kind=DeviceKind.LIGHT,
            attributes=attributes,
            wrong=wrong,
            name=segment.get("n") or f"{self._info.get('name') or self.name} {number + 1}",
            info=Info(manufacturer="WLED", parent_id=f"{self.name}:light"),
            commands=_segment_commands(self._effects),
        )


@lru_cache(maxsize=32)
def _segment_commands(effects: tuple[str, ...]) -> tuple[CommandSpec, ...]:
    names = dict.fromkeys(each for each in effects if each not in ("RSVD", "-"))
    return (*SEGMENT, CommandSpec(capability=EFFECT, actions=("set",), type="enum", values=tuple(names)))


def _light(part: Mapping[str, Any]) -> tuple[dict[str, Value], dict[str, str]]:
    """Power and brightness, and what is wrong with them, by attribute."""
    attributes: dict[str, Value] = {}
    wrong: dict[str, str] = {}
    if isinstance(part.get("on", True), bool):
        attributes["power"] = "on" if part.get("on", True) else "off"
    else:
        wrong["power"] = f"on must be true or false, not {shown(part['on'])}"
    try:
        level = integer(part["bri"], 0, 255)
        attributes["brightness"] = round(level * 100 / 255) or int(level > 0)
    except KeyError:
        pass
    except Invalid as fault:
        wrong["brightness"] = f"bri {fault}"
    return attributes, wrong


def _mismatch(report: Report, device_id: str, command: Command) -> str | None:
    """What the device shows instead of the command's value, as a sentence; None where it shows that."""
    seen = next((each for each in report.observations if each.device_id == device_id), None)
    if seen is None:
        return f"{device_id} is not there any more, or cannot be read"
    asked, read = command.value or command.action, seen.attributes.get(command.capability)
    if command.action == "toggle" or asked == read:
        return None
    return f"{device_id} was told {command.capability} {shown(asked)} but shows {shown(read)}"


build = WledAdapter.of
"""Makes the adapter of a section."""
