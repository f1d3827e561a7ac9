"""Requests to the nodes of a Matter server. A silent node is read again until it responds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.adapters.confirmation import RESULT_SECS
from appliance.adapters.matter.commands import ClusterRequest
from appliance.adapters.matter.known_nodes import Target
from appliance.adapters.matter.live_nodes import LiveNodes
from appliance.adapters.matter.server import NodeRefused, NodeUnreachable, ServerConnection
from appliance.clock import Clock
from appliance.errors import AdapterFailed, BadAnswer, NotFound, Unreachable
from appliance.tasks import Tasks

ASK_AGAIN_SECS = 20.0
"""Seconds between two reads of a node that did not respond to a command. Each read may take half a minute."""

_TEST_PATH = "0/40/0"
"""Every node has this attribute. The adapter reads the attribute to check whether a node responds."""


class NodeRequests:
    """Sends requests to the nodes of one server. `server` is None while there is no connection."""

    def __init__(self, name: str, live: LiveNodes, address: str, clock: Clock) -> None:
        self.server: ServerConnection | None = None
        self._name = name
        self._live = live
        self._address = address
        self._clock = clock
        self._tasks = Tasks()

    def connect(self, server: ServerConnection) -> None:
        """Use a new connection, and read the suspect nodes again."""
        self.server = server
        for node_id in self._live.suspects:
            self._start_asking(node_id)

    def disconnect(self) -> None:
        """Reject further requests, because the connection is lost."""
        self.server = None

    async def aclose(self) -> None:
        """Stop reading silent nodes."""
        await self._tasks.__aexit__()

    def target(self, device_id: str) -> Target:
        """Return the node and endpoint of a device. Raise `Unreachable` without a connection, and `NotFound`."""
        target = self._live.nodes.targets.get(device_id)
        if target is None:
            self._require_server()
            raise NotFound("device", device_id)
        return target

    async def send(self, device_id: str, what: str, target: Target, request: ClusterRequest) -> None:
        """Send a request. Raise `Unreachable` if the device does not respond, and `BadAnswer` if the device
        refuses."""
        try:
            await self.ask_node(device_id, target, request.command, request.arguments)
        except Unreachable:
            raise
        except BadAnswer as error:
            raise BadAnswer(f"{device_id} refused {what}: {error}") from None

    async def ask_node(self, device_id: str, target: Target, command: str, arguments: Mapping[str, Any]) -> Any:
        """Send a server command for a node. If the node does not respond, suspect the node, and raise
        `Unreachable`."""
        node = target.node
        try:
            return await self.ask(command, {"node_id": node.id, **arguments}, RESULT_SECS)
        except NodeUnreachable as error:
            if node.id not in self._live.suspects and node.is_available:
                self._live.suspect(node.id)
                self._start_asking(node.id)
            raise Unreachable(f"{device_id} does not answer: {error}") from None

    def _start_asking(self, node_id: int) -> None:
        self._tasks.start(self._keep_asking(node_id), f"question to node {node_id} of {self._name}")

    async def ask(self, command: str, arguments: Mapping[str, Any], secs: float) -> Any:
        """Send a server command, and return its result. Raise `AdapterFailed` on failure."""
        return await self._require_server().ask(command, arguments, secs)

    def _require_server(self) -> ServerConnection:
        if self.server is None:
            raise Unreachable(f"the Matter server {self._address} is not connected; nothing was sent")
        return self.server

    async def _keep_asking(self, node_id: int) -> None:
        """Read a suspect node until it responds or reports, or until the connection ends.

        Reports may have been lost in the meantime. When the node responds, the server therefore reads all values of
        the node again.
        """
        server, arguments = self.server, {"node_id": node_id, "attribute_path": _TEST_PATH}
        while node_id in self._live.suspects:
            try:
                await self.ask("read_attribute", arguments, 2 * ASK_AGAIN_SECS)
                await self.ask("interview_node", {"node_id": node_id}, 2 * ASK_AGAIN_SECS)
            except NodeRefused:
                pass
            except AdapterFailed:
                if self.server is not server:
                    return
                await self._clock.sleep(ASK_AGAIN_SECS)
                continue
            self._live.trust(node_id)
