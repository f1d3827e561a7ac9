"""The nodes that the server knows, kept up to date by what it tells, and published as devices."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from appliance.adapters.matter.clusters import POWER_SOURCE, SWITCH, class_of, is_device, kind_of, read
from appliance.adapters.matter.nodes import ROOT_ENDPOINT, Endpoint, Node
from appliance.adapters.matter.requests import command_specs_of
from appliance.adapters.publisher import Publisher
from appliance.home.model import Observation
from appliance.home.values import Value

REMEMBERED_EVENTS = 64
"""Numbers of a node's events that are remembered: one that comes twice counts once."""

_POWERED_ENDPOINTS = 31
"""The attribute of a power source that lists what it powers."""

_LATCHES, _RELEASES, _TELLS_LONG, _COUNTS, _TAKES_ACTIONS = 1, 4, 8, 16, 32
"""Features: it stays where it is put; it tells releases, and long presses; it counts, in one of two ways."""

_LATCHED, _PRESSED, _LONG, _SHORT_RELEASE, _LONG_RELEASE, _COUNTED = 0, 1, 2, 3, 4, 6
"""Events of the cluster. 5 says that presses are still being counted."""

_BY_COUNT = {1: "single", 2: "double"}
"""More are `triple`; how many they were, the data says."""


class Place(Struct, frozen=True):
    """Where a device is: its node, and the endpoint there."""

    node: Node
    endpoint: Endpoint


