"""Covers, garage doors, doors, and valves: what opens and closes, by steps or all the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from appliance.adapters.mqtt.entities.entity import (
    Entity,
    Intent,
    Offer,
    Update,
    clamped,
    is_unknown,
    number_parser,
    parse_number,
    plain_number,
    scaled,
)
from appliance.adapters.mqtt.payloads import Outgoing, parse_object
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value
from appliance.tables.checks import is_number

_DOORS = {"garage": "garage_door", "gate": "door", "door": "door"}
_PERCENT = (0.0, 100.0)


class Scale:
    """The announced numbers that stand for 0 and 100 percent; the first may be the larger."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def percent(self, raw: float) -> int:
        """The percentage of an announced number, from 0 to 100."""
        return clamped(scaled(raw, self.low, self.high, to=_PERCENT))

    def raw(self, percent: float) -> int | float:
        """The announced number of a percentage."""
        return plain_number(round(scaled(percent, *_PERCENT, to=(self.low, self.high))))


class Cover(Entity):
    """A cover. `motion` is the last state that it announced: open, opening, closed, closing or stopped."""

    component_class = "cover"
    more_keys = ("cover_position", "cover_tilt")
    confirmed_by = dict.fromkeys(("cover_position", "door", "garage_door"), ("state_topic", "position_topic"))

    def setup(self) -> None:
        """Find what is announced: steps, positions, tilt."""
        self._door = _DOORS.get(self.config.text("device_class"), "")
        self._attribute = self._door or "cover_position"
        self.motion = ""
        self._scale = Scale(self.config.number("position_closed", 0), self.config.number("position_open", 100))
        self._tilt = Scale(self.config.number("tilt_min", 0), self.config.number("tilt_max", 100))
        self._states = {
            self.config.text(f"state_{state}", state): state
            for state in ("stopped", "closing", "opening", "closed", "open")
        }
        self._has_position = self.config.topic("position_topic") is not None
        self.read("state_topic", self._parse_state, "value_template")
        self.read("position_topic", self._parse_position, "position_template")
        parse_tilt = number_parser("cover_tilt", self._tilt.percent, ignores_unknown=True)
        self.read("tilt_status_topic", parse_tilt, "tilt_status_template")
        self._offer()

    def _offer(self) -> None:
        steps = self._steps()
        can_set = self.can("set_position")
        if self._door and steps:
            self.offers[self._door] = Offer(actions=steps)
        if can_set or (steps and not self._door):
            actions = () if self._door else steps or ("open", "close")
            self.offers["cover_position"] = Offer(actions=(*actions, "set") if can_set else actions)
        if self.can("tilt_command"):
            stop = ("stop",) if "payload_stop_tilt" in self.config else ()
            self.offers["cover_tilt"] = Offer(actions=("open", "close", *stop, "set"))
        self.claims = tuple(dict.fromkeys((self._attribute, *self.offers)))

    def _steps(self) -> tuple[str, ...]:
        """The actions that have a payload; an announced null means that there is none."""
        if not self.has_target("command_topic"):
            return ()
        return tuple(
            action
            for action in ("open", "close", "stop")
            if self.config.raw.get(f"payload_{action}", action) is not None
        )

    def _parse_state(self, text: str) -> Update:
        if text == "None":
            return {self._attribute: None}
        motion = self._states.get(text)
        if motion is None:
            return {}
        self.motion = motion
        if self._door:
            return {self._door: motion if motion != "stopped" else self._where_stopped()}
        if self._has_position or motion not in ("open", "closed"):
            return {}
        return {"cover_position": 100 if motion == "open" else 0}

    def _where_stopped(self) -> str:
        position = self.attributes.get("cover_position")
        return "stopped" if position is None else "closed" if position == 0 else "open"

    def _parse_position(self, text: str) -> Update:
        if text == "" or is_unknown(text):
            return {}
        if text.startswith("{"):
            return self._parse_both(parse_object(text, "a position"))
        position = self._scale.percent(parse_number(text))
        if self._door and self.config.topic("state_topic") is None:
            return {"cover_position": position, self._door: "closed" if position == 0 else "open"}
        return {"cover_position": position}

    def _parse_both(self, state: Mapping[str, Any]) -> Update:
        """The position and the tilt of one object."""
        position: Any = state.get("position")
        tilt: Any = state.get("tilt_position")
        shown = self._parse_position(str(position)) if is_number(position) else {}
        return {**shown, "cover_tilt": self._tilt.percent(tilt)} if is_number(tilt) else shown

    def write(self, command: Command) -> Intent:
        """A step is done when the cover begins to move, a stop when it is sent."""
        if command.capability == "cover_tilt":
            return self._write_tilt(command)
        if command.action == "stop":
            return Intent(messages=(self._step("stop"),))
        target = {"open": 100, "close": 0, "set": command.value}[command.action]
        if command.action == "set" or not self.has_target("command_topic"):
            message = self._position(target)
        else:
            message = self._step(command.action)
        if command.action != "set" and self.is_assumed(self._attribute):
            state = {"open": "open", "close": "closed"}[command.action]
            return Intent(messages=(message,), shows={self._attribute: state if self._door else target})
        return Intent(messages=(message,), shows={"cover_position": target}, begins=self._begins(target))

    def _step(self, action: str) -> Outgoing:
        return self.publish_with(None, "command_topic", self.config.text(f"payload_{action}", action.upper()))

    def _position(self, percent: int) -> Outgoing:
        raw = self._scale.raw(percent)
        ends = {"position_open": self._scale.high, "position_closed": self._scale.low}
        return self.publish("set_position", raw, position=raw, **ends)

    def _write_tilt(self, command: Command) -> Intent:
        if command.action == "stop":
            return Intent(
                messages=(self.publish_with(None, "tilt_command_topic", self.config.text("payload_stop_tilt")),)
            )
        percent = {"open": 100, "close": 0, "set": command.value}[command.action]
        raw = self._tilt.raw(percent)
        if command.action != "set":
            ending = "opened" if command.action == "open" else "closed"
            raw = plain_number(self.config.number(f"tilt_{ending}_value", raw))
        message = self.publish("tilt_command", raw, tilt_position=raw)
        is_shown = self.config.topic("tilt_status_topic") is not None and not self.config.flag("tilt_optimistic")
        return Intent(messages=(message,), shows={"cover_tilt": percent} if is_shown else {})

    def _begins(self, target: int) -> Callable[[Entity], bool]:
        """Whether the cover moves, or is where it should be."""
        before, said = self.attributes.get("cover_position"), self.motion

        def begins(entity: Entity) -> bool:
            motion = entity.motion if isinstance(entity, Cover) else ""
            if entity is not self and motion == said:
                motion = ""  # a cover that is announced anew is told once more what it said before the command
            if motion in ("opening", "closing") or _has_moved(entity, "cover_position", before, target):
                return True
            return motion == ("open" if target == 100 else "closed") and target in (0, 100)

        self.motion = ""
        return begins


