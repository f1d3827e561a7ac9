"""The operations of a Matter server: pair, unpair, share, and identify."""

from __future__ import annotations

import re
from collections.abc import Mapping

from appliance.adapters.base import Operation
from appliance.adapters.matter.clusters import IDENTIFY
from appliance.adapters.matter.commands import identify
from appliance.adapters.matter.known_nodes import Target
from appliance.adapters.matter.live_nodes import LiveNodes
from appliance.adapters.matter.node_requests import NodeRequests
from appliance.clock import Clock
from appliance.errors import BadAnswer, Invalid, MalformedRequest, Unsupported
from appliance.event_loop import in_steps
from appliance.home.values import Value
from appliance.tables.checks import format_value

OPERATION_SECS: Mapping[str, float] = {"pair": 240.0, "unpair": 60.0, "share": 60.0}

IDENTIFY_SECS = 10

SHARE_SECS = 300
"""Seconds during which another controller can pair a shared device."""

_CODE = re.compile(r"MT:[0-9A-Z.\-]{16,}|\d{11}|\d{21}")

_PAIRING_HINT = (
    "The device must have power, be in the network (or in reach of the server's radio), and be in pairing mode. A "
    "new device stays in pairing mode for 15 minutes. If another app controls the device, share it in that app, and "
    "use the new code"
)


class Operations:
    """The operations of one server, in `by_name`."""

    def __init__(self, name: str, live: LiveNodes, requests: NodeRequests, clock: Clock) -> None:
        self._name = name
        self._live = live
        self._requests = requests
        self._clock = clock

    @property
    def by_name(self) -> Mapping[str, Operation]:
        """A new mapping, because a kept mapping would form a reference cycle with this object."""
        return {"pair": self._pair, "unpair": self._unpair, "share": self._share, "identify": self._identify}

    async def _pair(self, payload: Mapping[str, Value]) -> Value:
        """Pair the device with this code. Return the device's node, and all devices of the node."""
        _refuse_others("pair", payload, "code", 'the digits below the QR code, or the text of the QR code, "MT:…"')
        code = _code_in(payload["code"])
        server = self._requests.server
        is_by_radio = server is not None and server.info.get("bluetooth_enabled") is True
        arguments = {"code": code, "network_only": not is_by_radio}
        try:
            node = await self._requests.ask("commission_with_code", arguments, OPERATION_SECS["pair"] - 5)
            node_id = node["node_id"]
        except BadAnswer as error:
            raise BadAnswer(f"{error}. {_PAIRING_HINT}") from None
        except (KeyError, TypeError):
            raise BadAnswer("the answer of the Matter server contains no node") from None
        await in_steps(self._clock, self._live.flushing())
        return {"node_id": node_id, "devices": self._live.nodes.ids_of(node_id)}

    async def _unpair(self, payload: Mapping[str, Value]) -> Value:
        """Remove the node of a device. Return all devices of the node, because all of these devices are removed."""
        node = self._target_in("unpair", payload).node
        devices = self._live.nodes.ids_of(node.id)
        await self._requests.ask("remove_node", {"node_id": node.id}, OPERATION_SECS["unpair"] - 5)
        self._live.handle("node_removed", node.id)  # the server's own event can follow later
        await in_steps(self._clock, self._live.flushing())
        return {"removed": devices}

    async def _share(self, payload: Mapping[str, Value]) -> Value:
        """Allow another controller to pair a device's node as well. Return the code for pairing as digits, and as
        the text of a QR code."""
        node = self._target_in("share", payload).node
        found = await self._requests.ask(
            "open_commissioning_window",
            {"node_id": node.id, "timeout": SHARE_SECS},
            OPERATION_SECS["share"] - 5,
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
        await self._requests.send(payload["device_id"], "identify", target, identify(target.endpoint, IDENTIFY_SECS))
        return None

    def _target_in(self, operation: str, payload: Mapping[str, Value]) -> Target:
        _refuse_others(operation, payload, "device_id", f'like "{self._name}:…:1"')
        return self._requests.target(payload["device_id"])


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
