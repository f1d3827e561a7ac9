"""The adapter for a Matter controller server: follows, commands, pairs, and shares the server's nodes."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from appliance.adapters.base import Adapter, AdapterContext, CommandResult, Operation
from appliance.adapters.confirmation import RESULT_SECS, failure, is_long_fade
from appliance.adapters.device_http import HttpClient
from appliance.adapters.matter.clusters import FAN, IDENTIFY, ON_OFF
from appliance.adapters.matter.commands import ClusterRequest, command_specs_of, identify, request_for
from appliance.adapters.matter.kind import Matter, split_url
from appliance.adapters.matter.large_json import parse_large, parse_small
from appliance.adapters.matter.live_nodes import MAX_DEVICES, LiveNodes, Target
from appliance.adapters.matter.server import OPENING_SECS, NodeRefused, NodeUnreachable, ServerConnection
from appliance.adapters.reconnection import keep_open
from appliance.adapters.web_socket import Messages
from appliance.errors import (
    AdapterFailed,
    BadAnswer,
    Invalid,
    MalformedRequest,
    NotFound,
    Unreachable,
    Unsupported,
)
from appliance.event_loop import STEP_SECS, in_steps
from appliance.home.command_specs import check_offered
from appliance.home.commands import Command, without_toggle
from appliance.home.values import Value
from appliance.tables.checks import format_value
from appliance.tasks import Tasks, end_within, run_together

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

ASK_AGAIN_SECS = 20.0
"""Seconds between two reads of a node that did not respond to a command. Each read may take half a minute."""

REPORT_AGAIN_SECS = 3600.0
"""Minimum number of seconds between two log lines about the number of devices beyond the limit."""

IDENTIFY_SECS = 10

SHARE_SECS = 300
"""Seconds during which another controller can pair a shared device."""

_CODE = re.compile(r"MT:[0-9A-Z.\-]{16,}|\d{11}|\d{21}")
_PROBE = "0/40/0"
"""Every node has this attribute. The adapter reads the attribute to check whether a node responds."""


T = TypeVar("T")

log = logging.getLogger("adapters")


class MatterAdapter(Adapter):
    """Connects to one controller server, and reconnects after each loss of the connection.

    Commands to different devices run concurrently.
    """

    concurrency = 1_000
    command_secs = 3 * RESULT_SECS
    """Far longer than the timeouts inside a command. The inner timeouts therefore expire first, even on a busy
    event loop."""
    operation_secs: Mapping[str, float] = {"pair": 240.0, "unpair": 60.0, "share": 60.0}

    def __init__(self, context: AdapterContext, settings: Matter) -> None:
        address, self._path = split_url(settings.url)
        super().__init__(context, address)
        self.server: ServerConnection | None = None
        self.live = LiveNodes(self.name, self.publish)
        self._http = HttpClient(context.open_session(), address, context.clock)
        self._tasks = Tasks()
        self._rejected, self._report_rejected_at = 0, 0.0

    async def __aexit__(self, *_: object) -> None:
        """Stop reading nodes that did not respond to commands."""
        await self._tasks.__aexit__()

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
        server = ServerConnection(messages, self.clock, self._http.address)
        await self._read_nodes(server)
        self._report_rejected()
        self.server = server
        for node_id in self.live.suspects:
            self._start_asking(node_id)
        self.publish.answered()
        self.publish.started()
        error: AdapterFailed = Unreachable(f"{self._http.address} has closed the connection")
        try:
            await run_together(self._keep_receiving(server, messages), self._keep_flushing())
        except AdapterFailed as fault:
            error = fault
        finally:
            self.server = None
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
            message = await parse_large(received, self.clock)
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
        """Log the number of devices beyond the limit once, and again after an hour if it has changed."""
        rejected, now = self.live.rejected, self.clock.monotonic()
        if rejected == self._rejected or now < self._report_rejected_at:
            return
        reason = f"more than {MAX_DEVICES:,} devices; rejected so far: {rejected}"
        if self._rejected == 0:
            self.publish.dropped(self.name, "limit", reason)
        else:
            log.warning("%s: limit: %s", self.name, reason)
        self._rejected, self._report_rejected_at = rejected, now + REPORT_AGAIN_SECS

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Send the command, and return when the device reports the result."""
        began = self.clock.monotonic()
        target = self._target(device_id)
        command = check_offered(device_id, command_specs_of(target.endpoint), command)
        if command.action == "toggle":  # the last reported state may be out of date
            target = await self._read_again(device_id, target)
            if ON_OFF not in target.endpoint.clusters:  # only this cluster has a toggle
                device = self.publish.find(device_id)
                shown = None if device is None else device.attributes.get("power")
                command = without_toggle(command, shown, device_id)
        request = request_for(target.endpoint, command)
        is_shown = request.is_done(target.endpoint)
        await self._send(device_id, str(command), target, request)
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
        values = await self._ask_node(device_id, target, "read_attribute", {"attribute_path": path})
        self.live.take_values(target.node.id, values)
        return self._target(device_id)

    async def _send(self, device_id: str, what: str, target: Target, request: ClusterRequest) -> None:
        """Send a request. Raise `Unreachable` if the device does not respond, and `BadAnswer` if the device
        refuses."""
        try:
            await self._ask_node(device_id, target, request.command, request.arguments)
        except Unreachable:
            raise
        except BadAnswer as error:
            raise BadAnswer(f"{device_id} refused {what}: {error}") from None

    async def _ask_node(self, device_id: str, target: Target, command: str, arguments: Mapping[str, Any]) -> Any:
        node = target.node
        try:
            return await self._ask(command, {"node_id": node.id, **arguments}, RESULT_SECS)
        except NodeUnreachable as error:
            if node.id not in self.live.suspects and node.is_available:
                self.live.suspect(node.id)
                self._start_asking(node.id)
            raise Unreachable(f"{device_id} does not answer: {error}") from None

    def _start_asking(self, node_id: int) -> None:
        self._tasks.start(self._keep_asking(node_id), f"question to node {node_id} of {self.name}")

    async def _ask(self, command: str, arguments: Mapping[str, Any], secs: float) -> Any:
        if self.server is None:
            raise Unreachable(f"the Matter server {self._http.address} is not connected; nothing was sent")
        return await self.server.ask(command, arguments, secs)

    async def _keep_asking(self, node_id: int) -> None:
        """Read a suspect node until it responds or reports, or until the connection ends.

        Reports may have been lost in the meantime. When the node responds, the server therefore reads all values of
        the node again.
        """
        server, arguments = self.server, {"node_id": node_id, "attribute_path": _PROBE}
        while node_id in self.live.suspects:
            try:
                await self._ask("read_attribute", arguments, 2 * ASK_AGAIN_SECS)
                await self._ask("interview_node", {"node_id": node_id}, 2 * ASK_AGAIN_SECS)
            except NodeRefused:
                pass
            except AdapterFailed:
                if self.server is not server:
                    return
                await self.clock.sleep(ASK_AGAIN_SECS)
                continue
            self.live.trust(node_id)

    async def _await_result(self, device_id: str, request: ClusterRequest, until: float, *, asks_first: bool) -> bool:
        """Wait for a report with the result. If there is no such report, read the device. Return whether the device
        reports the result.

        If `asks_first` is true, the device had already reported this state before the command, so read the device at
        once.
        """
        left = until - self.clock.monotonic()
        if not asks_first and await self._is_shown(device_id, request, min(left, REPORT_SECS)):
            return True
        target = self.live.target_of(device_id)
        left = until - self.clock.monotonic()
        if target is None or left <= 0:
            return False
        path = f"{target.endpoint.number}/{request.cluster}/*"
        try:
            values = await self._ask("read_attribute", {"node_id": target.node.id, "attribute_path": path}, left)
        except AdapterFailed:
            return False
        self.live.take_values(target.node.id, values)
        return await self._is_shown(device_id, request, until - self.clock.monotonic())

    async def _is_shown(self, device_id: str, request: ClusterRequest, secs: float) -> bool:
        def is_done() -> bool:
            target = self.live.target_of(device_id)
            return target is not None and not self.live.is_away(target) and request.is_done(target.endpoint)

        wait: Callable[[asyncio.Event], Any] = partial(self.clock.wait, seconds=max(secs, 0.0))
        return await self.live.wait_until(device_id, is_done, wait)

    def _target(self, device_id: str) -> Target:
        target = self.live.target_of(device_id)
        if target is None and self.server is None:
            raise Unreachable(f"the Matter server {self._http.address} is not connected; nothing was sent")
        if target is None:
            raise NotFound("device", device_id)
        return target

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`pair` takes `code`. `unpair`, `share`, and `identify` take `device_id`."""
        return {"pair": self._pair, "unpair": self._unpair, "share": self._share, "identify": self._identify}

    async def _pair(self, payload: Mapping[str, Value]) -> Value:
        """Pair the device with this code. Return the device's node, and all devices of the node."""
        _refuse_others("pair", payload, "code", 'the digits below the QR code, or the text of the QR code, "MT:…"')
        code = _code_in(payload["code"])
        is_by_radio = self.server is not None and self.server.info.get("bluetooth_enabled") is True
        arguments = {"code": code, "network_only": not is_by_radio}
        try:
            node = await self._ask("commission_with_code", arguments, self.operation_secs["pair"] - 5)
            node_id = node["node_id"]
        except BadAnswer as error:
            raise BadAnswer(f"{error}. {_PAIRING_HINT}") from None
        except (KeyError, TypeError):
            raise BadAnswer("the answer of the Matter server contains no node") from None
        await in_steps(self.clock, self.live.flushing())
        return {"node_id": node_id, "devices": self.live.ids_of(node_id)}

    async def _unpair(self, payload: Mapping[str, Value]) -> Value:
        """Remove the node of a device. Return all devices of the node, because all of these devices are removed."""
        node = self._target_in("unpair", payload).node
        devices = self.live.ids_of(node.id)
        await self._ask("remove_node", {"node_id": node.id}, self.operation_secs["unpair"] - 5)
        return {"removed": devices}

    async def _share(self, payload: Mapping[str, Value]) -> Value:
        """Allow another controller to pair a device's node as well. Return the code for pairing as digits, and as
        the text of a QR code."""
        node = self._target_in("share", payload).node
        found = await self._ask(
            "open_commissioning_window",
            {"node_id": node.id, "timeout": SHARE_SECS},
            self.operation_secs["share"] - 5,
        )
        try:
            return {"code": found["setup_manual_code"], "qr": found["setup_qr_code"], "secs": SHARE_SECS}
        except (KeyError, TypeError):
            raise BadAnswer("the answer of the Matter server contains no code") from None

    async def _identify(self, payload: Mapping[str, Value]) -> Value:
        """Make a device blink or beep for ten seconds."""
        target = self._target_in("identify", payload)
        if IDENTIFY not in target.endpoint.clusters:
            raise Unsupported(f"device '{payload['device_id']}' does not support identify")
        await self._send(payload["device_id"], "identify", target, identify(target.endpoint, IDENTIFY_SECS))
        return None

    def _target_in(self, operation: str, payload: Mapping[str, Value]) -> Target:
        _refuse_others(operation, payload, "device_id", f'like "{self.name}:…:1"')
        return self._target(payload["device_id"])


