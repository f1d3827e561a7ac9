"""Matter nodes, as described by the controller server: endpoints, names, and types."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from appliance.errors import BadAnswer
from appliance.home.model import Info

DESCRIPTOR, BASIC, BRIDGED, FIXED_LABEL, USER_LABEL = 29, 40, 57, 64, 65
DESCRIPTIONS = frozenset({DESCRIPTOR, BASIC, BRIDGED, FIXED_LABEL, USER_LABEL})
"""Clusters that contain the types and names of an endpoint."""

ROOT_ENDPOINT, AGGREGATOR_TYPE = 0, 14

FEATURES, ACCEPTED_COMMANDS = 65532, 65529
"""Attributes that every cluster has. The hub does not read the other attributes from `_FIRST_GLOBAL` on, which also
belong to every cluster."""

_FIRST_GLOBAL = 65528

_CLUSTER_BYTES, _VALUE_BYTES, _BYTES_PER_CHARACTER = 300, 100, 8
"""Approximate memory of a cluster, of the entry of a value, and of each character of a list or object."""

VENDOR, PRODUCT, NODE_LABEL, FIRMWARE, PRODUCT_LABEL, SERIAL, REACHABLE, UNIQUE_ID = 1, 3, 5, 10, 14, 15, 17, 18
"""Attributes with the basic information of a node or a bridged device."""

_AREAS = ("room", "area", "zone", "floor")
"""Names of labels for a device's location."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


Path = tuple[int, int, int]
"""Endpoint, cluster, and attribute."""


def parse_path(path: Any) -> Path | None:
    """Parse `endpoint/cluster/attribute`. Return None for other text."""
    try:
        number, cluster, attribute = map(int, path.split("/"))
    except (AttributeError, ValueError):
        return None
    return number, cluster, attribute


class Endpoint:
    """One endpoint. `clusters` holds the server's values by cluster and attribute."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.clusters: dict[int, dict[int, Any]] = {}

    def get(self, cluster: int, attribute: int) -> Any:
        """Return the value, or None if it is missing."""
        return self.clusters.get(cluster, {}).get(attribute)

    def has_feature(self, cluster: int, bit: int) -> bool:
        features = self.get(cluster, FEATURES)
        return isinstance(features, int) and bool(features & bit)

    def accepts(self, cluster: int, command: int) -> bool:
        accepted = self.get(cluster, ACCEPTED_COMMANDS)
        return isinstance(accepted, list) and command in accepted

    @property
    def types(self) -> tuple[int, ...]:
        """Device types of the endpoint."""
        return tuple(_number(each, "0") for each in _items(self.get(DESCRIPTOR, 0)))

    @property
    def parts(self) -> tuple[int, ...]:
        """Numbers of the endpoints of which this endpoint consists."""
        parts = self.get(DESCRIPTOR, 3)
        return tuple(each for each in parts if isinstance(each, int)) if isinstance(parts, list) else ()

    @property
    def is_aggregator(self) -> bool:
        """Whether the endpoint represents a bridge. The `parts` of an aggregator are the bridge's devices."""
        return AGGREGATOR_TYPE in self.types

    def labels(self) -> Iterator[tuple[str, str]]:
        """Yield the name and value of each label. The owner's labels come before the manufacturer's labels."""
        for cluster in (USER_LABEL, FIXED_LABEL):
            for each in _items(self.get(cluster, 0)):
                name, value = each.get("0"), each.get("1")
                if isinstance(name, str) and isinstance(value, str) and value.strip():
                    yield name, value


