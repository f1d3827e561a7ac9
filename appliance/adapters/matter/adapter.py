"""The adapter for a Matter controller server: follows and commands the server's nodes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from appliance.adapters.base import Adapter, AdapterContext, CommandResult, Operation
from appliance.adapters.confirmation import RESULT_SECS, failure, is_long_fade
from appliance.adapters.device_http.client import HttpClient
from appliance.adapters.device_http.web_socket import Messages
from appliance.adapters.matter.clusters import FAN, ON_OFF
from appliance.adapters.matter.commands import ClusterRequest, command_specs_of, request_for
from appliance.adapters.matter.kind import Matter, split_url
from appliance.adapters.matter.known_nodes import MAX_BYTES, MAX_DEVICES, MAX_NODE_BYTES, Target
from appliance.adapters.matter.large_json import MAX_AT_ONCE, parse_large, parse_small
from appliance.adapters.matter.live_nodes import LiveNodes
from appliance.adapters.matter.node_requests import NodeRequests
from appliance.adapters.matter.operations import OPERATION_SECS, Operations
from appliance.adapters.matter.server import OPENING_SECS, ServerConnection
from appliance.adapters.reconnection import keep_open
from appliance.errors import AdapterFailed, Unreachable
from appliance.event_loop import STEP_SECS, in_steps
from appliance.home.command_specs import check_offered
from appliance.home.commands import Command, without_toggle
from appliance.tasks import end_within, run_together

MAX_MESSAGE_BYTES = 16 << 20
"""Size limit of a message. The list of nodes is one message, and the limit is enough for about 2,000 nodes."""

PING_AFTER_SECS = 30.0
"""Seconds without a message before the server is pinged."""

MAX_RECONNECT_SECS = 30.0
"""Longest pause between two attempts to connect."""

GATHER_REPORTS_SECS = 0.02
"""Seconds during which reports are collected. The reports of one change arrive within two milliseconds."""

REPORT_SECS = 3.0
"""Seconds without a report after which the device is read. A report usually takes one or two seconds."""

REPORT_AGAIN_SECS = 3600.0
"""Minimum number of seconds between two log lines about devices and values beyond the limits."""

log = logging.getLogger("adapters")


class MatterAdapter(Adapter):
    """Connects to one controller server, and reconnects after each loss of the connection.

    Commands to different devices run concurrently.
    """

    concurrency = 1_000
    command_secs = 3 * RESULT_SECS
    """Far longer than the timeouts inside a command. The inner timeouts therefore expire first, even on a busy
    event loop."""
    operation_secs = OPERATION_SECS

    def __init__(self, context: AdapterContext, settings: Matter) -> None:
        address, self._path = split_url(settings.url)
        super().__init__(context, address)
        self.live = LiveNodes(self.name, self.publish)
        self._http = HttpClient(context.open_session(), address, context.clock)
        self._requests = NodeRequests(self.name, self.live, self._http.address, context.clock)
        self._operations = Operations(self.name, self.live, self._requests, context.clock)
        self._rejected, self._report_rejected_at = 0, 0.0

    async def __aexit__(self, *_: object) -> None:
        """Stop reading nodes that did not respond to commands."""
        await self._requests.aclose()

    async def run(self) -> None:
        """Keep the connection and publish changes until cancelled."""
        await keep_open(self.clock, self._connect, self._on_connection_ended, most_secs=MAX_RECONNECT_SECS)

    async def _connect(self) -> None:
        async with self._http.messages(
            self._path, silence_secs=PING_AFTER_SECS, max_bytes=MAX_MESSAGE_BYTES, parse=parse_small
        ) as messages:
            await self._session(messages)

    def _on_connection_ended(self, error: AdapterFailed | None, _: int) -> None:
        if isinstance(error, Unreachable):
            self.publish.lost(error)
        elif error is not None:
            self.publish.failed(error)
        self.publish.started()

    async def _session(self, messages: Messages) -> None:
        """Process the messages of one connection until it is lost, then raise the reason."""
        server = ServerConnection(messages, self.clock, self._http.address, self.live.nodes.reject)
        await self._read_nodes(server)
        self._report_rejected()
        self._requests.connect(server)
        self.publish.answered()
        self.publish.started()
        error: AdapterFailed = Unreachable(f"{self._http.address} has closed the connection")
        try:
            await run_together(self._keep_receiving(server, messages), self._keep_flushing())
        except AdapterFailed as fault:
            error = fault
        finally:
            self._requests.disconnect()
            server.close(error)
        await in_steps(self.clock, self.live.flushing())
        try:
            raise error
        finally:
            del error  # otherwise, this frame and the exception's traceback would keep each other in memory

    async def _read_nodes(self, server: ServerConnection) -> None:
        try:
            nodes = await end_within(server.open(), OPENING_SECS)
        except TimeoutError:
            raise Unreachable(f"{self._http.address} accepts connections but does not answer") from None
        await in_steps(self.clock, self.live.replacing_all(nodes))

    async def _keep_receiving(self, server: ServerConnection, messages: Messages) -> None:
        busy = 0.0
        async for received in messages:
            message = await parse_large(received, self.clock, self.live.nodes.reject)
            began = self.clock.monotonic()
            server.receive(message, self.live.handle)
            self._report_rejected()
            busy += self.clock.monotonic() - began
            if busy >= STEP_SECS:  # if this task has used much time, give the same time to other tasks
                await self.clock.sleep(busy)
                busy = 0.0
        raise Unreachable(f"{self._http.address} has closed the connection")

    async def _keep_flushing(self) -> None:
        while True:
            await self.live.has_changes.wait()
            await self.clock.sleep(GATHER_REPORTS_SECS)
            await in_steps(self.clock, self.live.flushing())
            self.publish.answered()

    def _report_rejected(self) -> None:
        """Log the number of devices and values beyond the limits once, and again after an hour if it has changed."""
        rejected, now = self.live.nodes.rejected, self.clock.monotonic()
        if rejected == self._rejected or now < self._report_rejected_at:
            return
        limits = (
            f"{MAX_DEVICES:,} devices, {MAX_BYTES >> 20} MiB of attributes, {MAX_NODE_BYTES >> 20} MiB per node, "
            f"or {MAX_AT_ONCE >> 10} KiB per text"
        )
        reason = f"more than {limits}; rejected so far: {rejected}"
        if self._rejected == 0:
            self.publish.dropped(self.name, "limit", reason)
        else:
            log.warning("%s: limit: %s", self.name, reason)
        self._rejected, self._report_rejected_at = rejected, now + REPORT_AGAIN_SECS

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Send the command, and return when the device reports the result."""
        began = self.clock.monotonic()
        target = self._requests.target(device_id)
        command = check_offered(device_id, command_specs_of(target.endpoint), command)
        if command.action == "toggle":  # the last reported state may be out of date
            target = await self._read_again(device_id, target)
            if ON_OFF not in target.endpoint.clusters:  # only this cluster has a toggle
                device = self.publish.find(device_id)
                shown = None if device is None else device.attributes.get("power")
                command = without_toggle(command, shown, device_id)
        request = request_for(target.endpoint, command)
        is_shown = request.is_done(target.endpoint)
        await self._requests.send(device_id, str(command), target, request)
        until = began + RESULT_SECS
        is_done = await self._await_result(device_id, request, until, asks_first=is_shown)
        if not is_done and not is_long_fade(command):
            device = self.publish.find(device_id)
            raise failure(device_id, command, {} if device is None else device.attributes)
        return CommandResult()

    async def _read_again(self, device_id: str, target: Target) -> Target:
        """Read the power of a device. Raise `Unreachable` on failure."""
        cluster = ON_OFF if ON_OFF in target.endpoint.clusters else FAN
        path = f"{target.endpoint.number}/{cluster}/*"
        values = await self._requests.ask_node(device_id, target, "read_attribute", {"attribute_path": path})
        self.live.take_values(target.node.id, values)
        return self._requests.target(device_id)

    async def _await_result(self, device_id: str, request: ClusterRequest, until: float, *, asks_first: bool) -> bool:
        """Wait for a report with the result. If there is no such report, read the device. Return whether the device
        reports the result.

        If `asks_first` is true, the device had already reported this state before the command, so read the device at
        once.
        """
        left = until - self.clock.monotonic()
        if not asks_first and await self._is_shown(device_id, request, min(left, REPORT_SECS)):
            return True
        target = self.live.nodes.targets.get(device_id)
        left = until - self.clock.monotonic()
        if target is None or left <= 0:
            return False
        path = f"{target.endpoint.number}/{request.cluster}/*"
        try:
            arguments = {"node_id": target.node.id, "attribute_path": path}
            values = await self._requests.ask("read_attribute", arguments, left)
        except AdapterFailed:
            return False
        self.live.take_values(target.node.id, values)
        return await self._is_shown(device_id, request, until - self.clock.monotonic())

    async def _is_shown(self, device_id: str, request: ClusterRequest, secs: float) -> bool:
        return await self.live.wait_until(
            device_id, lambda target: request.is_done(target.endpoint), self.clock, secs
        )

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`pair` takes `code`. `unpair`, `share`, and `identify` take `device_id`."""
        return self._operations.by_name


def build(settings: Any, context: AdapterContext) -> MatterAdapter:
    return MatterAdapter(context, settings)
