"""Covers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from appliance.adapters.mqtt.home_assistant_classes import COVERS
from appliance.adapters.mqtt.messages import parse_object
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.numbers import Scale, number_parser, plain_number, read_number
from appliance.adapters.mqtt.platforms.payloads import (
    UnknownValue,
    UnknownWord,
    Update,
    one_of,
    read_parts,
    read_word,
)
from appliance.home.commands import Command
from appliance.home.values import Value


class Cover(Entity):
    """A cover, garage door, or door. `motion` is the last reported state: open, opening, closed, closing, or stopped.

    A command to open or close is complete when the cover begins to move. A stop command is complete when it is sent.
    """

    def setup(self) -> None:
        self._door = COVERS.get(self.config.text("device_class"), "")
        self._attribute = self._door or "cover_position"
        self.motion = ""
        self._scale = Scale(self.config.number("position_closed", 0), self.config.number("position_open", 100))
        self._tilt = Scale(self.config.number("tilt_min", 0), self.config.number("tilt_max", 100))
        self._states = {
            self.config.text(f"state_{state}", state): state
            for state in ("stopped", "closing", "opening", "closed", "open")
        }
        self._has_position = self.config.topic("position_topic") is not None
        shown = ("cover_position", self._attribute)
        self.add_reader("state_topic", Cover._parse_state, "value_template", reports=shown)
        self.add_reader("position_topic", Cover._parse_position, "position_template", reports=shown)
        self._read_tilt = partial(self._tilt.read, attribute="cover_tilt")
        parse_tilt = number_parser("cover_tilt", self._read_tilt)
        self.add_reader("tilt_status_topic", parse_tilt, "tilt_status_template", reports=("cover_tilt",))
        steps, can_set = self._steps(), self.can("set_position")
        if self._door and steps:
            self.add_offer(self._door, steps, Cover._write)
        if can_set or (steps and not self._door):
            actions = () if self._door else steps or ("open", "close")
            self.add_offer("cover_position", (*actions, "set") if can_set else actions, Cover._write)
        if self.can("tilt_command"):
            stop = ("stop",) if "payload_stop_tilt" in self.config else ()
            self.add_offer("cover_tilt", ("open", "close", *stop, "set"), Cover._write_tilt)
        self.claims = tuple(dict.fromkeys((self._attribute, *self.offers)))

    def _steps(self) -> tuple[str, ...]:
        """Return the actions with a payload. A payload of null disables an action."""
        if not self.has_target("command_topic"):
            return ()
        actions = ("open", "close", "stop")
        return tuple(each for each in actions if self.config.raw.get(f"payload_{each}", each) is not None)

    def _parse_state(self, text: str) -> Update:
        is_motion_only = self._has_position and not self._door
        try:
            found = read_word(text, self._states, self._attribute)
        except UnknownValue as fault:
            self.motion = ""
            if is_motion_only:
                raise UnknownWord(fault.text, one_of(self._states), self._attribute) from None
            raise
        motion = found.get(self._attribute)
        if not isinstance(motion, str):
            self.motion = "" if found else self.motion
            return {} if is_motion_only else found
        before, self.motion = self.motion, motion
        if self._door:
            return {self._door: motion if motion != "stopped" else self._where_stopped()}
        if is_motion_only:
            return {}
        if motion == "stopped" and before in ("opening", "closing"):
            return {"cover_position": None}  # the cover can be anywhere between open and closed
        return {"cover_position": 100 if motion == "open" else 0} if motion in ("open", "closed") else {}

    def _where_stopped(self) -> str:
        position = self.attributes.get("cover_position")
        return "stopped" if position is None else "closed" if position == 0 else "open"

    def _parse_position(self, text: str) -> Update:
        """Parse a position, or an object with position and tilt."""
        if text.startswith("{"):
            state = parse_object(text, "the position")
            position, tilt = (str(state.get(key, "")) for key in ("position", "tilt_position"))
            return read_parts(
                lambda: self._parse_position(position), lambda: read_number(tilt, "cover_tilt", self._read_tilt)
            )
        is_door = self._door and (self.config.topic("state_topic") is None or self.motion == "stopped")
        door: Update = {self._door: None} if is_door else {}
        try:
            found = read_number(text, "cover_position", partial(self._scale.read, attribute="cover_position"))
        except UnknownValue as fault:
            fault.update = {**fault.update, **door}
            raise
        if is_door and found:
            percent = found["cover_position"]
            door = {self._door: None if percent is None else "open" if percent else "closed"}
        return {**found, **door} if found else {}

    def _write(self, command: Command) -> Intent:
        if command.action == "stop":
            return self._step("stop")
        target = {"open": 100, "close": 0, "set": command.value}[command.action]
        if command.action == "set" or not self.has_target("command_topic"):
            raw = self._scale.raw(target)
            intent = self.intent("set_position", raw, position=raw, position_open=self._scale.high,
                                 position_closed=self._scale.low)  # fmt: skip
        else:
            intent = self._step(command.action)
        if command.action == "set":
            shows: Update = {"cover_position": target}
        else:
            state = {"open": "open", "close": "closed"}[command.action]
            shows = {self._attribute: state if self._door else target}
        if command.action != "set" and self.is_assumed(self._attribute):
            return replace(intent, shows=shows)
        begins = self._begins(target)
        self.motion = ""  # only a motion that is reported after the command confirms the command
        return replace(intent, shows=shows, begins=begins)

    def _step(self, action: str) -> Intent:
        own = f"_{action}_topic"
        topic = own if self.has_target(own) else "command_topic"
        return Intent(messages=(self.publish_with(None, topic, self.payload(action)),))

    def _write_tilt(self, command: Command) -> Intent:
        if command.action == "stop":
            payload = self.config.text("payload_stop_tilt")
            return Intent(messages=(self.publish_with(None, "tilt_command_topic", payload),))
        percent = {"open": 100, "close": 0, "set": command.value}[command.action]
        raw = self._tilt.raw(percent)
        if command.action != "set":
            ending = "opened" if command.action == "open" else "closed"
            raw = plain_number(self.config.number(f"tilt_{ending}_value", raw))
        is_shown = self.config.topic("tilt_status_topic") is not None and not self.config.flag("tilt_optimistic")
        shown = {"cover_tilt": self._tilt.percent(raw)} if is_shown else {}
        return self.intent("tilt_command", raw, shown, tilt_position=raw)

    def _begins(self, target: int) -> Callable[[Entity], bool]:
        """Return a function that checks whether the cover moves or has reached the target."""
        before, motion_before = self.attributes.get("cover_position"), self.motion
        end = {0: "closed", 100: "open"}.get(target)
        ways: tuple[str, ...] = ("opening", "closing")
        if target in (0, 100) or (isinstance(before, int) and before != target):
            opens = target == 100 or (isinstance(before, int) and before < target)
            ways = ("opening",) if opens else ("closing",)

        def begins(entity: Entity) -> bool:
            motion = entity.motion if isinstance(entity, Cover) else ""
            if entity is not self and motion == motion_before:
                motion = ""  # the new entity object still has the old motion
            if motion in ways or has_moved(entity, "cover_position", before, target):
                return True
            if before is None and self._door and entity.attributes.get(self._door) == end:
                return True  # a door that is already open or closed reports nothing new
            return motion == end

        return begins


_MOTIONS = {"open": "opening", "closed": "closing"}


def has_moved(entity: Entity, attribute: str, before: Value, target: Value) -> bool:
    """Return whether the attribute has the target value, or has changed towards it. An unknown value does not confirm
    a movement."""
    value = entity.attributes.get(attribute)
    if isinstance(value, int) and isinstance(before, int) and isinstance(target, int):
        return value == target or (value - before) * (target - before) > 0
    if isinstance(target, str):
        return value in (target, _MOTIONS.get(target))
    return value is not None and (value == target or value != before)
