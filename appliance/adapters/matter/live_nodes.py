"""Applies a server's events to its nodes, and publishes their devices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from appliance.adapters.confirmation import wait_for_result
from appliance.adapters.matter.clusters import ENERGY, READ_CLUSTERS, SWITCH
from appliance.adapters.matter.known_nodes import KnownNode, KnownNodes, Target
from appliance.adapters.matter.nodes import Node, parse_path
from appliance.adapters.matter.observation import observe
from appliance.adapters.matter.presses import press_of
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.home.model import Observation


class LiveNodes:
    """Applies the events of one server to its nodes. `flushing` publishes the changed devices.

    `suspects` are nodes that did not respond to a command. A suspect is unavailable until it responds or reports.
    """

    def __init__(self, name: str, publish: Publisher) -> None:
        self.suspects: set[int] = set()
        self.has_changes = asyncio.Event()
        self.nodes = KnownNodes(name)
        self._publish = publish
        self._changed: dict[str, set[str]] = {}  # paths that have changed and are not yet published, by device
        self._waiting: dict[str, tuple[asyncio.Event, Callable[[Target], bool]]] = {}  # by device

    def is_away(self, target: Target) -> bool:
        """Return whether the device is known to be unreachable."""
        node = target.node
        return not node.is_available or node.id in self.suspects or not node.is_reachable(target.endpoint)

    def replacing_all(self, raw: Iterable[Any]) -> Iterator[None]:
        """Apply the server's list of nodes, in steps. Remove the nodes that the list does not contain. Raise
        `BadAnswer` on failure."""
        nodes: dict[int, Node] = {}
        for each in raw:
            node = Node(each, READ_CLUSTERS)
            nodes[node.id] = self.nodes.newest(node)
            yield
        for node_id in self.nodes.by_id.keys() - nodes.keys():
            self._forget(node_id)
            yield
        for node_id in sorted(nodes, key=lambda each: (each not in self.nodes.by_id, each)):
            self._take_node(nodes[node_id])
            yield
        self._mark_changed(self._publish.list_devices().keys() - self.nodes.targets.keys())
        self._mark_changed(self.nodes.targets)
        yield from self.flushing()

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
        for device_id in self.nodes.ids_of(node_id):
            self._publish.availability(device_id, is_available=False)

    def trust(self, node_id: int) -> None:
        """Publish the node's devices as available, because the node responded or reported."""
        if node_id in self.suspects:
            self.suspects.discard(node_id)
            self._mark_changed(self.nodes.ids_of(node_id))

    def take_values(self, node_id: int, values: Any) -> None:
        """Apply the values of a response. The values are keyed by path."""
        for path, value in values.items() if isinstance(values, dict) else ():
            self._on_attribute([node_id, path, value])

    def flushing(self) -> Iterator[None]:
        """Publish all pending changes, including removals, one device per step."""
        self.has_changes.clear()
        for device_id in list(self._changed):
            if device_id in self._changed:
                self._publish_one(device_id)
            yield

    async def wait_until(self, device_id: str, is_done: Callable[[Target], bool], clock: Clock, secs: float) -> bool:
        """Wait until `is_done` accepts the device, which is published and reachable. Return whether this happened
        within `secs`.

        Only one caller at a time may wait for a device.
        """
        is_over = asyncio.Event()
        self._waiting[device_id] = is_over, is_done
        try:
            if device_id in self._changed:
                self._publish_one(device_id)
            else:
                self._wake(device_id)
            return await wait_for_result(clock, is_over, max(secs, 0.0))
        finally:
            del self._waiting[device_id]

    def _on_attribute(self, data: Any) -> None:
        if not isinstance(data, list) or len(data) != 3 or not isinstance(data[0], int):
            return
        known, path, value = self.nodes.by_id.get(data[0]), data[1], data[2]
        if known is None or (at := parse_path(path)) is None:
            return
        node = known.node
        ids = self.nodes.ids_at(known, at[0]) if node.is_available else ()
        is_changed = node.value_at(at) != value
        for device_id in ids if is_changed else ():
            if path in self._changed.get(device_id, ()):
                self._publish_one(device_id)  # triggers must receive each change, in order
        is_set = self.nodes.set(known, at, value)
        self.trust(node.id)
        self._mark_changed(ids, path if is_changed and is_set else None)

    def _mark_changed(self, device_ids: Iterable[str], path: str | None = None) -> None:
        for device_id in device_ids:
            paths = self._changed.setdefault(device_id, set())
            if path is not None:
                paths.add(path)
            self.has_changes.set()

    def _on_node(self, data: Any) -> None:
        described = Node(data, READ_CLUSTERS)
        known = self.nodes.by_id.get(described.id)
        if described.is_available and (known is None or not known.node.is_available):
            self.suspects.discard(described.id)
        self._flush_node(described.id)
        node = self.nodes.newest(described)
        self._take_node(node)
        self._mark_changed(self.nodes.ids_of(node.id))

    def _on_node_removed(self, data: Any) -> None:
        if isinstance(data, int) and data in self.nodes.by_id:
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
        device_id = known.id_of(number)
        if press is not None and device_id in self.nodes.targets:
            self._flush_node(node.id)
            self._publish.event(device_id, *press)

    def _named(self, data: Any) -> tuple[KnownNode | None, int]:
        """Return the node and the endpoint number of an event, or None and -1 if they are unknown."""
        stated = data if isinstance(data, dict) else {}
        node_id, endpoint = stated.get("node_id"), stated.get("endpoint_id")
        known = self.nodes.by_id.get(node_id) if isinstance(node_id, int) else None
        return known, endpoint if isinstance(endpoint, int) else -1

    def _take_node(self, node: Node) -> None:
        self._mark_changed(self.nodes.take(node))

    def _forget(self, node_id: int) -> None:
        self._mark_changed(self.nodes.forget(node_id))
        self.suspects.discard(node_id)

    def _flush_node(self, node_id: int) -> None:
        """Publish the node's pending changes before its next message is processed."""
        for device_id in self.nodes.ids_of(node_id):
            if self._changed.get(device_id):
                self._publish_one(device_id)

    def _publish_one(self, device_id: str) -> None:
        self._changed.pop(device_id, None)
        if (target := self.nodes.targets.get(device_id)) is None:
            self._publish.removed(device_id)
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
        if device_id in self._waiting and (target := self.nodes.targets.get(device_id)) is not None:
            is_over, is_done = self._waiting[device_id]
            if not self.is_away(target) and is_done(target):
                is_over.set()

    def _observe(self, device_id: str, target: Target, *, is_old: bool = False) -> Observation:
        node, endpoint = target.node, target.endpoint
        aggregator = node.aggregator_of(endpoint)
        parent_id = None if aggregator is None else self.nodes.by_id[node.id].id_of(aggregator.number)
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