_PAIRING_HINT = (
    "The device must have power, be in the network (or in reach of the server's radio), and be in pairing mode. A "
    "new device stays in pairing mode for 15 minutes. If another app controls the device, share it in that app, and "
    "use the new code"
)


def _code_in(text: str) -> str:
    """Normalize a pairing code: digits without spaces and dashes, or the text of a QR code."""
    code = text.strip().upper()
    code = code if code.startswith("MT:") else re.sub(r"[\s-]", "", code)
    if _CODE.fullmatch(code) is None:
        raise Invalid("code must be 11 or 21 digits, or the text of a QR code, which begins with MT:")
    return code


def _refuse_others(operation: str, payload: Mapping[str, Value], name: str, example: str) -> None:
    """Raise `Invalid` if the field `name` is missing or not text, or if the payload contains other fields."""
    if name not in payload:
        raise MalformedRequest(f"the operation {operation} needs the field {name} ({example})")
    if not isinstance(payload[name], str) or not payload[name]:
        raise Invalid(f"{name} must be a string ({example}), not {format_value(payload[name])}")
    for other in payload:
        if other != name:
            raise Invalid(f"the operation {operation} accepts only the field {name}, not {format_value(other)}")


def build(settings: Any, context: AdapterContext) -> MatterAdapter:
    return MatterAdapter(context, settings)
