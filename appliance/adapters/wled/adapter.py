"""A WLED strip. One device represents the whole strip, and one device represents each segment with its colour and
effect.

The adapter uses WLED's JSON API, https://kno.wled.ge/interfaces/json-api/, and its WebSocket `/ws`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from itertools import accumulate
from typing import Any

from appliance.adapters.base import CommandResult
from appliance.adapters.confirmation import ExpectedState, attributes_in
from appliance.adapters.polling import PollingAdapter
from appliance.errors import BadAnswer, Invalid, Unanswered, Unreadable
from appliance.home.command_specs import CommandSpec, check_offered
from appliance.home.commands import Command
from appliance.home.model import DeviceKind, Info, Observation, Report
from appliance.home.values import Value, level_of, percent_of
from appliance.tables.checks import format_value, integer

EFFECT = "custom.wled.effect"
SILENCE_SECS, MAX_FADE_SECS = 20.0, 65.5
"""Seconds without a message after which a WebSocket is pinged, and the length of WLED's longest fade in seconds."""

MAX_EFFECTS, MAX_EFFECT_CHARS = 256, 8192
"""Limits for the effects of a strip: their number, which is WLED's own limit, and the characters of all names. Each
segment offers all effects."""

MALFORMED = (AttributeError, Invalid, KeyError, TypeError, ValueError, IndexError, OverflowError)

_REMOVED_STOPS = (0, -1)
"""If `stop` has one of these values, the segment has been removed."""

BRIGHTNESS = CommandSpec(capability="brightness", actions=("set",), min=1, max=100)
COLOR = CommandSpec(capability="color_rgb", actions=("set",))
POWER = CommandSpec(capability="power", actions=("on", "off", "toggle"))
WHOLE = (BRIGHTNESS, POWER)
SEGMENT = (BRIGHTNESS, COLOR, POWER)

log = logging.getLogger("adapters")

_CHANGES: Mapping[tuple[str, str], Callable[[Any, tuple[str, ...]], dict[str, Any]]] = {
    ("power", "on"): lambda _, effects: {"on": True},
    ("power", "off"): lambda _, effects: {"on": False},
    ("power", "toggle"): lambda _, effects: {"on": "t"},
    ("brightness", "set"): lambda percent, effects: {"bri": level_of(percent, 255)},
    ("color_rgb", "set"): lambda rgb, effects: {"col": [[rgb["r"], rgb["g"], rgb["b"]]]},
    (EFFECT, "set"): lambda name, effects: {"fx": effects.index(name)},
}
"""Maps each command to a function that converts the command's value to the change."""


