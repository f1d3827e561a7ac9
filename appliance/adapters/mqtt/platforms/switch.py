"""Switches and outlets."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.on_off import OnOff
from appliance.adapters.mqtt.platforms.published import Fields, PublishedDevice, command_text


class Switch(OnOff):
    """A switch, or an outlet, which has the class `plug`."""

    def setup(self) -> None:
        super().setup()
        self.device_class = "plug" if self.config.text("device_class") == "outlet" else "switch"
        self.add_power("value_template")


def announce(device: PublishedDevice, key: str) -> Fields | None:
    if key == "power":
        return device.power()
    if device.settable(key).get("type") != "boolean":
        return None
    return device.switched(key, {value: command_text(key, "set", value) for value in ("true", "false")})
