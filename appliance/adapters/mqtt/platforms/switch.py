"""Switches and outlets."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.on_off import OnOff


class Switch(OnOff):
    """A switch or an outlet, which is a plug."""

    def setup(self) -> None:
        super().setup()
        self.device_class = "plug" if self.config.text("device_class") == "outlet" else "switch"
        self.add_power("value_template")
