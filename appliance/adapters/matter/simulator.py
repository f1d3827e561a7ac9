"""Simulates a Matter controller server with a few devices."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from aiohttp import WSMsgType, web

from appliance.adapters.simulated_device import SimulatedDevice

SERVER_INFO = {
    "fabric_id": 1,
    "compressed_fabric_id": 10430590687425167008,
    "schema_version": 11,
    "min_supported_schema_version": 9,
    "sdk_version": "2025.7.0",
    "wifi_credentials_set": False,
    "thread_credentials_set": False,
    "bluetooth_enabled": False,
}

Clusters = Mapping[int, Mapping[int, Any]]
"""Values of an endpoint, by cluster and attribute."""

LAMP: Clusters = {
    3: {0: 0},
    6: {0: False, 65529: [0, 1, 2], 65532: 1},
    8: {0: 128, 2: 1, 3: 254, 65529: [0, 4], 65532: 3},
    29: {0: [{"0": 257, "1": 3}], 3: []},
}
PLUG: Clusters = {
    3: {0: 0},
    6: {0: False, 65529: [0, 1, 2], 65532: 1},
    29: {0: [{"0": 266, "1": 3}], 3: []},
    144: {4: 230_100, 5: 185, 8: 42_500},
    145: {1: {"0": 1_234_567}},
}

HEATING_UNIT: Clusters = {
    3: {0: 0},
    29: {0: [{"0": 769, "1": 3}], 3: []},
    513: {0: 2010, 17: 2600, 18: 2000, 21: 700, 22: 3000, 23: 1600, 24: 3200, 27: 4, 28: 4, 65532: 3},
}
LOCK: Clusters = {3: {0: 0}, 29: {0: [{"0": 10, "1": 3}], 3: []}, 257: {0: 1, 65529: [0, 1], 65532: 0}}
CONTACT: Clusters = {29: {0: [{"0": 21, "1": 2}], 3: []}, 47: {12: 174}, 69: {0: True}}
THERMOMETER: Clusters = {29: {0: [{"0": 770, "1": 3}], 3: []}, 1026: {0: 2150}}


def simulated_node(number: int, product: str, *endpoints: Clusters) -> dict[str, Any]:
    """Return a node as the server describes it. The endpoints are numbered from 1."""
    root: Clusters = {
        29: {0: [{"0": 22, "1": 4}], 3: [*range(1, len(endpoints) + 1)]},
        40: {0: 21, 1: "Acme", 3: product, 5: "", 10: "1.2.3", 14: product, 15: f"SN-{number}", 18: f"sim-{number}"},
    }
    attributes = {
        f"{endpoint}/{cluster}/{attribute}": value
        for endpoint, clusters in enumerate((root, *endpoints))
        for cluster, values in clusters.items()
        for attribute, value in values.items()
    }
    return {"node_id": number, "available": True, "is_bridge": False, "attributes": attributes}


class MatterSimulator(SimulatedDevice):
    """Simulates a controller server. `nodes` holds the server's nodes by number. Change the nodes with `set`, `add`,
    and `remove`.

    `asked` holds the requests, and `info` the server's description of itself. If `sends_events` is false, no events
    are sent. Requests to nodes in `mute` get no response. `base` holds the arguments of `SimulatedDevice`.
    """

    content_type = "application/json"

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self.nodes: dict[int, dict[str, Any]] = {
            1: simulated_node(1, "Simulated lamp", LAMP),
            2: simulated_node(2, "Simulated plug", PLUG),
        }
        self.info = dict(SERVER_INFO)
        self.asked: list[dict[str, Any]] = []
        self.sends_events = True
        self.mute: set[int] = set()
        self._events: list[dict[str, Any]] = []
        self._sockets: set[web.WebSocketResponse] = set()

    async def set(self, node_id: int, path: str, value: Any) -> None:
        """Set a value, and send the event if the value has changed."""
        self._set(node_id, path, value)
        await self._send_events()

    async def add(self, node: dict[str, Any]) -> None:
        """Add a node that can be paired."""
        self.nodes[node["node_id"]] = node
        self._events += [{"event": "node_added", "data": node}, {"event": "node_updated", "data": node}]
        await self._send_events()

    async def remove(self, node_id: int) -> None:
        del self.nodes[node_id]
        self._events.append({"event": "node_removed", "data": node_id})
        await self._send_events()

    def _routes(self) -> Iterable[web.RouteDef]:
        return [web.get("/ws", self._serve_socket), web.get("/info", self._answer_info)]

    async def _answer_info(self, request: web.Request) -> web.Response:
        return self._json(self.info)

    async def _serve_socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._sockets.add(socket)
        try:
            await self._serve(socket)
        except ConnectionError:
            pass
        finally:
            self._sockets.discard(socket)
        return socket

    async def _serve(self, socket: web.WebSocketResponse) -> None:
        await socket.send_json(self.info)
        while (asked := await self._receive(socket)) is not None:
            if self.faults.silent or asked.get("args", {}).get("node_id") in self.mute:
                continue
            if self.faults.body is not None:
                await socket.send_bytes(self.faults.body)
                continue
            answer = self._answer(asked)
            await self._clock.sleep(self.faults.delay)
            await socket.send_json({"message_id": asked.get("message_id"), **answer})
            await self._send_events()
            if self.faults.lag:
                await self._clock.sleep(self.faults.lag)
                self._apply_due_writes()
                await self._send_events()

    async def _receive(self, socket: web.WebSocketResponse) -> dict[str, Any] | None:
        message = await socket.receive()
        if message.type is not WSMsgType.TEXT:
            return None
        asked: dict[str, Any] = json.loads(message.data)
        self.asked.append(asked)
        return asked

    def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the server's response without its `message_id`."""
        command, arguments = asked.get("command"), asked.get("args", {})
        if command == "start_listening":
            return {"result": [*self.nodes.values()]}
        if not isinstance(command, str) or command not in _COMMANDS:
            return {"error_code": 9, "details": f"Invalid command: {command}"}
        if "node_id" in arguments and arguments["node_id"] not in self.nodes:
            return {"error_code": 5, "details": f"Node {arguments['node_id']} does not exist"}
        answer: dict[str, Any] = getattr(self, _COMMANDS[command])(arguments)
        return answer

    def _do(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        node_id, endpoint = arguments["node_id"], arguments["endpoint_id"]
        name, payload = arguments["command_name"], arguments["payload"]
        if name != "Toggle" and name not in _EFFECTS:
            return {"error_code": 0, "details": "InteractionModelError: UnsupportedCommand (0x81)"}
        self._take(lambda: self._apply(node_id, endpoint, name, payload))
        return {"result": None}

    def _apply(self, node_id: int, endpoint: int, name: str, payload: Mapping[str, Any]) -> None:
        attributes = self.nodes[node_id]["attributes"]
        is_on = attributes.get(f"{endpoint}/6/0") is True
        effects = {"6/0": not is_on} if name == "Toggle" else _EFFECTS[name](payload)
        for path, value in effects.items():
            self._set(node_id, f"{endpoint}/{path}", value)

    def _write(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        node_id, path, value = arguments["node_id"], arguments["attribute_path"], arguments["value"]
        self._take(lambda: self._set(node_id, path, value))
        return {"result": [{"Path": {}, "Status": 0}]}

    def _read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        values, path = self.nodes[arguments["node_id"]]["attributes"], arguments["attribute_path"]
        return {"result": {each: value for each, value in values.items() if fnmatchcase(each, path)}}

    def _interview(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self._events.append({"event": "node_updated", "data": self.nodes[arguments["node_id"]]})
        return {"result": None}

    def _commission(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        number = max(self.nodes, default=0) + 1
        node = self.nodes[number] = simulated_node(number, "Simulated lamp", LAMP)
        self._events += [{"event": "node_added", "data": node}]
        return {"result": node}

    def _remove(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        del self.nodes[arguments["node_id"]]
        self._events.append({"event": "node_removed", "data": arguments["node_id"]})
        return {"result": None}

    def _share(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        codes = {"setup_manual_code": "32675421138", "setup_qr_code": "MT:00000-O913KIOL6UR00"}
        return {"result": {"setup_pin_code": 34629762, **codes}}

    def _set(self, node_id: int, path: str, value: Any) -> None:
        """Set a value. Queue an event if the value has changed."""
        attributes = self.nodes[node_id]["attributes"]
        if attributes.get(path) != value:
            attributes[path] = value
            self._events.append({"event": "attribute_updated", "data": [node_id, path, value]})

    async def _send_events(self) -> None:
        """Send the queued events to all connections."""
        events, self._events = self._events, []
        for event in events if self.sends_events else ():
            for socket in tuple(self._sockets):
                await socket.send_json(event)


def _level(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"6/0": payload["level"] > 0, "8/0": payload["level"]}


_EFFECTS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "On": lambda _: {"6/0": True},
    "Off": lambda _: {"6/0": False},
    "MoveToLevelWithOnOff": _level,
    "Identify": lambda payload: {"3/0": payload["identifyTime"]},
    "LockDoor": lambda _: {"257/0": 1},
    "UnlockDoor": lambda _: {"257/0": 2},
}
"""For each command except `Toggle`, a function that returns the changes. Each key of the changes is
`cluster/attribute`."""

_COMMANDS: Mapping[str, str] = {
    "device_command": "_do",
    "write_attribute": "_write",
    "read_attribute": "_read",
    "interview_node": "_interview",
    "commission_with_code": "_commission",
    "remove_node": "_remove",
    "open_commissioning_window": "_share",
}
"""For each command of the server, the method of the simulator that handles it."""


def simulate() -> MatterSimulator:
    """Return the demo's server, which has two more devices than usual."""
    server = MatterSimulator()
    server.nodes[3] = simulated_node(3, "Simulated thermostat", HEATING_UNIT)
    server.nodes[4] = simulated_node(4, "Simulated sensor", CONTACT, THERMOMETER)
    return server
