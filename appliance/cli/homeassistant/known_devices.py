"""Finds devices that Lares already knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from appliance.cli.homeassistant.values import object_id


class KnownDevice(Struct, frozen=True, kw_only=True):
    """A device that Lares already knows. If the serial number is unknown, `serial` is empty."""

    id: str
    name: str
    serial: str = ""


class KnownDevices:
    """The devices that Lares already knows, by serial number, name, and object id."""

    def __init__(self, devices: Iterable[KnownDevice]) -> None:
        self._by_serial: defaultdict[str, list[str]] = defaultdict(list)
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)
        self._by_entity_name: defaultdict[str, list[str]] = defaultdict(list)
        for device in devices:
            if device.serial:
                self._by_serial[code_of(device.serial)].append(device.id)
            self._by_name[device.name.lower()].append(device.id)
            for name in {device.name.lower(), device.id.lower()}:
                self._by_entity_name[name].append(device.id)
            self._by_entity_name[f".{object_id(device.name)}"].append(device.id)

    def find(self, codes: Iterable[str], name: str | None) -> str | None:
        """Return the id of the device with one of these codes. By default, return the id of the device with this
        name."""
        found = [each for code in codes for each in self._by_serial.get(code, ())]
        if not found and name:
            found = self._by_name.get(name.lower(), [])
        return min(found, key=len) if found else None

    def find_by_entity(self, name: str, object_id_: str) -> str | None:
        """Return the id of the device with the name or the object id of an entity."""
        found = [*self._by_entity_name.get(name.lower(), ()), *self._by_entity_name.get(f".{object_id_}", ())]
        return min(found, key=len) if found else None


def code_of(text: str) -> str:
    """Return a serial number or an address without separators, in lower case."""
    return "".join(char for char in text.lower() if char.isalnum())
