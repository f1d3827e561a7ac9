"""The table of components: the class of each announced entity."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.announcements import Announcement
from appliance.adapters.mqtt.entities.climates import Climate, Humidifier, WaterHeater
from appliance.adapters.mqtt.entities.covers import Cover, Valve
from appliance.adapters.mqtt.entities.entity import Entity
from appliance.adapters.mqtt.entities.inputs import Button, Moment, Number, Select, SentText, Text, UpdateEntity
from appliance.adapters.mqtt.entities.pictures import StillPicture
from appliance.adapters.mqtt.entities.sensors import (
    ActionSensor,
    BinarySensor,
    DeviceTracker,
    EventEntity,
    Sensor,
    Tag,
    TriggerEntity,
)
from appliance.adapters.mqtt.entities.switches import AlarmPanel, Fan, LawnMower, LockEntity, Siren, Switch, Vacuum
from appliance.adapters.mqtt.entities.topic_lights import JsonLight, TemplateLight, TopicLight
from appliance.adapters.mqtt.tasmota.light import TasmotaLight, TasmotaPress
from appliance.errors import Invalid

COMPONENTS: Mapping[str, type[Entity]] = {
    "alarm_control_panel": AlarmPanel,
    "binary_sensor": BinarySensor,
    "button": Button,
    "camera": StillPicture,
    "climate": Climate,
    "cover": Cover,
    "date": Moment,
    "datetime": Moment,
    "device_automation": TriggerEntity,
    "device_tracker": DeviceTracker,
    "event": EventEntity,
    "fan": Fan,
    "humidifier": Humidifier,
    "image": StillPicture,
    "infrared": SentText,
    "lawn_mower": LawnMower,
    "light": TopicLight,
    "lock": LockEntity,
    "notify": SentText,
    "number": Number,
    "scene": Button,
    "select": Select,
    "sensor": Sensor,
    "siren": Siren,
    "switch": Switch,
    "tag": Tag,
    "text": Text,
    "time": Moment,
    "update": UpdateEntity,
    "vacuum": Vacuum,
    "valve": Valve,
    "water_heater": WaterHeater,
}
"""The class by the component of the discovery topic."""

_LIGHTS: Mapping[str, type[Entity]] = {"json": JsonLight, "template": TemplateLight}

_TASMOTA: Mapping[str, type[Entity]] = {"light": TasmotaLight, "event": TasmotaPress}
"""The same of Tasmota's own discovery."""


def build_entity(announcement: Announcement) -> Entity:
    """The entity of an announcement; raises `Invalid` with the reason why it cannot be used."""
    kind = COMPONENTS.get(announcement.component)
    if kind is None:
        raise Invalid(f"the component {announcement.component[:60]!r} is not taken in")
    if announcement.key.startswith("tasmota/"):
        kind = _TASMOTA.get(announcement.component, kind)
    if kind is TopicLight:
        kind = _LIGHTS.get(str(announcement.config.get("schema", "default")), TopicLight)
    if (
        kind is Sensor
        and announcement.object_id in ("action", "click")
        and "unit_of_measurement" not in announcement.config
    ):
        kind = ActionSensor
    if announcement.component == "device_automation" and announcement.config.get("automation_type") != "trigger":
        raise Invalid("is no trigger")
    return kind(announcement)


def is_excluded(announcement: Announcement) -> bool:
    """Whether it is of category config or diagnostic, batteries excepted, or announced as disabled by default."""
    config = announcement.config
    if str(config.get("enabled_by_default", True)).strip().lower() in ("false", "0", "no", "off", "disable"):
        return True
    if config.get("entity_category") not in ("config", "diagnostic"):
        return False
    return not (announcement.component == "sensor" and config.get("device_class") == "battery")
