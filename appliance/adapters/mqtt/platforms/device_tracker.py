"""Device trackers: people at home and away."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Entity, Update, is_unknown


class DeviceTracker(Entity):
    """A person's device: `presence`, and the name of its zone or room.

    Someone in a GPS zone is away from home. Someone in a room that another sensor detects, such as Bluetooth, is at
    home.
    """

    device_class = "person"
    is_renamed = True
    more_keys = ("custom.mqtt.zone",)

    def setup(self) -> None:
        self.claims = ("presence",)
        self.read("state_topic", self._parse, "value_template")

    def use_custom(self, suffix: str = "") -> None:
        super().use_custom(suffix)
        self.more_keys = (f"{self.custom}_zone",)

    def _parse(self, text: str) -> Update:
        [zone] = self.more_keys
        if text == self.config.text("payload_reset", "None") or is_unknown(text):
            return {self.label: None, zone: None}
        if text == "":
            return {}
        is_home = text == self.config.text("payload_home", "home")
        is_zone = not is_home and text != self.config.text("payload_not_home", "not_home")
        is_room = is_zone and self.config.text("source_type", "gps") != "gps"
        return {self.label: is_home or is_room, zone: text[:200] if is_zone else None}
