"""Updates the server's nodes when events arrive, and publishes the nodes as devices."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from appliance.adapters.matter.clusters import ENERGY, SWITCH, is_device
from appliance.adapters.matter.nodes import ROOT_ENDPOINT, Endpoint, Node, parse_path
from appliance.adapters.matter.observation import observe
from appliance.adapters.matter.presses import press_of
from appliance.adapters.publisher import Publisher
from appliance.home.model import Observation

MAX_DEVICES, MAX_NODES = 2_000, 2_000
"""Maximum numbers of devices and nodes of one server."""

REMEMBERED_EVENTS = 64
"""Number of a node's last events that are remembered, so that repeated events are ignored."""


class Target(Struct, frozen=True):
    """A device's node and endpoint. `number` distinguishes the devices of one node, and is None for the only
    device of a node."""

    node: Node
    endpoint: Endpoint
    number: int | None = None


class _KnownNode:
    """A node, the part of its devices' ids that names the node, the ids, and the numbers of its last events."""

    def __init__(self, node: Node, key: str) -> None:
        self.node = node
        self.key = key
        self.ids: tuple[str, ...] = ()
        self.events: deque[Any] = deque(maxlen=REMEMBERED_EVENTS)

    def id_of(self, name: str, endpoint: int) -> str:
        return f"{name}:{self.key}:{endpoint}"


