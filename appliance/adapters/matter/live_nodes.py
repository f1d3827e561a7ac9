"""Updates the server's nodes when events arrive, and publishes the nodes as devices."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from appliance.adapters.matter.clusters import (
    ENERGY,
    POWER_SOURCE,
    SWITCH,
    class_of,
    find_nulls,
    is_device,
    kind_of,
    read,
)
from appliance.adapters.matter.nodes import ROOT_ENDPOINT, Endpoint, Node, parse_path
from appliance.adapters.matter.presses import events_of, press_of
from appliance.adapters.matter.requests import command_specs_of
from appliance.adapters.publisher import Publisher
from appliance.home.model import Observation

MAX_DEVICES, MAX_NODES = 2_000, 2_000
"""Maximum numbers of devices and nodes of one server."""

REMEMBERED_EVENTS = 64
"""Number of a node's last events that are remembered, so that repeated events are ignored."""

_POWERED_ENDPOINTS = 31
"""The attribute with the list of the endpoints that a power source supplies."""


class Target(Struct, frozen=True):
    """A device's node and endpoint. `number` distinguishes the devices of one node, and is None for the only
    device of a node."""

    node: Node
    endpoint: Endpoint
    number: int | None = None


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
        self._nodes: dict[int, Node] = {}
        self._keys: dict[int, str] = {}
        self._taken_keys: set[str] = set()
        self._targets: dict[str, Target] = {}
        self._ids: dict[int, tuple[str, ...]] = {}
        self._changed: dict[str, set[str]] = {}  # paths that have changed and are not yet published, by device
        self._events: dict[int, deque[Any]] = {}
        self._waiting: dict[str, tuple[asyncio.Event, Callable[[], bool]]] = {}  # by device

    def target_of(self, device_id: str) -> Target | None:
        return self._targets.get(device_id)

    def ids_of(self, node_id: int) -> list[str]:
        return list(self._ids.get(node_id, ()))

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
        known.is_available = False
        return known

    def _on_attribute(self, data: Any) -> None:
        if not isinstance(data, list) or len(data) != 3 or not isinstance(data[0], int):
            return
        node, path, value = self._nodes.get(data[0]), data[1], data[2]
        if node is None or (at := parse_path(path)) is None:
            return
        ids = self._ids_at(node, at[0]) if node.is_available else ()
        is_changed = node.value_at(at) != value
        for device_id in ids if is_changed else ():
            if path in self._changed.get(device_id, ()):
                self._publish_one(device_id)  # triggers must receive each change, in order
        node.set(at, value)
        self.trust(node.id)
        self._mark_changed(ids, path if is_changed else None)

    def _ids_at(self, node: Node, number: int) -> tuple[str, ...]:
        """Return the devices that a value at this endpoint can affect. The root endpoint has names and batteries, so
        it affects all devices."""
        device_id = f"{self._name}:{self._keys[node.id]}:{number}"
        if device_id in self._targets:
            return (device_id,)
        return self._ids.get(node.id, ()) if number == ROOT_ENDPOINT else ()

    def _mark_changed(self, device_ids: Iterable[str], path: str | None = None) -> None:
        for device_id in device_ids:
            paths = self._changed.setdefault(device_id, set())
            if path is not None:
                paths.add(path)
            self.has_changes.set()

    def _on_node(self, data: Any) -> None:
        described = Node(data)
        known = self._nodes.get(described.id)
        if described.is_available and (known is None or not known.is_available):
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
        node, _ = self._named(data)
        if node is not None:
            self._take_node(node)
            self._mark_changed(self.ids_of(node.id))

    def _on_endpoint_removed(self, data: Any) -> None:
        node, number = self._named(data)
        if node is not None:
            node.remove(number)
            self._take_node(node)

    def _on_event(self, data: Any) -> None:
        node, number = self._named(data)
        if node is None:
            return
        self.trust(node.id)
        known = self._events.setdefault(node.id, deque(maxlen=REMEMBERED_EVENTS))
        endpoint = node.endpoints.get(number)
        if (energy := _measured_energy(data)) is not None:
            self._on_attribute([node.id, f"{number}/{ENERGY}/1", {"0": energy}])
        if data.get("cluster_id") != SWITCH or endpoint is None or data.get("event_number") in known:
            return
        known.append(data.get("event_number"))
        press = press_of(endpoint, data.get("event_id"), data.get("data"))
        device_id = self._id(node, endpoint)
        if press is not None and device_id in self._targets:
            self._flush_node(node.id)
            self._publish.event(device_id, *press)

    def _named(self, data: Any) -> tuple[Node | None, int]:
        """Return the node and the endpoint number of an event, or None and -1 if they are unknown."""
        stated = data if isinstance(data, dict) else {}
        node_id, endpoint = stated.get("node_id"), stated.get("endpoint_id")
        node = self._nodes.get(node_id) if isinstance(node_id, int) else None
        return node, endpoint if isinstance(endpoint, int) else -1

    def _take_node(self, node: Node) -> None:
        """Assign a target to each device of the node, within the limits. At the limits, the earlier nodes keep
        their targets."""
        known = self._ids.get(node.id, ())
        endpoints = [each for _, each in sorted(node.endpoints.items()) if is_device(each)]
        room = MAX_DEVICES - len(self._targets) + len(known)
        if node.id not in self._nodes and (len(self._nodes) >= MAX_NODES or (endpoints and room == 0)):
            self.rejected += max(len(endpoints), 1)
            return
        self.rejected += max(len(endpoints) - room, 0)
        self._nodes[node.id] = node
        if node.id not in self._keys:
            unique_id = node.unique_id
            self._keys[node.id] = unique_id if unique_id not in self._taken_keys else f"{node.id:x}"
            self._taken_keys.add(self._keys[node.id])
        is_single = len(endpoints) == 1
        targets = {
            self._id(node, endpoint): Target(node, endpoint, None if is_single else number)
            for number, endpoint in enumerate(endpoints[:room], 1)
        }
        for device_id in known:
            del self._targets[device_id]
        self._targets |= targets
        self._ids[node.id] = tuple(targets)
        for device_id in known:
            if device_id not in targets:
                self._publish.removed(device_id)

    def _forget(self, node_id: int) -> None:
        for device_id in self._ids.pop(node_id, ()):
            del self._targets[device_id]
            self._changed.pop(device_id, None)
            self._publish.removed(device_id)
        self._taken_keys.discard(self._keys.pop(node_id, ""))
        self._nodes.pop(node_id, None)
        self._events.pop(node_id, None)
        self.suspects.discard(node_id)

    def _id(self, node: Node, endpoint: Endpoint) -> str:
        return f"{self._name}:{self._keys[node.id]}:{endpoint.number}"

    def _flush_node(self, node_id: int) -> None:
        """Publish the node's pending changes before its next message is processed."""
        for device_id in self._ids.get(node_id, ()):
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
        """Return the device's observation. If `is_old` is true, omit values that may be outdated."""
        node, endpoint = target.node, target.endpoint
        power_source = _power_source(node, endpoint)
        shows, wrong = ({}, {}) if is_old else read(endpoint, power_source)
        commands = command_specs_of(endpoint)
        aggregator = node.aggregator_of(endpoint)
        parent = None if aggregator is None else self._id(node, aggregator)
        announced = {"events": events_of(endpoint), "attributes": find_nulls(endpoint, power_source)}
        return Observation(
            device_id=device_id,
            kind=kind_of(endpoint, has_commands=bool(commands)),
            attributes=shows,
            wrong=wrong,
            name=node.name_of(endpoint, target.number),
            info=node.info_of(endpoint, parent, class_of(endpoint)),
            commands=commands,
            vendor_specific={
                "node_id": node.id,
                "endpoint": endpoint.number,
                **{name: each for name, each in announced.items() if each},
            },
            is_available=not is_old and node.is_reachable(endpoint),
        )


def _measured_energy(event: Mapping[str, Any]) -> int | None:
    """Return the imported energy in mWh of a CumulativeEnergyMeasured event, because some servers send this event
    without the attribute."""
    if (event.get("cluster_id"), event.get("event_id")) != (ENERGY, 0):
        return None
    data = event.get("data")
    imported = data.get("energyImported") if isinstance(data, dict) else None
    energy = imported.get("energy") if isinstance(imported, dict) else None
    return energy if isinstance(energy, int) else None


def _power_source(node: Node, endpoint: Endpoint) -> Endpoint | None:
    """Return the endpoint with the battery: this endpoint, an endpoint whose list includes it, or the root
    endpoint."""
    sources = [each for each in node.endpoints.values() if POWER_SOURCE in each.clusters]
    if endpoint in sources:
        return endpoint
    listing = (each for each in sources if endpoint.number in _powered_by(each))
    is_bridged = node.aggregator_of(endpoint) is not None
    root = None if is_bridged else next((each for each in sources if each.number == ROOT_ENDPOINT), None)
    return next(listing, root)


def _powered_by(source: Endpoint) -> list[Any]:
    listed = source.get(POWER_SOURCE, _POWERED_ENDPOINTS)
    return listed if isinstance(listed, list) else []
