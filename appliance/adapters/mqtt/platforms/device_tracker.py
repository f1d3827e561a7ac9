"""Device trackers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.adapters.mqtt.messages import parse_object
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.numbers import stated_number
from appliance.adapters.mqtt.platforms.payloads import Update, is_unknown
from appliance.errors import Invalid

HOME_RADIUS_METERS = 100
"""Distance within which a person is at home. Home Assistant's zone has the same default."""

_AWAY = ("not_home", "away")
"""Texts that mean that a person is not at home, even if other texts are announced."""


class DeviceTracker(Entity):
    """A person's device. The device reports `presence` and the name of the zone or room.

    A person in a GPS zone is away from home. A person whom another sensor (for example, a Bluetooth sensor) detects
    in a room is at home. Without a state topic, the coordinates of the person decide.
    """

    device_class = "person"
    is_renamed = True
    more_attributes = ("custom.mqtt.zone",)

    def setup(self) -> None:
        self.claims = ("presence",)
        self.add_reader("state_topic", DeviceTracker._parse, "value_template")
        self.add_reader("json_attributes_topic", DeviceTracker._parse_zones, "json_attributes_template")

    def use_custom(self, key: str) -> None:
        super().use_custom(key)
        self.more_attributes = (f"{key}_zone",)

    def _parse(self, text: str) -> Update:
        [zone] = self.more_attributes
        text = text.strip()
        if text == self.config.text("payload_reset", "None") or is_unknown(text):
            return {self.main_attribute: None, zone: None}
        if text == "":
            return {}
        is_home = text.casefold() in (self.config.text("payload_home", "home").casefold(), "home")
        is_away = text.casefold() in (self.config.text("payload_not_home", "not_home").casefold(), *_AWAY)
        is_zone = not is_home and not is_away
        is_room = is_zone and self.config.text("source_type", "gps") != "gps"
        return {self.main_attribute: is_home or is_room, zone: text[:200] if is_zone else None}

    def _parse_zones(self, text: str) -> Update:
        """Return the presence that a JSON object reports through coordinates or through `in_zones`, a list such as
        `["zone.home"]`. Ignore other objects."""
        attributes = parse_object(text, "the attributes") if text else {}
        zones = attributes.get("in_zones")
        if not isinstance(zones, list):
            return {} if "state_topic" in self.config else self._located(attributes)
        names = [str(each).removeprefix("zone.")[:200] for each in zones]
        is_home = "home" in names
        [zone] = self.more_attributes
        return {self.main_attribute: is_home, zone: None if is_home or not names else names[0]}

    def _located(self, attributes: Mapping[str, Any]) -> Update:
        """Return the presence at the coordinates. Within `HOME_RADIUS_METERS`, plus the accuracy of the position, the
        person is at home."""
        [zone] = self.more_attributes
        latitude, longitude = (stated_number(attributes.get(each)) for each in ("latitude", "longitude"))
        if latitude is None or longitude is None:
            is_stated = "latitude" in attributes and "longitude" in attributes
            return {self.main_attribute: None, zone: None} if is_stated else {}
        if not self.locale.has_coordinates:
            raise Invalid("the home has no coordinates; set latitude and longitude in [locale]")
        accuracy = max(stated_number(attributes.get("gps_accuracy")) or 0, 0)
        is_home = self.locale.distance_to(latitude, longitude) - accuracy < HOME_RADIUS_METERS
        return {self.main_attribute: is_home, zone: None}
