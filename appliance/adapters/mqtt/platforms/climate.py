"""Components with a measurement, a target, and modes: climate, humidifiers, and water heaters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from appliance.adapters.mqtt.platforms.entity import SWITCHED, Entity, PayloadParser
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.numbers import number_parser, plain_number
from appliance.adapters.mqtt.platforms.payloads import Update, WordParser, is_unknown
from appliance.home.capabilities import CAPABILITIES
from appliance.home.commands import Command
from appliance.home.values import Value


class Regulated(Entity):
    """An entity with a measurement, a target, and modes, each with its own topics."""

    def setup(self) -> None:
        self.unit = "°F" if self.config.text("temperature_unit", "C").upper().startswith("F") else "°C"

    def add_power(self) -> None:
        """Offer commands to switch the device on and off. The device does not report its power."""
        if self.can("power_command"):
            self.add_offer("power", ("on", "off"), Regulated._write_power)

    def _write_power(self, command: Command) -> Intent:
        return self.intent("power_command", self.payload(command.action))

    def add_temperature(self, schema: Mapping[str, Value]) -> None:
        """Read the target temperature, and offer to set it, in the announced unit."""
        key, measure = "target_temperature", measured_in(self.unit)
        self.add_value(key, "temperature", number_parser(key, measure), {"unit": self.unit, **schema},
                 to_shown=measure,
                 to_payload=lambda value: plain_number(value["value"]))  # fmt: skip

    def range_of(self, name: str, low: float, high: float) -> dict[str, Value]:
        """Return the announced range of a target, `min_<name>` to `max_<name>`, or the default."""
        low, high = self.config.bounds(f"min_{name}", f"max_{name}", low, high)
        return {"min": plain_number(low), "max": plain_number(high)}

    def add_modes(self, modes: tuple[str, ...]) -> None:
        """Read the mode and the current action. If modes are announced, offer to set the mode."""
        key, action = "custom.mqtt.mode", "custom.mqtt.action"
        parse = self.or_reset("mode", text_parser(key, self.config.texts("modes")))
        self.add_value(key, "mode", parse, {"type": "enum", "values": list(modes)} if modes else None)
        parse = self.or_reset("action", text_parser(action, ()))
        self.add_reader("action_topic", parse, "action_template", "value_template", shows=(action,))

    def add_current(self, name: str, unit: str) -> None:
        parse = self.or_reset(name, number_parser(name, measured_in(unit)))
        self.add_reader(f"current_{name}_topic", parse, f"current_{name}_template", "value_template", shows=(name,))

    def or_reset(self, name: str, parse: PayloadParser) -> PayloadParser:
        """Return a parser that also treats `payload_reset_<name>` as an unknown value."""
        reset = self.config.text(f"payload_reset_{name}", "None")
        return lambda entity, text: parse(entity, "None" if text == reset else text)

    def claim_shown(self, topics: Mapping[str, str]) -> None:
        """Claim the attributes that have commands or an announced topic."""
        shown = (attribute for attribute, topic in topics.items() if topic in self.config)
        self.claims = tuple(dict.fromkeys((*self.offers, *shown)))


def text_parser(attribute: str, options: tuple[str, ...]) -> PayloadParser:
    """Return a parser of texts. A word in `UNKNOWN` makes the attribute unknown unless the word is an option."""

    def parse(_: Entity, text: str) -> Update:
        if is_unknown(text) and text not in options:
            return {attribute: None}
        return {attribute: text[:200]} if text else {}

    return parse


def measured_in(unit: str) -> Callable[[float], Value]:
    return lambda value: {"value": value, "unit": unit}


_MODES = CAPABILITIES["hvac_mode"].values

_ACTIONS = {
    "off": "off", "heating": "heating", "cooling": "cooling", "drying": "dry", "idle": "idle", "fan": "fan_only",
    "preheating": "heating", "defrosting": "idle",
}  # fmt: skip
"""Values of `hvac_state` by the words in Home Assistant's `action_topic`."""

_WORDS = {
    "fan_mode": "fan_mode",
    "swing_mode": "swing_mode",
    "preset_mode": "preset_mode",
    "custom.mqtt.swing_horizontal_mode": "swing_horizontal_mode",
}
"""Names in the discovery payload by attribute, for attributes whose values are words."""