class Valve(Entity):
    """A valve: a custom attribute, a percentage where it reports positions, else open or closed."""

    component_class = "valve"

    def setup(self) -> None:
        """Offer positions, or the two ends."""
        self._reports_position = self.config.flag("reports_position")
        self._scale = Scale(self.config.number("position_closed", 0), self.config.number("position_open", 100))
        self._states = {
            self.config.text(f"state_{state}", state): state for state in ("closing", "opening", "closed", "open")
        }
        self.read("state_topic", self._parse, "value_template")
        if not self.can("command"):
            raise Invalid("has no command topic")
        self.use_custom()

    @property
    def custom_offer(self) -> Offer:
        """A position in percent, or one of the two ends."""
        schema: dict[str, Value] = {"type": "enum", "values": ["open", "closed"]}
        if self._reports_position:
            schema = {"type": "percentage", "min": 0, "max": 100}
        return Offer(actions=("set", "stop") if "payload_stop" in self.config else ("set",), schema=schema)

    def _parse(self, text: str) -> Update:
        if text == "None":
            return {self.custom: None}
        if text.startswith("{"):
            state = parse_object(text, "a state")
            text = str(state.get("position" if self._reports_position else "state", ""))
        if text in self._states:
            return {} if self._reports_position else {self.custom: self._states[text]}
        if not self._reports_position or text == "":
            return {}
        return {self.custom: self._scale.percent(parse_number(text))}

    def write(self, command: Command) -> Intent:
        """A position, or the payload for open, close or stop."""
        if command.action == "stop":
            return Intent(messages=(self.publish("command", self.config.text("payload_stop")),))
        if self._reports_position:
            payload = str(self._scale.raw(command.value))
        else:
            ending = "open" if command.value == "open" else "close"
            payload = self.config.text(f"payload_{ending}", ending.upper())
        message = self.publish("command", payload)
        custom, target = self.custom, command.value
        before = self.attributes.get(custom)
        return Intent(
            messages=(message,),
            shows={custom: target},
            begins=lambda entity: _has_moved(entity, custom, before, target),
        )


def _has_moved(entity: Entity, attribute: str, before: Value, target: Value) -> bool:
    """Whether the attribute is the target or no longer as before; what is unknown has not moved."""
    value = entity.attributes.get(attribute)
    return value is not None and (value == target or value != before)
