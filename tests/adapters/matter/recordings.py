"""Recordings of a real controller server, and a home that replays them."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from aiohttp import web

from appliance.adapters.matter.clusters import READ_CLUSTERS
from appliance.adapters.matter.live_nodes import LiveNodes
from appliance.adapters.matter.nodes import Endpoint, Node
from appliance.adapters.matter.simulator import MatterSimulator
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of

FOLDER = Path(__file__).parents[2] / "fixtures" / "matter"
NAMES = ("commands", "commission", "events", "errors", "outage", "restart", "missed", "test-node")
GAP_SECS = 0.1
"""Seconds without a message after which a group of messages ends."""


@cache
def load(name: str) -> list[dict[str, Any]]:
    """Return the lines of a recording. Insert the nodes, which are in another file."""
    lines = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().splitlines()]
    known = {} if name == "commands" else {node["node_id"]: node["attributes"] for node in _first_list("commands")}
    for line in lines:
        for node in _nodes_in(line["msg"]):
            if isinstance(node["attributes"], str):
                node["attributes"] = known[node["node_id"]]
            elif name == "restart":
                known[node["node_id"]] = node["attributes"]
    return lines


def _nodes_in(message: Any) -> Iterator[dict[str, Any]]:
    reported = message.get("result", message.get("data")) if isinstance(message, dict) else None
    for each in reported if isinstance(reported, list) else [reported]:
        if isinstance(each, dict) and "attributes" in each:
            yield each


def _first_list(name: str) -> list[dict[str, Any]]:
    return next(nodes for line in load(name) if (nodes := list(_nodes_in(line["msg"]))))


def endpoint(node_id: int, number: int) -> Endpoint:
    """Return a new endpoint of one of the eleven nodes, in its initial state."""
    return next(
        Node(each, READ_CLUSTERS) for each in _first_list("commands") if each["node_id"] == node_id
    ).endpoints[number]


def steps(name: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the server's messages, in their original groups."""
    piece: list[dict[str, Any]] = []
    at = 0.0
    for line in load(name):
        if line["dir"] != "in":
            continue
        if piece and line["t"] - at > GAP_SECS:
            yield piece
            piece = []
        piece.append(line["msg"])
        at = line["t"]
    yield piece


class RecordedServer(MatterSimulator):
    """Replays a recording line by line: sends each message of the server (`in`) after the requests that precede the
    message (`out`).

    A second of the recording takes `pace` real seconds.
    """

    def __init__(self, recording: Iterable[Mapping[str, Any]], pace: float = 0.0) -> None:
        super().__init__()
        self.script = deque(recording)
        self._pace = pace

    async def _serve(self, socket: web.WebSocketResponse) -> None:
        if self.script:
            await self._replay(socket)
        else:
            await super()._serve(socket)

    async def _replay(self, socket: web.WebSocketResponse) -> None:
        ids: dict[Any, Any] = {}
        sentence: float | None = None
        while self.script:
            line = self.script[0]
            message = line["msg"]
            if line["dir"] == "out":
                if not await self._await_request(socket, message, ids):
                    return
                sentence = line["t"]
            if line["dir"] == "in":
                await self._clock.sleep(
                    max(0.0, line["t"] - (line["t"] if sentence is None else sentence)) * self._pace
                )
                sentence = line["t"]
                reported = (
                    {**message, "message_id": ids.get(message["message_id"])} if "message_id" in message else message
                )
                if "message_id" not in message or message["message_id"] in ids:
                    await socket.send_json(reported)
            self.script.popleft()
            if line["dir"] == "note" and str(message).startswith("closed"):
                await socket.close()
                return
        while await self._receive(socket) is not None:
            pass

    async def _await_request(
        self, socket: web.WebSocketResponse, message: Mapping[str, Any], ids: dict[Any, Any]
    ) -> bool:
        """Wait for the recorded request. Return False if the connection ends before the request arrives."""
        while (asked := await self._receive(socket)) is not None:
            if asked["command"] == message["command"]:
                ids[message["message_id"]] = asked["message_id"]
                return True
            refusal = {"error_code": 9, "details": f"the recording has {message['command']} here"}
            await socket.send_json({"message_id": asked["message_id"], **refusal})
        return False


class RecordedHome:
    """A home whose adapter replays a recording."""

    def __init__(self) -> None:
        self.bus = Bus()
        self.happened: list[events.Event] = []
        self.bus.listen(self.happened.append)
        clock = VirtualClock()
        self.registry = Registry(self.bus, clock)
        context = context_of("matter", None, clock, registry=self.registry, bus=self.bus)
        self.publish = context.publish
        self.live = LiveNodes("matter", context.publish)

    def play(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            if isinstance(message.get("result"), list) and message["message_id"] == "1":
                list(self.live.replacing_all(message["result"]))
                self.publish.answered()
            elif "event" in message:
                self.live.handle(message["event"], message["data"])
        list(self.live.flushing())

    def play_all(self, name: str) -> None:
        for piece in steps(name):
            self.play(piece)

    def shows(self, device_id: str) -> dict[str, Any]:
        return dict(self.registry.get_device(f"matter:{device_id}").attributes)

    def pressed(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Return all device events."""
        return [
            (each.device_id.removeprefix("matter:"), each.event, dict(each.data))
            for each in self.happened
            if isinstance(each, events.DeviceEvent)
        ]

    def values_seen(self, device_id: str, attribute: str) -> list[Any]:
        """Return each value of an attribute, once per change. A missing value is None."""
        seen: list[Any] = []
        for each in self.happened:
            if isinstance(each, events.DeviceStateChanged) and each.device.id == f"matter:{device_id}":
                value = each.device.attributes.get(attribute)
                if not seen or seen[-1] != value:
                    seen.append(value)
        return seen

    def changed(self) -> set[str]:
        """Return the changed attributes of devices that existed before the change."""
        return {
            name
            for each in self.happened
            if isinstance(each, events.DeviceStateChanged) and each.previous is not None
            for name in {*each.device.attributes, *each.previous.attributes}
            if each.device.attributes.get(name) != each.previous.attributes.get(name)
        }