_DEFAULT_RANGE = {"°C": (7, 35), "°F": (44.6, 95)}
"""Home Assistant's default temperature range, by unit."""


class Climate(Regulated):
    """A thermostat or an air conditioner."""

    def setup(self) -> None:
        super().setup()
        self.add_current("temperature", self.unit)
        self.add_current("humidity", "%")
        self.add_reader("action_topic", WordParser(_ACTIONS, "hvac_state"), "action_template", "value_template")
        for key, name in _WORDS.items():
            self.add_value(key, name, self._parser(key, self.config.texts(f"{name}s")), self._options(name))
        self.add_power()
        step = {"step": plain_number(each)} if (each := self.config.number("temp_step", 0)) > 0 else {}
        temperatures = {**self.range_of("temp", *_DEFAULT_RANGE[self.unit]), **step}
        self.add_temperature(temperatures)
        for end in ("low", "high"):
            key = f"custom.mqtt.target_temperature_{end}"
            self.add_value(key, f"temperature_{end}", number_parser(key), {"type": "number", **temperatures})
        key, humidities = "custom.mqtt.target_humidity", self.range_of("humidity", 30, 99)
        schema: dict[str, Value] = {"type": "number", "unit": "%", **humidities}
        self.add_value(key, "target_humidity", number_parser(key), schema)
        modes: list[Value] = [mode for mode in self.config.texts("modes", _MODES) if mode in _MODES]
        self.add_value(
            "hvac_mode", "mode", WordParser({mode: mode for mode in _MODES}, "hvac_mode"), {"values": modes}
        )
        self.claim_shown({"temperature": "current_temperature_topic", "humidity": "current_humidity_topic",
                          "hvac_mode": "mode_state_topic", "hvac_state": "action_topic"})  # fmt: skip

    def _parser(self, attribute: str, options: tuple[str, ...]) -> PayloadParser:
        """Return a parser of announced modes. The preset `None` means that no preset is active."""
        if attribute != "preset_mode":
            return text_parser(attribute, options)
        return WordParser({"none": "none", "None": "none", **{each: each for each in options}}, attribute)

    def _options(self, name: str) -> dict[str, Value]:
        options: list[Value] = [*self.config.texts(f"{name}s")]
        if name == "swing_horizontal_mode":
            return {"type": "enum", "values": options} if options else {"type": "string"}
        return {"values": [*options, "none"] if name == "preset_mode" else options} if options else {}


class Humidifier(Regulated):
    """A humidifier: power, a mode, a target, and its measurements."""

    def setup(self) -> None:
        words = {self.payload(power): power for power in ("on", "off")}
        self.add_reader("state_topic", WordParser(words, "power"), "state_value_template", shows=("power",))
        key, schema = "custom.mqtt.target_humidity", self.range_of("humidity", 0, 100)
        parse = self.or_reset("humidity", number_parser(key, plain_number))
        self.add_value(key, "target_humidity", parse, {"type": "number", "unit": "%", **schema})
        self.add_current("humidity", "%")
        self.add_modes(self.config.texts("modes"))
        if self.can("command"):  # offer the power last, because the first offer represents the entity
            self.add_offer("power", SWITCHED, Humidifier._switch)
        self.claim_shown({"humidity": "current_humidity_topic", "power": "state_topic"})

    def _switch(self, command: Command) -> Intent:
        power = self.switched(command)
        return self.intent("command", self.payload(power), {"power": power})


_HEATER_RANGE = {"°C": (43.3, 60.0), "°F": (110.0, 140.0)}
"""Default temperature range, by unit."""

_HEATER_MODES = ("off", "eco", "electric", "gas", "heat_pump", "high_demand", "performance")


class WaterHeater(Regulated):
    """A water heater: commands to switch it on and off, a mode, a target, and its temperature."""

    def setup(self) -> None:
        super().setup()
        self.add_temperature(self.range_of("temp", *_HEATER_RANGE[self.unit]))
        self.add_current("temperature", self.unit)
        self.add_modes(self.config.texts("modes", _HEATER_MODES))
        self.add_power()
        self.claim_shown({"temperature": "current_temperature_topic",
                          "target_temperature": "temperature_state_topic"})  # fmt: skip
