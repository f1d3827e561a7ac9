"""Heating, cooling and humidity: a topic for each property."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from appliance.adapters.mqtt.entities.entity import (
    SWITCHED,
    Entity,
    Intent,
    Update,
    is_unknown,
    number_parser,
    plain_number,
)
from appliance.errors import Invalid
from appliance.home.capabilities import CAPABILITIES
from appliance.home.commands import Command
from appliance.home.values import Value

_MODES = CAPABILITIES["hvac_mode"].values
_ACTIONS = {
    "off": "off", "heating": "heating", "cooling": "cooling", "drying": "dry", "idle": "idle", "fan": "fan_only",
    "preheating": "heating", "defrosting": "idle",
}  # fmt: skip
"""`hvac_state` by the words of Home Assistant's `action_topic`."""

_WORDS = {
    "fan_mode": "fan_mode",
    "swing_mode": "swing_mode",
    "preset_mode": "preset_mode",
    "custom.mqtt.swing_horizontal_mode": "swing_horizontal_mode",
}
"""Attributes that are words, and how the announcement calls them."""

_DEFAULT_RANGE = {"°C": (7, 35), "°F": (44.6, 95)}
"""The temperatures that can be set where the announcement states no bounds, as in Home Assistant."""

_HEATER_RANGE = {"°C": (43.3, 60.0), "°F": (110.0, 140.0)}
"""The same of a water heater."""

_HEATER_MODES = ("off", "eco", "electric", "gas", "heat_pump", "high_demand", "performance")
"""The modes of a water heater that does not say which it has."""


class Regulated(Entity):
    """What has a measurement, a target and modes: each a property at topics of its own."""

    def setup(self) -> None:
        self.unit = "°F" if self.config.text("temperature_unit", "C").upper().startswith("F") else "°C"

    def add_power(self) -> None:
        """Offer to switch it on and off, which is not shown."""
        if self.can("power_command"):
            self.offer("power", ("on", "off"), lambda each: self.intent("power_command", self.payload(each.action)))

    def add_temperature(self, schema: Mapping[str, Value]) -> None:
        """Read the target, and offer to set it in either unit."""
        key, measure = "target_temperature", measured_in(self.unit)
        self.add(key, "temperature", number_parser(key, measure), {"unit": self.unit, **schema},
                 to_shown=measure,
                 to_payload=lambda value: in_unit(value["value"], value["unit"], self.unit))  # fmt: skip

    def range_of(self, name: str, low: float, high: float) -> dict[str, Value]:
        """The range of a target, `min_<name>` to `max_<name>`, as it is announced or by default."""
        low, high = self.config.bounds(f"min_{name}", f"max_{name}", low, high)
        return {"min": plain_number(low), "max": plain_number(high)}

    def add_modes(self, modes: tuple[str, ...]) -> None:
        """Read the mode and what it does now, and offer to set the mode where any is known."""
        key, action = "custom.mqtt.mode", "custom.mqtt.action"
        parse = self.or_reset("mode", _text_of(key, self.config.texts("modes")))
        self.add(key, "mode", parse, {"type": "enum", "values": list(modes)} if modes else None)
        parse = self.or_reset("action", _text_of(action, ()))
        self.read("action_topic", parse, "action_template", "value_template", shows=(action,))

    def add_current(self, name: str, unit: str) -> None:
        """Read a measurement."""
        parse = self.or_reset(name, number_parser(name, measured_in(unit)))
        self.read(f"current_{name}_topic", parse, f"current_{name}_template", "value_template", shows=(name,))

    def or_reset(self, name: str, parse: Callable[[str], Update]) -> Callable[[str], Update]:
        """The parser, which takes `payload_reset_<name>` for the word of what is unknown."""
        reset = self.config.text(f"payload_reset_{name}", "None")
        return lambda text: parse("None" if text == reset else text)

    def claim_shown(self, topics: Mapping[str, str]) -> None:
        """Claim what can be commanded, and the attributes of those topics that are announced."""
        shown = (attribute for attribute, topic in topics.items() if topic in self.config)
        self.claims = tuple(dict.fromkeys((*self.offers, *shown)))


