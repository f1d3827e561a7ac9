"""Alarm panels, vacuum cleaners, lawn mowers, humidifiers and water heaters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from appliance.adapters.mqtt.entities.climates import in_unit
from appliance.adapters.mqtt.entities.entity import (
    SWITCHABLE,
    Entity,
    Intent,
    Offer,
    Update,
    is_unknown,
    number_parser,
    plain_number,
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


_HEATER_MODES = ("off", "eco", "electric", "gas", "heat_pump", "high_demand", "performance")
"""The modes of a water heater that does not say which it has."""


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


class Regulator(Entity):
    """A humidifier or a water heater: on and off, a mode, a target, and what is measured."""

    def setup(self) -> None:
        """Read and offer what is announced; attributes are those of the component."""
        self.component_class = self.announcement.component
        self._is_heater = self.component_class == "water_heater"
        self._unit = "°F" if self.config.text("temperature_unit", "C").upper().startswith("F") else "°C"
        self._power = "power_command" if self._is_heater else "command"
        self._target = "temperature" if self._is_heater else "target_humidity"
        self._measure()
        self._offer()
        own = ("custom.mqtt.mode", "custom.mqtt.action", "custom.mqtt.target_humidity")
        self.more_keys = own[:1] if self._is_heater else own
        topics = {"current_temperature_topic": "temperature", "temperature_state_topic": "target_temperature"}
        if not self._is_heater:
            topics = {"current_humidity_topic": "humidity", "state_topic": "power"}
        shown = (attribute for topic, attribute in topics.items() if topic in self.config)
        self.claims = tuple(dict.fromkeys((*self.offers, *shown)))

    def _measure(self) -> None:
        payloads = {word: self.config.text(f"payload_{word}", word.upper()) for word in ("on", "off")}
        self._payloads = payloads
        if not self._is_heater:
            words: dict[str, Value] = {payload: word for word, payload in payloads.items()}
            self.read("state_topic", word_parser("power", words), "state_value_template")
            number = self._or_reset("humidity", number_parser("custom.mqtt.target_humidity", plain_number))
            self.read("target_humidity_state_topic", number, "target_humidity_state_template")
        name, unit = ("temperature", self._unit) if self._is_heater else ("humidity", "%")
        if self._is_heater:
            target = number_parser("target_temperature", lambda value: {"value": value, "unit": unit})
            self.read("temperature_state_topic", target, "temperature_state_template", "value_template")
        current = self._or_reset(name, number_parser(name, lambda value: {"value": value, "unit": unit}))
        self.read(f"current_{name}_topic", current, f"current_{name}_template", "value_template")
        for key, topic in (("mode", "mode_state"), ("action", "action")):
            parse = _text_of(f"custom.mqtt.{key}", self.config.texts("modes") if key == "mode" else ())
            self.read(f"{topic}_topic", self._or_reset(key, parse), f"{topic}_template", "value_template")

    def _or_reset(self, name: str, parse: Callable[[str], Update]) -> Callable[[str], Update]:
        """The parser, which takes `payload_reset_<name>` for the word of what is unknown."""
        reset = self.config.text(f"payload_reset_{name}", "None")
        return lambda text: parse("None" if text == reset else text)

    def _offer(self) -> None:
        if self.can(self._power):
            self.offers["power"] = Offer(actions=("on", "off")) if self._is_heater else SWITCHABLE
        modes = self.config.texts("modes", _HEATER_MODES if self._is_heater else ())
        if modes and self.can("mode_command"):
            schema: dict[str, Value] = {"type": "enum", "values": list(modes)}
            self.offers["custom.mqtt.mode"] = Offer(actions=("set",), schema=schema)
        if self.can(f"{self._target}_command"):
            name = "temp" if self._is_heater else "humidity"
            bounds = (
                {"min": (43.3, 110.0), "max": (60.0, 140.0)}
                if self._is_heater
                else {"min": (0, 0), "max": (100, 100)}
            )
            at = 1 if self._unit == "°F" else 0
            limits = {
                key: plain_number(self.config.number(f"{key}_{name}", each[at])) for key, each in bounds.items()
            }
            kind: dict[str, Value] = {"unit": self._unit} if self._is_heater else {"type": "number", "unit": "%"}
            key = "target_temperature" if self._is_heater else "custom.mqtt.target_humidity"
            self.offers[key] = Offer(actions=("set",), schema={**kind, **limits})

    def write(self, command: Command) -> Intent:
        """The message of the property."""
        value = command.value
        if command.capability == "power":
            action = self.toggled(command.action)
            message = self.publish(self._power, self._payloads[action])
            return Intent(messages=(message,), shows={} if self._is_heater else {"power": action})
        if command.capability == "custom.mqtt.mode":
            name, shown = "mode", value
        elif self._is_heater:
            name = "temperature"
            value = in_unit(value["value"], value["unit"], self._unit)
            shown = {"value": value, "unit": self._unit}
        else:
            name, shown = "target_humidity", value
        message = self.publish(f"{name}_command", value, value=value)
        is_shown = f"{name}_state_topic" in self.config
        return Intent(messages=(message,), shows={command.capability: shown} if is_shown else {})


def _text_of(attribute: str, options: tuple[str, ...]) -> Callable[[str], Update]:
    def parse(text: str) -> Update:
        if is_unknown(text) and text not in options:
            return {attribute: None}
        return {attribute: text[:200]} if text else {}

    return parse
