"""The table of components, and the class of each announced entity."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.announcements.announcement import Announcement, DiscoveryProtocol
from appliance.adapters.mqtt.platforms.alarm_panel import AlarmPanel
from appliance.adapters.mqtt.platforms.binary_sensor import BinarySensor
from appliance.adapters.mqtt.platforms.button import Button
from appliance.adapters.mqtt.platforms.climate import Climate
from appliance.adapters.mqtt.platforms.cover import Cover
from appliance.adapters.mqtt.platforms.device_tracker import DeviceTracker
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.event import ActionSensor, EventEntity, Tag, TriggerEntity
from appliance.adapters.mqtt.platforms.fan import Fan
from appliance.adapters.mqtt.platforms.humidifier import Humidifier
from appliance.adapters.mqtt.platforms.lawn_mower import LawnMower
from appliance.adapters.mqtt.platforms.light_schemas import JsonLight, TemplateLight, TopicLight
from appliance.adapters.mqtt.platforms.lock import LockEntity
from appliance.adapters.mqtt.platforms.picture import StillPicture
from appliance.adapters.mqtt.platforms.sensor import Sensor
from appliance.adapters.mqtt.platforms.settable_values import Moment, Number, Select, SentText, Text
from appliance.adapters.mqtt.platforms.siren import Siren
from appliance.adapters.mqtt.platforms.switch import Switch
from appliance.adapters.mqtt.platforms.update import UpdateEntity
from appliance.adapters.mqtt.platforms.vacuum import Vacuum
from appliance.adapters.mqtt.platforms.valve import Valve
from appliance.adapters.mqtt.platforms.water_heater import WaterHeater
from appliance.adapters.mqtt.tasmota.light import TasmotaLight
from appliance.adapters.mqtt.tasmota.press import TasmotaPress
from appliance.errors import Invalid
from appliance.home_locale import ANYWHERE, Locale

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
"""Entity class by component, for Home Assistant's discovery."""

_LIGHTS: Mapping[str, type[Entity]] = {"json": JsonLight, "template": TemplateLight}

_TASMOTA: Mapping[str, type[Entity]] = {"light": TasmotaLight, "event": TasmotaPress}
"""Entity class by component, for Tasmota's own discovery."""


def build_entity(announcement: Announcement, locale: Locale = ANYWHERE) -> Entity:
    """Build the entity of an announcement. Raise `Invalid` with the reason if the announcement is unusable."""
    kind = COMPONENTS.get(announcement.component)
    if kind is None:
        raise Invalid(unsupported(announcement.component))
    if announcement.protocol is DiscoveryProtocol.TASMOTA:
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
        raise Invalid("the entity is not a trigger")
    return kind(announcement, locale)


def unsupported(component: str) -> str:
    return f"the component {component[:60]!r} is not supported"
