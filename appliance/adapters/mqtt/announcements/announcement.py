"""One announced entity and its device, in the form that all discovery protocols share, and the JSON of their
configurations."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from msgspec import Struct

from appliance.adapters.mqtt.home_assistant_classes import DANGERS
from appliance.adapters.mqtt.messages import decode_text, parse_object
from appliance.errors import Invalid

MAX_DISCOVERY_BYTES = 64 * 1024

MAX_COMPONENTS = 256
"""Maximum number of entities of one configuration."""

MAX_TEXT_CHARS = 200
"""Maximum length of a name or fact of a device. Longer texts are shortened."""


LARES_ORIGIN = "Lares"
"""The `origin` in the announcements of Lares hubs."""


class DeviceFacts(Struct, frozen=True, kw_only=True, gc=False):
    """The object `device` of a configuration. Missing fields are empty. `connections` holds only the values, without
    their types."""

    identifiers: tuple[str, ...] = ()
    connections: tuple[str, ...] = ()
    name: str = ""
    manufacturer: str = ""
    model: str = ""
    firmware: str = ""
    serial: str = ""
    area: str = ""
    via_device: str = ""


SPELLED_UNITS = {"C": "°C", "F": "°F", "ºC": "°C", "ºF": "°F", "℃": "°C", "℉": "°F", "lux": "lx", "Lux": "lx",
                 "kwh": "kWh", "KWh": "kWh", "Kwh": "kWh"}  # fmt: skip
"""Standard units by the spellings that some devices use."""


class DiscoveryProtocol(Enum):
    """The protocol of a configuration."""

    HOME_ASSISTANT = auto()
    TASMOTA = auto()


class Announcement(Struct, frozen=True, kw_only=True, gc=False):
    """One announced entity. `key` is unique per broker. `source` is the topic of the configuration.

    `availability` contains the objects of the list `availability`. The entities of a configuration share these
    objects. These objects are not part of `config`, so that the garbage collector need not track `config`.
    """

    protocol: DiscoveryProtocol
    key: str
    source: str
    component: str
    object_id: str
    config: Mapping[str, Any]
    device: DeviceFacts
    origin: str
    availability: tuple[Mapping[str, Any], ...] = ()
    is_migrating: bool = False

    @property
    def unique_id(self) -> str:
        """The announced `unique_id`, or an empty string."""
        unique_id = self.config.get("unique_id")
        return str(unique_id)[:250] if isinstance(unique_id, str | int) else ""

    @property
    def own_id(self) -> str:
        """The unique id, otherwise the announced name of the entity in the topic or in the list of components. Unlike
        in `object_id`, no character of the name is replaced."""
        name = self.key.split("/", 3 if self.key.startswith("device/") else 2)[-1]
        return self.unique_id or text_of(name) or self.object_id

    @property
    def unit(self) -> str:
        """The announced unit of the entity's numbers, or an empty string."""
        if self.component in ("climate", "water_heater"):
            return "°F" if str(self.config.get("temperature_unit")).upper().startswith("F") else "°C"
        unit = str(self.config.get("unit_of_measurement") or "")
        return SPELLED_UNITS.get(unit, unit)

    @property
    def is_main(self) -> bool:
        """Whether the announced name is null. A null name marks the main entity of a device."""
        return "name" in self.config and self.config["name"] is None

    @property
    def is_from_lares(self) -> bool:
        """Whether a Lares hub publishes the entity."""
        return self.origin == LARES_ORIGIN

    @property
    def is_automation(self) -> bool:
        """Whether the entity is the switch of a Lares hub's automation. It is not an appliance, so "everything off"
        must not find it."""
        is_switch = self.component == "switch" and self.object_id.startswith("automation_")
        return self.is_from_lares and is_switch and any(each.endswith("_hub") for each in self.device.identifiers)

    @property
    def is_excluded(self) -> bool:
        """Whether the entity is disabled by default, or has the category `config` or `diagnostic`. The
        category excludes neither batteries nor sensors that report a danger."""
        if str(self.config.get("enabled_by_default", True)).strip().lower() in ("false", "0", "no", "off", "disable"):
            return True
        if self.config.get("entity_category") not in ("config", "diagnostic"):
            return False
        device_class = str(self.config.get("device_class"))
        if self.component == "binary_sensor":
            return device_class not in DANGERS
        return not (self.component == "sensor" and device_class == "battery")


def parse_config(payload: bytes) -> dict[str, Any]:
    """Parse the object of a configuration. Parts that JSON forbids are replaced, so that a name in Latin-1 does not
    hide the device. Raise `Invalid` for any other payload, and for more than `MAX_DISCOVERY_BYTES`."""
    if len(payload) > MAX_DISCOVERY_BYTES:
        raise Invalid(f"the configuration is larger than {MAX_DISCOVERY_BYTES // 1024} KiB")
    return parse_object(decode_text(payload, "replace"), "the configuration")


def text_of(raw: Any) -> str:
    """Convert a text or number to printable text of at most `MAX_TEXT_CHARS`. Return an empty string for other
    types."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return ""
    return "".join(char for char in str(raw) if char.isprintable()).strip()[:MAX_TEXT_CHARS]
