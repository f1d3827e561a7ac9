"""Thermostats and air conditioners."""

from __future__ import annotations

from collections.abc import Callable

from appliance.adapters.mqtt.platforms.entity import Update, number_parser, plain_number
from appliance.adapters.mqtt.platforms.published import Fields, PublishedDevice, expression, shown_text
from appliance.adapters.mqtt.platforms.regulated import Regulated, text_parser
from appliance.home.capabilities import CAPABILITIES
from appliance.home.values import Value

_MODES = CAPABILITIES["hvac_mode"].values

_ACTIONS = {
    "off": "off", "heating": "heating", "cooling": "cooling", "drying": "dry", "idle": "idle", "fan": "fan_only",
    "preheating": "heating", "defrosting": "idle",
}  # fmt: skip
"""`hvac_state` by the words in Home Assistant's `action_topic`."""

_WORDS = {
    "fan_mode": "fan_mode",
    "swing_mode": "swing_mode",
    "preset_mode": "preset_mode",
    "custom.mqtt.swing_horizontal_mode": "swing_horizontal_mode",
}
"""Announced names by attribute, for attributes whose values are words."""

_DEFAULT_RANGE = {"°C": (7, 35), "°F": (44.6, 95)}
"""Default temperature range by unit, as in Home Assistant."""


class Climate(Regulated):
    """A thermostat or an air conditioner."""

    def setup(self) -> None:
        super().setup()
        self.add_current("temperature", self.unit)
        self.add_current("humidity", "%")
        self.read("action_topic", self.words(_ACTIONS, "hvac_state"), "action_template", "value_template")
        for key, name in _WORDS.items():
            self.add(key, name, self._parser(key, self.config.texts(f"{name}s")), self._options(name))
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
        self.add("hvac_mode", "mode", self.words({mode: mode for mode in _MODES}, "hvac_mode"), {"values": modes})
        self.claim_shown({"temperature": "current_temperature_topic", "humidity": "current_humidity_topic",
                          "hvac_mode": "mode_state_topic", "hvac_state": "action_topic"})  # fmt: skip

    def _parser(self, attribute: str, options: tuple[str, ...]) -> Callable[[str], Update]:
        """Return a parser of modes by their announced names. The preset `None` means that no preset is active."""
        if attribute != "preset_mode":
            return text_parser(attribute, options)
        return self.words({"none": "none", "None": "none", **{each: each for each in options}}, attribute)

    def _options(self, name: str) -> dict[str, Value]:
        options: list[Value] = [*self.config.texts(f"{name}s")]
        if name == "swing_horizontal_mode":
            return {"type": "enum", "values": options} if options else {"type": "string"}
        return {"values": [*options, "none"] if name == "preset_mode" else options} if options else {}


CLIMATE_KEYS = ("hvac_mode", "hvac_state", "target_temperature", "fan_mode", "swing_mode", "preset_mode")


def announce(device: PublishedDevice) -> Fields | None:
    if device.specs.keys().isdisjoint(("target_temperature", "hvac_mode")):
        return None
    fields: Fields = {}
    if (target := device.specs.get("target_temperature")) is not None:
        unit = target.unit or "°C"
        bounds = {"min_temp": target.min, "max_temp": target.max, "temp_step": target.step}
        fields |= {"temperature_unit": "F" if "F" in unit else "C"}
        fields |= {key: value for key, value in bounds.items() if value is not None}
        value, shown = f'{{"value":{{{{ value }}}},"unit":"{unit}"}}', shown_text("target_temperature", ".value")
        fields |= device.show_and_set("temperature", "target_temperature", value, shown, "state_template")
    for key in ("hvac_mode", "fan_mode", "swing_mode", "preset_mode"):
        if key in device.keys:
            name = key.removeprefix("hvac_")
            template = "value_template" if name == "preset_mode" else "state_template"
            fields |= device.show_and_set(name, key, '"{{ value }}"', template=template)
            values = device.specs[key].schema()["values"] if key in device.specs else ()
            if options := [each for each in values if each != "none"]:
                fields[f"{name}s"] = options
    if "hvac_state" in device.keys:
        words = {"dry": "drying", "fan_only": "fan"}
        shown = expression("hvac_state")
        template = f"{{% set words = {words} %}}{{{{ words.get({shown}, {shown}) }}}}"
        fields |= {"action_topic": device.state_topic, "action_template": template}
    return fields
