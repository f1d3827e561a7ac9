"""Covers, garage doors, doors, and valves: what opens and closes, by steps or all the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from appliance.adapters.mqtt.entities.entity import (
    Entity,
    Intent,
    Offer,
    Update,
    is_unknown,
    parse_number,
    plain_number,
    scaled,
)
from appliance.adapters.mqtt.payloads import Outgoing
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value

_DOORS = {"garage": "garage_door", "gate": "door", "door": "door"}
_PERCENT = (0.0, 100.0)


class Cover(Entity):
    """A cover. `_motion` is the last word about its movement: open, opening, closed, closing or stopped."""

    def setup(self) -> None:
        """Find what is announced: steps, positions, tilt."""
        device_class = self.config.text("device_class")
        self.component_class = "cover"
        self._door = _DOORS.get(device_class, "")
        self._motion = ""
        self._closed, self._open = self.config.number("position_closed", 0), self.config.number("position_open", 100)
        self._tilt = (self.config.number("tilt_min", 0), self.config.number("tilt_max", 100))
        self._states = {
            self.config.text(f"state_{state}", state): state
            for state in ("stopped", "closing", "opening", "closed", "open")
        }
        self._has_position = self.config.topic("position_topic") is not None
        self.read("state_topic", self._take_state, "value_template")
        self.read("position_topic", self._take_position, "position_template")
        self.read("tilt_status_topic", self._take_tilt, "tilt_status_template")
        self._offer()
        if not self.offers and not self.readings:
            raise Invalid("has neither a state topic nor a command topic")

    def _offer(self) -> None:
        steps = self._steps()
        can_set = self.can("set_position_topic", "set_position_template")
        if self._door:
            if steps:
                self.offers[self._door] = Offer(actions=steps)
            if can_set:
                self.offers["cover_position"] = Offer(actions=("set",))
        elif steps or can_set:
            actions = steps or ("open", "close")
            self.offers["cover_position"] = Offer(actions=(*actions, "set") if can_set else actions)
        if self.can("tilt_command_topic", "tilt_command_template"):
            self.offers["cover_tilt"] = Offer(actions=("open", "close", "set"))
        shown = (self._door or "cover_position",) if self.readings or self.offers else ()
        self.claims = tuple(dict.fromkeys((*shown, *self.offers)))

    def _steps(self) -> tuple[str, ...]:
        """The actions that have a payload; an announced null means that there is none."""
        if self.config.target("command_topic") is None:
            return ()
        return tuple(
            action
            for action in ("open", "close", "stop")
            if self.config.raw.get(f"payload_{action}", action) is not None
        )

    def _take_state(self, text: str) -> Update:
        if text == "None":
            return {self._door or "cover_position": None}
        motion = self._states.get(text)
        if motion is None:
            return {}
        self._motion = motion
        if self._door:
            return {self._door: motion if motion != "stopped" else self._where_stopped()}
        if self._has_position or motion not in ("open", "closed"):
            return {}
        return {"cover_position": 100 if motion == "open" else 0}

    def _where_stopped(self) -> str:
        position = self.attributes.get("cover_position")
        return "stopped" if position is None else "closed" if position == 0 else "open"

    def _take_position(self, text: str) -> Update:
        if text == "" or is_unknown(text):
            return {}
        position = min(max(round(scaled(parse_number(text), self._closed, self._open, to=_PERCENT)), 0), 100)
        if self._door and self.config.topic("state_topic") is None:
            return {"cover_position": position, self._door: "closed" if position == 0 else "open"}
        return {"cover_position": position}

    def _take_tilt(self, text: str) -> Update:
        if text == "" or is_unknown(text):
            return {}
        return {"cover_tilt": min(max(round(scaled(parse_number(text), *self._tilt, to=_PERCENT)), 0), 100)}

    def write(self, command: Command) -> Intent:
        """A step is done when the cover begins to move, a stop when it is sent."""
        if command.capability == "cover_tilt":
            return self._write_tilt(command)
        if command.action == "set":
            return Intent(messages=(self._position(command.value),), shows={"cover_position": command.value},
                          begins=self._begins(command.value))  # fmt: skip
        if command.action == "stop":
            return Intent(messages=(self._step("stop"),))
        target = 100 if command.action == "open" else 0
        message = (
            self._position(target) if self.config.target("command_topic") is None else self._step(command.action)
        )
        if not self.readings:
            shows: Update = {self._door: "open" if target else "closed"} if self._door else {"cover_position": target}
            return Intent(messages=(message,), shows=shows)
        return Intent(messages=(message,), shows={"cover_position": target}, begins=self._begins(target))

    def _step(self, action: str) -> Outgoing:
        return self.publish("command_topic", self.config.text(f"payload_{action}", action.upper()))

    def _position(self, percent: int) -> Outgoing:
        raw = plain_number(round(scaled(percent, *_PERCENT, to=(self._closed, self._open))))
        template = self.config.template("set_position_template")
        return self.publish("set_position_topic", str(raw), template, position=raw, position_open=self._open,
                            position_closed=self._closed)  # fmt: skip

    def _write_tilt(self, command: Command) -> Intent:
        percent = command.value if command.action == "set" else 100 if command.action == "open" else 0
        raw = plain_number(round(scaled(percent, *_PERCENT, to=self._tilt)))
        if command.action == "open":
            raw = plain_number(self.config.number("tilt_opened_value", raw))
        elif command.action == "close":
            raw = plain_number(self.config.number("tilt_closed_value", raw))
        template = self.config.template("tilt_command_template")
        message = self.publish("tilt_command_topic", str(raw), template, tilt_position=raw)
        shows = {"cover_tilt": percent} if self.config.topic("tilt_status_topic") else {}
        return Intent(messages=(message,), shows=shows)

    def _begins(self, target: int) -> Callable[[Mapping[str, Value]], bool]:
        """Whether the cover moves, or is where it should be."""
        before = self.attributes.get("cover_position")

        def begins(attributes: Mapping[str, Value]) -> bool:
            position = attributes.get("cover_position")
            if self._motion in ("opening", "closing") or position == target or position != before:
                return True
            return self._motion == ("open" if target == 100 else "closed") and target in (0, 100)

        self._motion = ""
        return begins


class Valve(Entity):
    """A valve: a custom attribute, a percentage where it reports positions, else open or closed."""

    component_class = "valve"

    def setup(self) -> None:
        """Offer positions, or the two ends."""
        self._reports_position = self.config.flag("reports_position")
        self._closed, self._open = self.config.number("position_closed", 0), self.config.number("position_open", 100)
        self._states = {
            self.config.text(f"state_{state}", state): state for state in ("closing", "opening", "closed", "open")
        }
        self.read("state_topic", self._take, "value_template")
        if not self.can("command_topic", "command_template"):
            raise Invalid("has no command topic")
        self.use_custom()

    def use_custom(self, suffix: str = "") -> None:
        """Offer the attribute under its name."""
        self.offers.pop(self.custom, None)
        super().use_custom(suffix)
        schema: dict[str, Value] = {"type": "enum", "values": ["open", "closed"]}
        if self._reports_position:
            schema = {"type": "percentage", "min": 0, "max": 100}
        self.offers[self.custom] = Offer(actions=("set",), schema=schema)

    def _take(self, text: str) -> Update:
        if text == "None":
            return {self.custom: None}
        if text in self._states and not self._reports_position:
            return {self.custom: self._states[text]}
        if not self._reports_position or text in self._states or text == "":
            return {}
        return {
            self.custom: min(max(round(scaled(parse_number(text), self._closed, self._open, to=_PERCENT)), 0), 100)
        }

    def write(self, command: Command) -> Intent:
        """A position, or the payload for open or close."""
        if self._reports_position:
            payload = str(plain_number(round(scaled(command.value, *_PERCENT, to=(self._closed, self._open)))))
        elif command.value == "open":
            payload = self.config.text("payload_open", "OPEN")
        else:
            payload = self.config.text("payload_close", "CLOSE")
        message = self.publish("command_topic", payload, self.config.template("command_template"))
        before, ends = self.attributes.get(self.custom), (command.value,)

        def begins(shown: Mapping[str, Value]) -> bool:
            return shown.get(self.custom) in ends or shown.get(self.custom) != before

        return Intent(messages=(message,), shows={self.custom: command.value}, begins=begins)