class WledAdapter(PollingAdapter):
    """Polls and commands one WLED controller. The devices are `<name>:light`, and `<name>:segment:<id>` for each
    segment."""

    has_push = True
    _effects: tuple[str, ...] | None = None
    """The names of the effects. None before the first poll."""
    _segment_commands: tuple[CommandSpec, ...] = SEGMENT
    _info: Mapping[str, Any] = {}
    """The last `info` of the strip."""
    _is_unreadable = False
    _has_too_many_effects = False

    async def poll(self) -> Report:
        """Read the state, the names of the effects, and the strip's name and model."""
        found = await self.http.request_json("GET", "/json")
        state = self._read(found)
        effects = found.get("effects")
        self._effects = self._first_effects(effects) if isinstance(effects, list) else ()
        self._segment_commands = _commands_of(self._effects)
        return self._report(state)

    def _first_effects(self, listed: list[Any]) -> tuple[str, ...]:
        """Return the names of the first effects within the limits. Log once if there are more."""
        names = [*map(str, listed[:MAX_EFFECTS])]
        sizes = accumulate(map(len, names))
        first = tuple(name for name, size in zip(names, sizes, strict=True) if size <= MAX_EFFECT_CHARS)
        if len(first) < len(listed) and not self._has_too_many_effects:
            log.warning(
                "%s: the strip reports %d effects; only the first %d are used", self.name, len(listed), len(first)
            )
            self._has_too_many_effects = True
        return first

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Read the state, write the change, and compare the response with the change. If the response differs, read
        the state again."""
        began = self.clock.monotonic()
        before = await (self.poll() if self._effects is None else self.poll_state())
        is_whole = device_id == f"{self.name}:light"
        command = check_offered(device_id, WHOLE if is_whole else self._segment_commands, command)
        expected = ExpectedState(command, (), attributes_in(before, device_id))
        body = self._body_of(device_id, command, before)
        if command.transition_secs is not None:
            body["tt"] = round(min(command.transition_secs, MAX_FADE_SECS) * 10)
        # an unreadable response does not show the result, so the state is read below
        with suppress(Unreadable, Unanswered):
            answer = await self.http.request_json(
                "POST", "/json/state", json={**body, "v": True}, repeat=command.can_repeat
            )
            report = self._report(self._read({"state": answer}))
            if expected.is_shown(attributes_in(report, device_id)):
                return CommandResult(report=report)
        return await self.confirm(device_id, expected, began)

    def _body_of(self, device_id: str, command: Command, before: Report) -> dict[str, Any]:
        """Return the change to write. If a segment is switched on while the strip is off, also switch on the
        strip."""
        change = _CHANGES[command.capability, command.action](command.value, self._effects or ())
        if device_id == f"{self.name}:light":
            return change
        if not any(each.device_id == device_id for each in before.observations):
            raise BadAnswer(f"{device_id} no longer exists, or cannot be read")
        strip: dict[str, Any] = {}
        is_dark = attributes_in(before, f"{self.name}:light").get("power") == "off"
        if is_dark and (command.capability, command.action) != ("power", "off"):
            strip, change = {"on": True}, {**change, "on": True}
        return {**strip, "seg": [{"id": int(device_id.rpartition(":")[2]), **change}]}

    async def poll_state(self) -> Report:
        """Read the state without the names of the effects."""
        return self._report(self._read({"state": await self.http.request_json("GET", "/json/state")}))

    def open_push(self) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        """Open the strip's WebSocket. The strip sends its state at once, and after each change."""
        return self.http.messages("/ws", silence_secs=SILENCE_SECS)

    def receive(self, message: Any) -> None:
        """Publish the strip, then its segments. Messages before the first poll are ignored, because the names of the
        effects are unknown."""
        state = self._read(message)
        if self._effects is not None:
            whole = self._whole(state)
            self.publish.device(whole)  # clients get the strip's state before the segments are converted
            segments, present = self._segments(state, whole)
            self.publish.report(Report(adapter=self.name, present=present, observations=segments))

    def _read(self, answer: Any) -> Mapping[str, Any]:
        """Return the state in an answer, and keep the answer's `info`. Raise `Unreadable` on failure."""
        state = answer.get("state") if isinstance(answer, dict) else None
        if not isinstance(state, dict) or state.keys().isdisjoint(("on", "bri", "seg")):
            raise Unreadable(f"{self.http.address} is not a WLED device, or sent a malformed answer")
        if isinstance(info := answer.get("info"), dict):
            self._info = info
        return state

    def _report(self, state: Mapping[str, Any]) -> Report:
        """Convert a state to the strip and its segments."""
        whole = self._whole(state)
        segments, present = self._segments(state, whole)
        return Report(adapter=self.name, present=present, observations=(whole, *segments))

    def _whole(self, state: Mapping[str, Any]) -> Observation:
        attributes, wrong = _light(state)
        if "on" not in state:  # only segments of older versions are on without this field
            del attributes["power"]
        if not isinstance(state.get("seg", []), list):
            wrong["seg"] = "the field seg must be a list"
        return Observation(
            device_id=f"{self.name}:light",
            kind=DeviceKind.LIGHT,
            attributes=attributes,
            wrong=wrong,
            name=self._info.get("name"),
            info=Info(
                manufacturer="WLED",
                model=self._info.get("product"),
                firmware=self._info.get("ver"),
                serial=self._info.get("mac"),
            ),
            commands=WHOLE,
        )

    def _segments(
        self, state: Mapping[str, Any], whole: Observation
    ) -> tuple[tuple[Observation, ...], frozenset[str] | None]:
        """Return the segments, and the ids of all devices. If a segment is unreadable, its id is unknown: return None
        instead of the ids, so that no device is removed."""
        segments: list[Observation] = []
        is_complete = "seg" not in whole.wrong
        listed, is_dark = state.get("seg"), whole.attributes.get("power") == "off"
        for segment in self.first_parts(listed) if isinstance(listed, list) else ():
            try:
                if segment.get("stop") not in _REMOVED_STOPS:
                    segments.append(self._segment(integer(segment["id"], 0), segment, is_dark=is_dark))
            except MALFORMED as fault:
                is_complete = False
                if not self._is_unreadable:
                    log.warning("%s: a segment cannot be read (%s: %s)", self.name, type(fault).__name__, fault)
                self._is_unreadable = True
        ids = frozenset([whole.device_id, *[each.device_id for each in segments]])
        return tuple(segments), ids if is_complete else None

    def _segment(self, number: int, segment: Mapping[str, Any], *, is_dark: bool) -> Observation:
        attributes, wrong = _light(segment)
        if is_dark and "power" in attributes:
            attributes["power"] = "off"
        try:
            attributes["color_rgb"] = dict(zip("rgb", segment["col"][0], strict=False))
        except MALFORMED:
            wrong["color_rgb"] = f"the field col must be a list of colours, not {format_value(segment.get('col'))}"
        effect = segment.get("fx")
        effects = self._effects or ()
        if type(effect) is int and 0 <= effect < len(effects):
            attributes[EFFECT] = effects[effect]
        return Observation(
            device_id=f"{self.name}:segment:{number}",
            kind=DeviceKind.LIGHT,
            attributes=attributes,
            wrong=wrong,
            name=segment.get("n") or f"{self._info.get('name') or self.name} {number + 1}",
            info=Info(manufacturer="WLED", parent_id=f"{self.name}:light"),
            commands=self._segment_commands,
        )


def _commands_of(effects: tuple[str, ...]) -> tuple[CommandSpec, ...]:
    names = dict.fromkeys(each for each in effects if each not in ("RSVD", "-"))
    if not names:
        return SEGMENT
    effect = CommandSpec(capability=EFFECT, actions=("set",), type="enum", values=tuple(names))
    return (BRIGHTNESS, COLOR, effect, POWER)  # sorted by capability, as the registry stores them


def _light(part: Mapping[str, Any]) -> tuple[dict[str, Value], dict[str, str]]:
    """Return power and brightness, and the faults by attribute."""
    attributes: dict[str, Value] = {}
    wrong: dict[str, str] = {}
    is_on = part.get("on", True)
    if isinstance(is_on, bool):
        attributes["power"] = "on" if is_on else "off"
    else:
        wrong["power"] = f"the field on must be true or false, not {format_value(is_on)}"
    try:
        attributes["brightness"] = percent_of(integer(part["bri"], 0, 255), 255)
    except KeyError:
        pass
    except Invalid as fault:
        wrong["brightness"] = f"bri {fault}"
    return attributes, wrong


build = WledAdapter.of