class LiveNodes:
    """Every node of one server. What changes is gathered until `flush` publishes it.

    A node that the server does not reach keeps what it showed: what the server says of it then is old. `suspects` are
    the nodes that left a command unanswered, although the server says that it reaches them.
    """

    def __init__(self, name: str, publish: Publisher) -> None:
        self.suspects: set[int] = set()
        self.has_changes = asyncio.Event()
        self._name = name
        self._publish = publish
        self._nodes: dict[int, Node] = {}
        self._keys: dict[int, str] = {}
        self._places: dict[str, Place] = {}
        self._changed: dict[str, None] = {}
        self._events: dict[int, deque[Any]] = {}
        self._waiting: dict[asyncio.Event, Callable[[], bool]] = {}

    def place_of(self, device_id: str) -> Place | None:
        """Where a device is; None for one that is not there."""
        return self._places.get(device_id)

    def ids_of(self, node_id: int) -> list[str]:
        """The devices of a node."""
        return [id_ for id_, place in self._places.items() if place.node.id == node_id]

    def is_away(self, node: Node) -> bool:
        """Whether the node is not reached, as far as is known."""
        return not node.is_available or node.id in self.suspects

    def replacing_all(self, raw: Iterable[Any]) -> Iterator[None]:
        """Take in the server's list, in steps: nodes that are missing from it are gone. Raises `BadAnswer`."""
        nodes: dict[int, Node] = {}
        for each in raw:
            node = Node(each)
            nodes[node.id] = self._newest(node)
            yield
        self._nodes = dict(sorted(nodes.items()))
        self._keys = {number: key for number, key in self._keys.items() if number in self._nodes}
        self.suspects.clear()
        self._place_all()
        for device_id in list(self._places):
            self._publish_all([device_id])
            yield

    def handle(self, event: str, data: Any) -> None:
        """What the server tells. Raises `BadAnswer` for a node that is none; events that are not known pass."""
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
        """The node left a command unanswered: its devices are unavailable until anything is heard of it."""
        self.suspects.add(node_id)
        for device_id in self.ids_of(node_id):
            self._publish.availability(device_id, is_available=False)

    def trust(self, node_id: int) -> None:
        """The node has been heard of."""
        if node_id in self.suspects:
            self.suspects.discard(node_id)
            self._publish_all(self.ids_of(node_id))

    def take_values(self, node_id: int, values: Any) -> None:
        """What a node answered when it was asked, by path; it is published by the next `flush`."""
        for path, value in values.items() if isinstance(values, dict) else ():
            self._on_attribute([node_id, path, value])

    def flush(self) -> None:
        """Publish what changed, and wake those who wait for it."""
        self.has_changes.clear()
        changed, self._changed = self._changed, {}
        self._publish_all(changed)
        for is_over, is_done in self._waiting.items():
            if is_done():
                is_over.set()

    async def wait_until(self, is_done: Callable[[], bool], wait: Callable[[asyncio.Event], Any]) -> bool:
        """Whether it came true, and was published, while `wait` waited for the event that it is given."""
        is_over = asyncio.Event()
        self._waiting[is_over] = is_done
        try:
            self.flush()
            await wait(is_over)
        finally:
            del self._waiting[is_over]
        return is_over.is_set()

    def _newest(self, node: Node) -> Node:
        """The node as it is described now; what is known of it already, where the server does not reach it."""
        known = self._nodes.get(node.id)
        if known is None or node.is_available:
            return node
        known.is_available = False
        return known

    def _on_attribute(self, data: Any) -> None:
        node, path, value = self._known(data)
        if node is None:
            return
        number = node.set(path, value)
        self.trust(node.id)
        if number is not None and node.is_available:
            # What stands on the root or on another endpoint may concern any device of the node: names, batteries.
            own = [id_ for id_ in self.ids_of(node.id) if self._places[id_].endpoint.number == number]
            self._changed |= dict.fromkeys(own or (self.ids_of(node.id) if number == ROOT_ENDPOINT else ()))
            self.has_changes.set()

    def _known(self, data: Any) -> tuple[Node | None, Any, Any]:
        if not isinstance(data, list) or len(data) != 3 or not isinstance(data[0], int):
            return None, None, None
        return self._nodes.get(data[0]), data[1], data[2]

    def _on_node(self, data: Any) -> None:
        node = self._newest(Node(data))
        if node.is_available:
            self.suspects.discard(node.id)
        self._nodes[node.id] = node
        self._place_all()
        self._publish_all(self.ids_of(node.id))

    def _on_node_removed(self, data: Any) -> None:
        if isinstance(data, int) and self._nodes.pop(data, None) is not None:
            self._keys.pop(data, None)
            self._events.pop(data, None)
            self._place_all()

    def _on_endpoint(self, data: Any) -> None:
        """An endpoint has come, and its values before it."""
        node, _ = self._named(data)
        if node is not None:
            self._place_all()
            self._publish_all(self.ids_of(node.id))

    def _on_endpoint_removed(self, data: Any) -> None:
        node, number = self._named(data)
        if node is not None:
            node.endpoints.pop(number, None)
            self._place_all()

    def _on_event(self, data: Any) -> None:
        node, number = self._named(data)
        if node is None:
            return
        self.trust(node.id)
        heard = self._events.setdefault(node.id, deque(maxlen=REMEMBERED_EVENTS))
        endpoint = node.endpoints.get(number)
        if data.get("cluster_id") != SWITCH or endpoint is None or data.get("event_number") in heard:
            return
        heard.append(data.get("event_number"))
        press = press_of(endpoint, data.get("event_id"), data.get("data"))
        if press is not None:
            self._publish.event(self._id(node, endpoint), *press)

    def _named(self, data: Any) -> tuple[Node | None, int]:
        """The node that an event names, and the number of the endpoint there."""
        told = data if isinstance(data, dict) else {}
        node_id, endpoint = told.get("node_id"), told.get("endpoint_id")
        node = self._nodes.get(node_id) if isinstance(node_id, int) else None
        return node, endpoint if isinstance(endpoint, int) else -1

    def _place_all(self) -> None:
        """Give each device its id, and let the home forget those that are not there any more."""
        taken = set(self._keys.values())
        for node in self._nodes.values():
            if node.id not in self._keys:
                key = node.unique_id if node.unique_id not in taken else f"{node.id:x}"
                self._keys[node.id] = key
                taken.add(key)
        places = [
            Place(node, endpoint)
            for node in self._nodes.values()
            for endpoint in sorted(node.endpoints.values(), key=lambda each: each.number)
            if is_device(endpoint)
        ]
        self._places = {self._id(place.node, place.endpoint): place for place in places}
        if self._publish.devices().keys() - self._places.keys():
            self._publish.full_list((), present=self._places)

    def _id(self, node: Node, endpoint: Endpoint) -> str:
        return f"{self._name}:{self._keys[node.id]}:{endpoint.number}"

    def _publish_all(self, device_ids: Iterable[str]) -> None:
        for device_id in device_ids:
            if (place := self._places.get(device_id)) is None:
                continue
            if not self.is_away(place.node):
                self._publish.device(self._observe(device_id, place))
            elif self._publish.find(device_id) is None:
                self._publish.device(self._observe(device_id, place, is_old=True))
            else:
                self._publish.availability(device_id, is_available=False)

    def _observe(self, device_id: str, place: Place, *, is_old: bool = False) -> Observation:
        """The device; without its values where those are old."""
        node, endpoint = place.node, place.endpoint
        shows, wrong = ({}, {}) if is_old else read(endpoint, _power_source(node, endpoint))
        commands = command_specs_of(endpoint)
        aggregator = node.aggregator_of(endpoint)
        parent = None if aggregator is None else self._id(node, aggregator)
        alike = [
            each.number for each in sorted(node.endpoints.values(), key=lambda each: each.number) if is_device(each)
        ]
        happens = events_of(endpoint)
        number = alike.index(endpoint.number) + 1 if len(alike) > 1 else None
        return Observation(
            device_id=device_id,
            kind=kind_of(endpoint, has_commands=bool(commands)),
            attributes=shows,
            wrong=wrong,
            name=node.name_of(endpoint, number),
            info=node.info_of(endpoint, parent, class_of(endpoint)),
            commands=commands,
            vendor_specific={
                "node_id": node.id,
                "endpoint": endpoint.number,
                **({"events": happens} if happens else {}),
            },
            is_available=not is_old and node.is_reachable(endpoint),
        )


