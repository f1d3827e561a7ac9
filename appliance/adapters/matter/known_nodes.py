"""The nodes of one server, and the devices that they represent."""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct

from appliance.adapters.matter.clusters import is_device
from appliance.adapters.matter.nodes import ROOT_ENDPOINT, Endpoint, Node, Path

MAX_DEVICES, MAX_NODES = 2_000, 2_000
"""Maximum numbers of devices and nodes of one server."""

MAX_NODE_BYTES, MAX_BYTES = 4 << 20, 64 << 20
"""Maximum approximate memory of the attributes of one node, and of all nodes."""

REMEMBERED_EVENTS = 64
"""Number of a node's last events that are remembered, so that repeated events are ignored."""


class Target(Struct, frozen=True):
    """A device's node and endpoint. `number` distinguishes the devices of one node, and is None for the only
    device of a node."""

    node: Node
    endpoint: Endpoint
    number: int | None = None


class KnownNode:
    """A node, the part of its devices' ids that names the node, the ids, the size that `KnownNodes` has counted, and
    the numbers of its last events."""

    def __init__(self, node: Node, prefix: str, key: str) -> None:
        self.node = node
        self.key = key
        self.ids: tuple[str, ...] = ()
        self.size = 0
        self.events: deque[Any] = deque(maxlen=REMEMBERED_EVENTS)
        self._prefix = prefix

    def id_of(self, endpoint: int) -> str:
        return f"{self._prefix}:{self.key}:{endpoint}"


class KnownNodes:
    """The nodes of one server by id, and the target of each device. `rejected` counts
    devices and values beyond the limits.

    An unreachable node keeps its last known values, because the server's values can be older.
    """

    def __init__(self, name: str) -> None:
        self.by_id: dict[int, KnownNode] = {}
        self.targets: dict[str, Target] = {}
        self.rejected = 0
        self._name = name
        self._keys: set[str] = set()
        self._size = 0

    def reject(self) -> None:
        """Count a value that is too large."""
        self.rejected += 1

    def ids_of(self, node_id: int) -> list[str]:
        known = self.by_id.get(node_id)
        return [] if known is None else [*known.ids]

    def ids_at(self, known: KnownNode, number: int) -> tuple[str, ...]:
        """Return the devices that a value at this endpoint can affect. The root endpoint has names and batteries, so
        it affects all devices."""
        device_id = known.id_of(number)
        if device_id in self.targets:
            return (device_id,)
        return known.ids if number == ROOT_ENDPOINT else ()

    def newest(self, node: Node) -> Node:
        """Return the new description if the server reaches the node. If the server does not reach the node, mark
        the known node as unavailable and return it."""
        known = self.by_id.get(node.id)
        if known is None or node.is_available:
            return node
        known.node.is_available = False
        return known.node

    def take(self, node: Node) -> list[str]:
        """Assign a target to each device of the node, within the limits. At the limits, the earlier nodes keep
        their targets, and the values of a known node become unknown. Return the ids of devices that the node no
        longer has."""
        known = self.by_id.get(node.id)
        former = () if known is None else known.ids
        endpoints = [each for _, each in sorted(node.endpoints.items()) if is_device(each)]
        room = MAX_DEVICES - len(self.targets) + len(former)
        is_full = known is None and (len(self.by_id) >= MAX_NODES or (endpoints and room == 0))
        if is_full or not self._has_room(node.size, 0 if known is None else known.size):
            self.rejected += max(len(endpoints), 1)
            if known is not None:
                known.node.forget_values()
                self._count(known, known.node.size)
            return []
        self.rejected += max(len(endpoints) - room, 0)
        if known is None:
            unique_id = node.unique_id
            known = KnownNode(node, self._name, unique_id if unique_id not in self._keys else f"{node.id:x}")
            self.by_id[node.id] = known
            self._keys.add(known.key)
        known.node = node
        self._count(known, node.size)
        is_single = len(endpoints) == 1
        targets = {
            known.id_of(endpoint.number): Target(node, endpoint, None if is_single else number)
            for number, endpoint in enumerate(endpoints[:room], 1)
        }
        for device_id in former:
            del self.targets[device_id]
        self.targets |= targets
        known.ids = tuple(targets)
        return [device_id for device_id in former if device_id not in targets]

    def set(self, known: KnownNode, at: Path, value: Any) -> bool:
        """Set an attribute if the hub reads it. Without room for the value, an attribute that has a value becomes
        unknown. Return whether the attribute was set."""
        node = known.node
        if not node.reads(at):
            return False
        growth = node.growth(at, value)
        if not self._has_room(node.size + growth, node.size):
            self.rejected += 1
            if node.value_at(at) is None:
                return False
            value, growth = None, node.growth(at, None)
        node.set(at, value, growth)
        self._count(known, node.size)
        return True

    def forget(self, node_id: int) -> tuple[str, ...]:
        """Forget a node. Return the ids of its devices."""
        known = self.by_id.pop(node_id)
        self._count(known, 0)
        for device_id in known.ids:
            del self.targets[device_id]
        self._keys.discard(known.key)
        return known.ids

    def _has_room(self, size: int, former: int) -> bool:
        """Return whether a node may have this size instead of its former size."""
        return size <= former or (size <= MAX_NODE_BYTES and self._size - former + size <= MAX_BYTES)

    def _count(self, known: KnownNode, size: int) -> None:
        self._size += size - known.size
        known.size = size
