"""Climate devices."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.platforms.entity import PayloadParser
from appliance.adapters.mqtt.platforms.numbers import number_parser, plain_number
from appliance.adapters.mqtt.platforms.payloads import WordParser
from appliance.adapters.mqtt.platforms.regulated import Regulated, text_parser
from appliance.home.capabilities import CAPABILITIES
from appliance.home.values import Value

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

_ENDS = {f"custom.mqtt.target_temperature_{end}": f"temperature_{end}" for end in ("low", "high")}
"""Names in the discovery payload by attribute, for the ends of a target range."""

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
        for key, name in _ENDS.items():
            schema: dict[str, Value] = {"type": "number", **temperatures}
            self.add_value(key, name, number_parser(key), schema, step=self.temperature_step)
        key, humidities = "custom.mqtt.target_humidity", self.range_of("humidity", 30, 99)
        schema = {"type": "number", "unit": "%", **humidities}
        self.add_value(key, "target_humidity", number_parser(key), schema, step=1)
        modes: list[Value] = [mode for mode in self.config.texts("modes", _MODES) if mode in _MODES]
        parse = WordParser({mode: mode for mode in _MODES}, "hvac_mode")
        self.add_value("hvac_mode", "mode", parse, {"values": modes})
        self.claim_shown({"temperature": "current_temperature_topic", "humidity": "current_humidity_topic",
                          "hvac_mode": "mode_state_topic", "hvac_state": "action_topic"})  # fmt: skip

    @property
    def units(self) -> Mapping[str, str]:
        return {key: self.unit for key in _ENDS if key in self.possible_attributes}

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