def _power_source(node: Node, endpoint: Endpoint) -> Endpoint | None:
    """The endpoint whose battery this device runs on: its own, else one that lists it, else the root."""
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


def events_of(endpoint: Endpoint) -> list[str]:
    """The events that a switch may have, by its features; none for what is no switch."""
    if SWITCH not in endpoint.clusters:
        return []
    if endpoint.has_feature(SWITCH, _LATCHES):
        return ["hold", "release"]
    counts = endpoint.has_feature(SWITCH, _COUNTS) or endpoint.has_feature(SWITCH, _TAKES_ACTIONS)
    long = ["long", "release"] if endpoint.has_feature(SWITCH, _TELLS_LONG) else []
    return ["single", *(["double", "triple"] if counts else []), *long]


def press_of(endpoint: Endpoint, event_id: Any, data: Any) -> tuple[str, Mapping[str, Value]] | None:
    """The event of the device and its data; None where the switch says it once more in another way."""
    told = data if isinstance(data, dict) else {}
    position = told.get("newPosition", told.get("previousPosition"))
    more: dict[str, Value] = {"position": position} if isinstance(position, int) else {}
    counts = endpoint.has_feature(SWITCH, _COUNTS) or endpoint.has_feature(SWITCH, _TAKES_ACTIONS)
    releases = endpoint.has_feature(SWITCH, _RELEASES)
    if event_id == _LATCHED:
        return ("hold" if position else "release"), more
    if event_id == _LONG:
        return "long", more
    if event_id == _LONG_RELEASE:
        return "release", more
    if event_id == _COUNTED:
        count = told.get("totalNumberOfPressesCounted")
        if not isinstance(count, int) or count < 1:  # a press that was broken off
            return None
        return _BY_COUNT.get(count, "triple"), {**more, "count": count}
    is_single = not counts and event_id == (_SHORT_RELEASE if releases else _PRESSED)
    return ("single", more) if is_single else None
