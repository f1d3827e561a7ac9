"""The dispatcher: the one path of every command, whoever sends it, to one device or to many."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from appliance.adapters.link import Link
from appliance.errors import LaresError, Unreachable, Unsupported
from appliance.home.commands import Command
from appliance.home.model import Device
from appliance.home.values import Value
from appliance.tasks import Tasks

log = logging.getLogger("adapters")


class Status(StrEnum):
    """How a command to one device ended."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command to one device came to; `message` is a sentence unless all went well."""

    device_id: str
    status: Status
    message: str | None = None


class Dispatcher:
    """Sends commands. One that was begun is finished even if its sender goes away; leaving the context ends all."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._links: Mapping[str, Link] = {link.adapter.name: link for link in links}
        self._tasks = Tasks()

    async def __aenter__(self) -> Dispatcher:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    async def send(self, devices: Sequence[Device], command: Command) -> list[Outcome]:
        """Command the devices, those at different addresses at once; the outcomes come in the order given."""
        sent = [self._tasks.start(self._send(device, command), f"command to {device.id}") for device in devices]
        if sent:
            await asyncio.wait(sent)
        return [
            _given_up(device) if each.cancelled() else each.result()
            for device, each in zip(devices, sent, strict=True)
        ]

    def give_up(self) -> None:
        """End the commands that are under way; their senders are told that nobody knows what became of them."""
        self._tasks.cancel()

    async def invoke(self, target: str, payload: Mapping[str, Value]) -> Value:
        """Call an adapter's own operation, `<adapter>:<operation>`; `Unsupported` when there is no such thing."""
        name, _, operation = target.partition(":")
        link = self._links.get(name)
        if link is None or operation not in link.adapter.operations:
            raise Unsupported(f"invoke target '{target}' is not supported")
        return await link.invoke(operation, payload)

    async def _send(self, device: Device, command: Command) -> Outcome:
        try:
            await self._command(device, command)
        except Exception as error:  # one device's failure, even a fault in its adapter, is not the others'
            return _failure(device, command, error)
        return Outcome(device_id=device.id, status=Status.OK)

    async def _command(self, device: Device, command: Command) -> None:
        link = self._links.get(device.metadata.source)
        if link is None or not link.adapter.offers(command):
            raise Unsupported(f"device '{device.id}' does not offer {command}")
        link.adapter.check(command)
        await link.command(device.id, command)


def _given_up(device: Device) -> Outcome:
    message = "the hub is stopping; whether this was done is not known"
    return Outcome(device_id=device.id, status=Status.ERROR, message=message)


def _failure(device: Device, command: Command, error: Exception) -> Outcome:
    """What the error comes to. Logged, unless it is an outage: that is said once, by the device's link."""
    if isinstance(error, Unsupported):
        return Outcome(device_id=device.id, status=Status.UNSUPPORTED, message=str(error))
    message = str(error)
    if not isinstance(error, LaresError):
        message = f"the adapter failed ({type(error).__name__}: {error})"
        log.debug("%s: %s", device.id, command, exc_info=error)
    if not isinstance(error, Unreachable):
        log.info("%s: %s failed: %s", device.id, command, message)
    return Outcome(device_id=device.id, status=Status.ERROR, message=message)