class Climate(Regulated):
    """A thermostat or an air conditioner."""

    def setup(self) -> None:
        super().setup()
        self.add_current("temperature", self.unit)
        self.add_current("humidity", "%")
        self.read("action_topic", self.words(_ACTIONS, "hvac_state"), "action_template", "value_template")
        for key, name in _WORDS.items():
            parse = _text_parser(key, self.config.texts(f"{name}s"))
            self.add(key, name, parse, self._options(name))
        self.add_power()
        step = {"step": plain_number(each)} if (each := self.config.number("temp_step", 0)) > 0 else {}
        temperatures = {**self.range_of("temp", *_DEFAULT_RANGE[self.unit]), **step}
        self.add_temperature(temperatures)
        for end in ("low", "high"):
            key = f"custom.mqtt.target_temperature_{end}"
            self.add(key, f"temperature_{end}", number_parser(key), {"type": "number", **temperatures})
        key, humidities = "custom.mqtt.target_humidity", self.range_of("humidity", 30, 99)
        schema: dict[str, Value] = {"type": "number", "unit": "%", **humidities}
        self.add(key, "target_humidity", number_parser(key), schema)
        modes: list[Value] = [mode for mode in self.config.texts("modes", _MODES) if mode in _MODES]
        self.add("hvac_mode", "mode", self._parse_mode, {"values": modes})
        self.claim_shown({"temperature": "current_temperature_topic", "humidity": "current_humidity_topic",
                          "hvac_mode": "mode_state_topic", "hvac_state": "action_topic"})  # fmt: skip

    def _parse_mode(self, text: str) -> Update:
        if text not in (*_MODES, "None", ""):
            raise Invalid(f"the mode {text[:40]!r} is not one of {', '.join(_MODES)}")
        return self.words({mode: mode for mode in _MODES}, "hvac_mode")(text)

    def _options(self, name: str) -> dict[str, Value]:
        options: list[Value] = [*self.config.texts(f"{name}s")]
        if name == "swing_horizontal_mode":
            return {"type": "enum", "values": options} if options else {"type": "string"}
        return {"values": [*options, "none"] if name == "preset_mode" else options} if options else {}


class Humidifier(Regulated):
    """A humidifier: on and off, a mode, a target, and what is measured."""

    def setup(self) -> None:
        words = {self.payload(power): power for power in ("on", "off")}
        self.read("state_topic", self.words(words, "power"), "state_value_template", shows=("power",))
        key, schema = "custom.mqtt.target_humidity", self.range_of("humidity", 0, 100)
        parse = self.or_reset("humidity", number_parser(key, plain_number))
        self.add(key, "target_humidity", parse, {"type": "number", "unit": "%", **schema})
        self.add_current("humidity", "%")
        self.add_modes(self.config.texts("modes"))
        if self.can("command"):  # the first that is offered stands for the entity: its target, or its mode
            self.offer("power", SWITCHED, self._switch)
        self.claim_shown({"humidity": "current_humidity_topic", "power": "state_topic"})

    def _switch(self, command: Command) -> Intent:
        power = self.toggled(command.action)
        return self.intent("command", self.payload(power), {"power": power})


class WaterHeater(Regulated):
    """A water heater: on and off, which is not shown, a mode, a target, and what is measured."""

    def setup(self) -> None:
        super().setup()
        self.add_temperature(self.range_of("temp", *_HEATER_RANGE[self.unit]))
        self.add_current("temperature", self.unit)
        self.add_modes(self.config.texts("modes", _HEATER_MODES))
        self.add_power()
        self.claim_shown({"temperature": "current_temperature_topic",
                          "target_temperature": "temperature_state_topic"})  # fmt: skip


def _text_of(attribute: str, options: tuple[str, ...]) -> Callable[[str], Update]:
    def parse(text: str) -> Update:
        if is_unknown(text) and text not in options:
            return {attribute: None}
        return {attribute: text[:200]} if text else {}

    return parse


def measured_in(unit: str) -> Callable[[float], Value]:
    """What makes a measurement of a number."""
    return lambda value: {"value": value, "unit": unit}


def _text_parser(attribute: str, options: tuple[str, ...]) -> Callable[[str], Update]:
    """Parses a mode by its announced name; of presets `None` is the one that is called so."""

    def parse(text: str) -> Update:
        if text == "" or len(text) > 200:
            return {}
        if text == "None" and text not in options:
            return {attribute: "none" if attribute == "preset_mode" else None}
        return {attribute: text}

    return parse


def in_unit(value: float, unit: str, expected: str) -> int | float:
    """A temperature in the device's unit; `Invalid` for a unit that is none of temperature."""
    letter = unit.replace("°", "").strip().upper()[:1]
    if letter not in ("C", "F"):
        raise Invalid(f"target_temperature needs the unit {expected}, not {unit[:20]!r}")
    if letter == expected[1]:
        return plain_number(value)
    return plain_number(round(value * 9 / 5 + 32 if expected == "°F" else (value - 32) * 5 / 9, 1))
