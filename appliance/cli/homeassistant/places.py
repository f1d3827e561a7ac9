"""Finds the entities of devices, areas, floors, and labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from appliance.cli.homeassistant.installation import Installation
from appliance.cli.homeassistant.registries import HaEntity


class Places:
    """The entities of each device, area, floor, and label. Groups are omitted, because each member of a group has its
    own area."""

    def __init__(self, installation: Installation) -> None:
        self._entities: defaultdict[tuple[str, str | None], list[HaEntity]] = defaultdict(list)
        for each in installation.entities.values():
            if each.platform == "group":
                continue
            device = installation.devices.get(each.device_id or "")
            area_id = each.area_id or (device.area_id if device else None)
            area = installation.areas.get(area_id or "")
            self._entities["device_id", each.device_id].append(each)
            self._entities["area_id", area_id].append(each)
            self._entities["floor_id", area.floor_id if area else None].append(each)
            for label in {*each.labels, *(device.labels if device else ()), *(area.labels if area else ())}:
                self._entities["label_id", label].append(each)

    def entities_in(self, key: str, id_: str) -> Sequence[HaEntity]:
        """Return the entities of a device, area, floor, or label. `key` is the target's key, such as `area_id`."""
        return self._entities.get((key, id_), ())
