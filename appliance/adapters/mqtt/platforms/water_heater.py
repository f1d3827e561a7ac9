"""Water heaters."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.regulated import Regulated

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
