"""Alarm panels, vacuum cleaners and lawn mowers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from appliance.adapters.mqtt.entities.entity import (
    Entity,
    Intent,
    Offer,
    Update,
    word_parser,
)
from appliance.adapters.mqtt.payloads import parse_object
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value

_ALARM_MODES: Mapping[str, str] = {
    "armed_home": "arm_home",
    "armed_away": "arm_away",
    "armed_night": "arm_night",
    "armed_vacation": "arm_vacation",
    "armed_custom_bypass": "arm_custom_bypass",
    "triggered": "trigger",
}
"""What an alarm panel shows, and what it is asked for."""

_ALARM_STATES = ("disarmed", *_ALARM_MODES, "arming", "disarming", "pending")

_VACUUM: Mapping[str, tuple[str, ...]] = {
    "start": ("cleaning",),
    "pause": ("paused", "idle"),
    "stop": ("idle", "paused"),
    "return_to_base": ("returning", "docked"),
    "clean_spot": ("cleaning",),
    "locate": (),
}
"""What a vacuum cleaner is told, and one of what it shows then."""

_MOWER: Mapping[str, tuple[str, ...]] = {
    "start_mowing": ("mowing",),
    "pause": ("paused",),
    "dock": ("returning", "docked"),
}
"""What a lawn mower is told, and one of what it shows then."""


def _shows_one_of(attribute: str, states: tuple[str, ...]) -> Callable[[Entity], bool]:
    return lambda entity: entity.attributes.get(attribute) in states


class AlarmPanel(Entity):
    """An alarm panel: its custom attribute shows its mode, and is set to one."""

    component_class = "alarm_control_panel"

    def setup(self) -> None:
        """Read the mode; offer those that it supports, all unless it says which."""
        supported = self.config.texts("supported_features", tuple(_ALARM_MODES.values()))
        modes = [mode for mode, feature in _ALARM_MODES.items() if feature in supported]
        self._modes = ["disarmed", *modes]
        self._code = self.config.text("code")
        parse = word_parser(self.custom, {state: state for state in _ALARM_STATES})
        self.read("state_topic", parse, "value_template")
        if not self.can("command"):
            raise Invalid("has no command topic")
        self.use_custom()

    @property
    def custom_offer(self) -> Offer:
        """The modes."""
        return Offer(actions=("set",), schema={"type": "enum", "values": list(self._modes)})

    def write(self, command: Command) -> Intent:
        """The payload of the mode as `action` of the template, with the code where it asks for one."""
        mode = str(command.value)
        feature = "disarm" if mode == "disarmed" else _ALARM_MODES[mode]
        action = self.config.text(f"payload_{feature}", feature.upper())
        code = self._checked_code(command, feature)
        message = self.publish("command", action, action=action, code=code)
        if "state_topic" not in self.config:
            return Intent(messages=(message,))
        begun = (mode, "disarming") if mode == "disarmed" else (mode, "arming", "pending")
        return Intent(messages=(message,), shows={self.custom: mode}, begins=_shows_one_of(self.custom, begun))

    def _checked_code(self, command: Command, feature: str) -> str:
        kind = feature if feature in ("disarm", "trigger") else "arm"
        if not self._code or not self.config.flag(f"code_{kind}_required", True):
            return command.code or ""
        code = self.code_of(command)
        if self._code not in ("REMOTE_CODE", "REMOTE_CODE_TEXT") and code != self._code:
            raise Invalid(f"the code for {command.capability} is wrong")
        return code


class Told(Entity):
    """What shows a word and is told others: its custom attribute is set to one of `orders`."""

    orders: Mapping[str, tuple[str, ...]] = {}

    @property
    def custom_offer(self) -> Offer | None:
        """The orders that it takes."""
        taken = [order for order in self.orders if self.takes(order)]
        return Offer(actions=("set",), schema={"type": "enum", "values": taken}) if taken else None

    def takes(self, order: str) -> bool:
        """Whether this can be told."""
        return self.can(f"{order}_command")

    def intent(self, order: str, name: str, payload: str) -> Intent:
        """The message, done when one of the states of the order is shown; at once where there is no state."""
        message, states = self.publish(name, payload), self.orders[order]
        if not states or not self.readers:
            return Intent(messages=(message,))
        begins = _shows_one_of(self.custom, states)
        return Intent(messages=(message,), shows={self.custom: states[0]}, begins=begins)


class Vacuum(Told):
    """A vacuum cleaner: its state as JSON, its battery and the speed of its fan."""

    component_class = "vacuum"
    orders = _VACUUM
    more_keys = ("battery", "custom.mqtt.fan_speed")

    def setup(self) -> None:
        """Read the state; offer what it supports, all that have a payload unless it says which."""
        usual = ("start", "stop", "return_home", "clean_spot")
        self._features = self.config.texts("supported_features", usual)
        self._speeds = self.config.texts("fan_speed_list")
        self.read("state_topic", self._parse, "value_template")
        self.use_custom()

    def use_custom(self, suffix: str = "") -> None:
        """Offer the fan's speed and free commands beside the orders."""
        super().use_custom(suffix)
        if self._speeds and self.can("set_fan_speed"):
            options: dict[str, Value] = {"type": "enum", "values": list(self._speeds)}
            self.offers["custom.mqtt.fan_speed"] = Offer(actions=("set",), schema=options)
        if self.can("send_command"):
            self.offers["custom.mqtt.send_command"] = Offer(actions=("set",), schema={"type": "string"})

    def takes(self, order: str) -> bool:
        """Whether it supports this."""
        feature = "return_home" if order == "return_to_base" else order
        return self.has_target("command_topic") and feature in self._features

    def _parse(self, text: str) -> Update:
        state = parse_object(text, "a state")
        update: dict[str, Value] = {}
        if isinstance(state.get("state"), str):
            update[self.custom] = state["state"][:100]
        elif "state" in state and state["state"] is None:
            update[self.custom] = None
        if isinstance(state.get("fan_speed"), str):
            update["custom.mqtt.fan_speed"] = state["fan_speed"][:100]
        if isinstance(level := state.get("battery_level"), int | float):
            update["battery"] = min(max(round(level), 0), 100)
        return update

    def write(self, command: Command) -> Intent:
        """The payload of the order, the fan's speed, or any command of its own."""
        if command.capability in ("custom.mqtt.fan_speed", "custom.mqtt.send_command"):
            is_speed = command.capability == "custom.mqtt.fan_speed"
            message = self.publish("set_fan_speed" if is_speed else "send_command", command.value)
            return Intent(messages=(message,), shows={command.capability: command.value} if is_speed else {})
        order = str(command.value)
        return self.intent(order, "command", self.config.text(f"payload_{order}", order))


class LawnMower(Told):
    """A lawn mower: its activity, and a topic for each order."""

    component_class = "lawn_mower"
    orders = _MOWER

    def setup(self) -> None:
        """Read the activity."""
        words = {word: word for word in ("mowing", "paused", "docked", "returning", "error")}
        self.read("activity_state_topic", word_parser(self.custom, words), "activity_value_template")
        self.use_custom()

    def write(self, command: Command) -> Intent:
        """The order at its own topic."""
        return self.intent(str(command.value), f"{command.value}_command", str(command.value))