class LiveNodes:
    """The nodes of one server and their devices. `flushing` publishes the changes.

    An unreachable node keeps its last known values, because the server's values can be older. `suspects` are nodes
    that did not respond to a command. A suspect is unavailable until it responds or reports. `rejected` counts
    devices beyond the limits.
    """

    def __init__(self, name: str, publish: Publisher) -> None:
        self.suspects: set[int] = set()
        self.has_changes = asyncio.Event()
        self.rejected = 0
        self._name = name
        self._publish = publish
        self._nodes: dict[int, _KnownNode] = {}
        self._keys: set[str] = set()
        self._targets: dict[str, Target] = {}
        self._changed: dict[str, set[str]] = {}  # paths that have changed and are not yet published, by device
        self._waiting: dict[str, tuple[asyncio.Event, Callable[[], bool]]] = {}  # by device

    def target_of(self, device_id: str) -> Target | None:
        return self._targets.get(device_id)

    def ids_of(self, node_id: int) -> list[str]:
        known = self._nodes.get(node_id)
        return [] if known is None else [*known.ids]

    def is_away(self, target: Target) -> bool:
        """Return whether the device is known to be unreachable."""
        node = target.node
        return not node.is_available or node.id in self.suspects or not node.is_reachable(target.endpoint)

    def replacing_all(self, raw: Iterable[Any]) -> Iterator[None]:
        """Apply the server's list of nodes, in steps. Remove the nodes that the list does not contain. Raise
        `BadAnswer` on failure."""
        nodes: dict[int, Node] = {}
        for each in raw:
            node = Node(each)
            nodes[node.id] = self._newest(node)
            yield
        for node_id in self._nodes.keys() - nodes.keys():
            self._forget(node_id)
        for node_id in sorted(nodes, key=lambda each: (each not in self._nodes, each)):
            self._take_node(nodes[node_id])
            yield
        for device_id in self._publish.list_devices().keys() - self._targets.keys():
            self._publish.removed(device_id)
        for device_id in list(self._targets):
            self._publish_one(device_id)
            yield

    def handle(self, event: str, data: Any) -> None:
        """Apply a server event. Ignore unknown events. Raise `BadAnswer` for a malformed node."""
        handlers: Mapping[str, Callable[[Any], None]] = {
            "attribute_updated": self._on_attribute,
            "node_event": self._on_event,
            "node_added": self._on_node,
            "node_updated": self._on_node,
            "node_removed": self._on_node_removed,
            "endpoint_added": self._on_endpoint,
            "endpoint_removed": self._on_endpoint_removed,
        }
        if event in handlers:
            handlers[event](data)

    def suspect(self, node_id: int) -> None:
        """Publish the node's devices as unavailable, because the node did not respond to a command."""
        self.suspects.add(node_id)
        for device_id in self.ids_of(node_id):
            self._publish.availability(device_id, is_available=False)

    def trust(self, node_id: int) -> None:
        """Publish the node's devices as available, because the node responded or reported."""
        if node_id in self.suspects:
            self.suspects.discard(node_id)
            self._mark_changed(self.ids_of(node_id))

    def take_values(self, node_id: int, values: Any) -> None:
        """Apply the values of a response. The values are keyed by path."""
        for path, value in values.items() if isinstance(values, dict) else ():
            self._on_attribute([node_id, path, value])

    def flushing(self) -> Iterator[None]:
        """Publish all pending changes, one device per step."""
        self.has_changes.clear()
        for device_id in list(self._changed):
            if device_id in self._changed:
                self._publish_one(device_id)
            yield

    async def wait_until(
        self, device_id: str, is_done: Callable[[], bool], wait: Callable[[asyncio.Event], Any]
    ) -> bool:
        """Wait until `is_done` is true and the device is published, or until `wait` returns. Return whether `is_done`
        became true.

        Only one caller at a time may wait for a device.
        """
        is_over = asyncio.Event()
        self._waiting[device_id] = is_over, is_done
        try:
            if device_id in self._changed:
                self._publish_one(device_id)
            else:
                self._wake(device_id)
            await wait(is_over)
        finally:
            del self._waiting[device_id]
        return is_over.is_set()

    def _newest(self, node: Node) -> Node:
        """Return the new description if the server reaches the node. If the server does not reach the node, mark
        the known node as unavailable and return it."""
        known = self._nodes.get(node.id)
        if known is None or node.is_available:
            return node
        known.node.is_available = False
        return known.node

    def _on_attribute(self, data: Any) -> None:
        if not isinstance(data, list) or len(data) != 3 or not isinstance(data[0], int):
            return
        known, path, value = self._nodes.get(data[0]), data[1], data[2]
        if known is None or (at := parse_path(path)) is None:
            return
        node = known.node
        ids = self._ids_at(known, at[0]) if node.is_available else ()
        is_changed = node.value_at(at) != value
        for device_id in ids if is_changed else ():
            if path in self._changed.get(device_id, ()):
                self._publish_one(device_id)  # triggers must receive each change, in order
        node.set(at, value)
        self.trust(node.id)
        self._mark_changed(ids, path if is_changed else None)

    def _ids_at(self, known: _KnownNode, number: int) -> tuple[str, ...]:
        """Return the devices that a value at this endpoint can affect. The root endpoint has names and batteries, so
        it affects all devices."""
        device_id = known.id_of(self._name, number)
        if device_id in self._targets:
            return (device_id,)
        return known.ids if number == ROOT_ENDPOINT else ()

    def _mark_changed(self, device_ids: Iterable[str], path: str | None = None) -> None:
        for device_id in device_ids:
            paths = self._changed.setdefault(device_id, set())
            if path is not None:
                paths.add(path)
            self.has_changes.set()

    def _on_node(self, data: Any) -> None:
        described = Node(data)
        known = self._nodes.get(described.id)
        if described.is_available and (known is None or not known.node.is_available):
            self.suspects.discard(described.id)
        self._flush_node(described.id)
        node = self._newest(described)
        self._take_node(node)
        self._mark_changed(self.ids_of(node.id))

    def _on_node_removed(self, data: Any) -> None:
        if isinstance(data, int) and data in self._nodes:
            self._forget(data)

    def _on_endpoint(self, data: Any) -> None:
        """Update the node, because the values of an endpoint arrive before its description."""
        known, _ = self._named(data)
        if known is not None:
            self._take_node(known.node)
            self._mark_changed(known.ids)

    def _on_endpoint_removed(self, data: Any) -> None:
        known, number = self._named(data)
        if known is not None:
            known.node.remove(number)
            self._take_node(known.node)

    def _on_event(self, data: Any) -> None:
        known, number = self._named(data)
        if known is None:
            return
        node = known.node
        self.trust(node.id)
        endpoint = node.endpoints.get(number)
        if (energy := _measured_energy(data)) is not None:
            self._on_attribute([node.id, f"{number}/{ENERGY}/1", {"0": energy}])
        if data.get("cluster_id") != SWITCH or endpoint is None or data.get("event_number") in known.events:
            return
        known.events.append(data.get("event_number"))
        press = press_of(endpoint, data.get("event_id"), data.get("data"))
        device_id = known.id_of(self._name, number)
        if press is not None and device_id in self._targets:
            self._flush_node(node.id)
            self._publish.event(device_id, *press)

    def _named(self, data: Any) -> tuple[_KnownNode | None, int]:
        """Return the node and the endpoint number of an event, or None and -1 if they are unknown."""
        stated = data if isinstance(data, dict) else {}
        node_id, endpoint = stated.get("node_id"), stated.get("endpoint_id")
        known = self._nodes.get(node_id) if isinstance(node_id, int) else None
        return known, endpoint if isinstance(endpoint, int) else -1

    def _take_node(self, node: Node) -> None:
        """Assign a target to each device of the node, within the limits. At the limits, the earlier nodes keep
        their targets."""
        known = self._nodes.get(node.id)
        former = () if known is None else known.ids
        endpoints = [each for _, each in sorted(node.endpoints.items()) if is_device(each)]
        room = MAX_DEVICES - len(self._targets) + len(former)
        if known is None and (len(self._nodes) >= MAX_NODES or (endpoints and room == 0)):
            self.rejected += max(len(endpoints), 1)
            return
        self.rejected += max(len(endpoints) - room, 0)
        if known is None:
            unique_id = node.unique_id
            known = _KnownNode(node, unique_id if unique_id not in self._keys else f"{node.id:x}")
            self._nodes[node.id] = known
            self._keys.add(known.key)
        known.node = node
        is_single = len(endpoints) == 1
        targets = {
            known.id_of(self._name, endpoint.number): Target(node, endpoint, None if is_single else number)
            for number, endpoint in enumerate(endpoints[:room], 1)
        }
        for device_id in former:
            del self._targets[device_id]
        self._targets |= targets
        known.ids = tuple(targets)
        for device_id in former:
            if device_id not in targets:
                self._publish.removed(device_id)

    def _forget(self, node_id: int) -> None:
        known = self._nodes.pop(node_id)
        for device_id in known.ids:
            del self._targets[device_id]
            self._changed.pop(device_id, None)
            self._publish.removed(device_id)
        self._keys.discard(known.key)
        self.suspects.discard(node_id)

    def _flush_node(self, node_id: int) -> None:
        """Publish the node's pending changes before its next message is processed."""
        for device_id in self.ids_of(node_id):
            if self._changed.get(device_id):
                self._publish_one(device_id)

    def _publish_one(self, device_id: str) -> None:
        self._changed.pop(device_id, None)
        if (target := self._targets.get(device_id)) is None:
            return
        if target.node.is_available and target.node.id not in self.suspects:
            self._publish.device(self._observe(device_id, target))
        elif self._publish.find(device_id) is None:
            self._publish.device(self._observe(device_id, target, is_old=True))
        else:
            self._publish.availability(device_id, is_available=False)
        self._wake(device_id)

    def _wake(self, device_id: str) -> None:
        """Wake the waiting task if the device reports the result."""
        if device_id in self._waiting:
            is_over, is_done = self._waiting[device_id]
            if is_done():
                is_over.set()

    def _observe(self, device_id: str, target: Target, *, is_old: bool = False) -> Observation:
        node, endpoint = target.node, target.endpoint
        aggregator = node.aggregator_of(endpoint)
        parent_id = None if aggregator is None else self._nodes[node.id].id_of(self._name, aggregator.number)
        return observe(device_id, node, endpoint, target.number, parent_id, is_old=is_old)


def _measured_energy(event: Mapping[str, Any]) -> int | None:
    """Return the imported energy in mWh of a CumulativeEnergyMeasured event, because some servers send this event
    without the attribute."""
    if (event.get("cluster_id"), event.get("event_id")) != (ENERGY, 0):
        return None
    data = event.get("data")
    imported = data.get("energyImported") if isinstance(data, dict) else None
    energy = imported.get("energy") if isinstance(imported, dict) else None
    return energy if isinstance(energy, int) else None