class Node:
    """One commissioned device or bridge, with the attributes of `clusters`. Other attributes are ignored. `size` is
    the approximate memory of the attributes in bytes. Raises `BadAnswer` if the data does not describe a node."""

    def __init__(self, raw: Any, clusters: Collection[int]) -> None:
        try:
            self.id = int(raw["node_id"])
            self.is_available = raw["available"] is True
            attributes = raw["attributes"].items()
        except (AttributeError, KeyError, TypeError, ValueError):
            raise BadAnswer("the Matter server sent a malformed node") from None
        self.endpoints: dict[int, Endpoint] = {}
        self.size = 0
        self._clusters = clusters
        self._parents: tuple[dict[int, Endpoint], dict[int, Endpoint]] | None = None
        for path, value in attributes:
            if (at := parse_path(path)) is not None and self.reads(at):
                self.set(at, value, self.growth(at, value))

    def reads(self, at: Path) -> bool:
        """Return whether the hub reads the attribute."""
        _, cluster, attribute = at
        is_read = attribute < _FIRST_GLOBAL or attribute in (FEATURES, ACCEPTED_COMMANDS)
        return is_read and cluster in self._clusters

    def value_at(self, at: Path) -> Any:
        """Return the value, or None if it is missing."""
        endpoint = self.endpoints.get(at[0])
        return None if endpoint is None else endpoint.get(at[1], at[2])

    def set(self, at: Path, value: Any, growth: int) -> None:
        number, cluster, attribute = at
        endpoint = self.endpoints.setdefault(number, Endpoint(number))
        self.size += growth
        endpoint.clusters.setdefault(cluster, {})[attribute] = value
        if cluster in (DESCRIPTOR, BRIDGED):
            self._parents = None

    def growth(self, at: Path, value: Any) -> int:
        """Return the change of `size` in bytes if `set` sets this value."""
        number, cluster, attribute = at
        values = self.endpoints[number].clusters.get(cluster) if number in self.endpoints else None
        if values is None:
            return _CLUSTER_BYTES + _size_of(value)
        return _size_of(value) - (_size_of(values[attribute]) if attribute in values else 0)

    def forget_values(self) -> None:
        """Make the values of all devices unknown. The descriptions of the devices and of their commands remain."""
        for number, endpoint in self.endpoints.items():
            for cluster in endpoint.clusters.keys() - DESCRIPTIONS:
                for attribute in endpoint.clusters[cluster]:
                    if attribute < _FIRST_GLOBAL:
                        at = (number, cluster, attribute)
                        self.set(at, None, self.growth(at, None))

    def remove(self, number: int) -> None:
        removed = self.endpoints.pop(number, Endpoint(number))
        for values in removed.clusters.values():
            self.size -= _CLUSTER_BYTES + sum(map(_size_of, values.values()))
        self._parents = None

    @property
    def unique_id(self) -> str:
        """The node's UniqueID, or the node's number in hexadecimal if the UniqueID cannot be part of a device id."""
        found = self._root(UNIQUE_ID)
        return found if isinstance(found, str) and _ID.fullmatch(found) else f"{self.id:x}"

    @property
    def label(self) -> str:
        """The name of the whole node."""
        return self._root(NODE_LABEL) or self._root(PRODUCT_LABEL) or self._root(PRODUCT) or f"Matter {self.id:x}"

    def aggregator_of(self, endpoint: Endpoint) -> Endpoint | None:
        """Return the aggregator of the endpoint, or None if the endpoint does not belong to a bridge."""
        return self._find_parents()[0].get(endpoint.number)

    def is_reachable(self, endpoint: Endpoint) -> bool:
        """Return whether the bridge reaches the device. If the device has no bridge, return true."""
        return self._bridged(endpoint, REACHABLE) is not False

    def name_of(self, endpoint: Endpoint, number: int | None) -> str:
        """Return the name of the device. If the name is the node's label, `number` is appended, so that the node's
        devices have different names."""
        own = self._bridged(endpoint, NODE_LABEL)
        labels = [value for _, value in endpoint.labels()]
        if isinstance(own, str) and own.strip():
            return own
        shared = self._root(NODE_LABEL)
        if not shared and labels:
            return " ".join(dict.fromkeys(labels))
        made = self._bridged(endpoint, PRODUCT_LABEL) or self._bridged(endpoint, PRODUCT)
        if isinstance(made, str) and made.strip():
            return made
        return self.label if number is None else f"{self.label} {number}"

    def info_of(self, endpoint: Endpoint, parent_id: str | None, device_class: str) -> Info:
        """Return the device's vendor data."""

        def text_of(attribute: int) -> str | None:
            found = self._bridged(endpoint, attribute) or self._root(attribute)
            return found if isinstance(found, str) else None

        area = next((value for name, value in endpoint.labels() if name.lower() in _AREAS), None)
        return Info(
            manufacturer=text_of(VENDOR),
            model=text_of(PRODUCT),
            firmware=text_of(FIRMWARE),
            serial=text_of(SERIAL),
            area=area,
            parent_id=parent_id,
            device_class=device_class,
        )

    def _root(self, attribute: int) -> Any:
        return self.endpoints[ROOT_ENDPOINT].get(BASIC, attribute) if ROOT_ENDPOINT in self.endpoints else None

    def _bridged(self, endpoint: Endpoint, attribute: int) -> Any:
        """Return an attribute of the bridged device that contains this endpoint."""
        if BRIDGED in endpoint.clusters:
            return endpoint.get(BRIDGED, attribute)
        parent = self._find_parents()[1].get(endpoint.number)
        return None if parent is None else parent.get(BRIDGED, attribute)

    def _find_parents(self) -> tuple[dict[int, Endpoint], dict[int, Endpoint]]:
        """Return two maps by endpoint number: the aggregator of each part, and the bridged device of each part."""
        if self._parents is None:
            aggregators: dict[int, Endpoint] = {}
            bridged: dict[int, Endpoint] = {}
            for endpoint in self.endpoints.values():
                for found, is_parent in (
                    (aggregators, endpoint.is_aggregator),
                    (bridged, BRIDGED in endpoint.clusters),
                ):
                    for part in endpoint.parts if is_parent else ():
                        found.setdefault(part, endpoint)
            self._parents = aggregators, bridged
        return self._parents


def _size_of(value: Any) -> int:
    is_nested = isinstance(value, (list, dict))
    return _VALUE_BYTES + (_BYTES_PER_CHARACTER * len(repr(value)) if is_nested else sys.getsizeof(value))


def _items(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _number(item: Mapping[str, Any], key: str) -> int:
    found = item.get(key)
    return found if isinstance(found, int) else -1
