"""Commands from the broker: parses each command, and runs the commands to one device, scene, or automation in
order."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable

from appliance.adapters.mqtt.messages import parse_payload
from appliance.errors import AdapterFailed, Busy, Invalid, LaresError
from appliance.home.commands import Command
from appliance.tasks import Tasks

MAX_COMMAND_BYTES = 64 * 1024

MAX_WAITING_COMMANDS = 10
"""For one device, scene, or automation: the maximum number of waiting commands from the broker."""

MAX_BUSY_TARGETS = 1_000
"""Maximum number of devices, scenes, and automations with waiting commands."""

MAX_WAITING_BYTES = 512 << 10
"""Maximum total size of the waiting commands to all devices. As Python objects, commands can be 20 times larger."""

HubCommand = Command | bool | None
"""A device's command, True or False to enable or disable an automation, or None to run a scene."""

log = logging.getLogger("adapters")


class CommandQueues:
    """The waiting commands by target (`devices`, `scenes`, or `automations`) and id.

    `run` runs one command, and raises `LaresError`. `refuse` is called with the error of a failed command.
    """

    def __init__(
        self,
        tasks: Tasks,
        run: Callable[[str, HubCommand], Awaitable[None]],
        refuse: Callable[[str, str, LaresError], None],
    ) -> None:
        self._tasks = tasks
        self._run = run
        self._refuse = refuse
        self._queues: dict[tuple[str, str], deque[tuple[HubCommand, int]]] = {}
        """The waiting commands and their sizes."""
        self._bytes = 0

    def take(self, target: str, id_: str, payload: bytes) -> None:
        """Parse a command, and queue it."""
        queue = self._queues.get((target, id_))
        if queue is None and len(self._queues) < MAX_BUSY_TARGETS:
            queue = deque()
        size = len(payload) if target == "devices" else 0
        try:
            if queue is None or len(queue) >= MAX_WAITING_COMMANDS or self._bytes + size > MAX_WAITING_BYTES:
                raise Busy(f"too many commands wait for {id_[:100]}; send this command again later")
            queue.append((_parse(target, payload), size))
        except LaresError as error:
            self._refuse(target, id_, error)
            return
        self._bytes += size
        if (target, id_) not in self._queues:
            self._queues[target, id_] = queue
            self._tasks.start(self._run_waiting(target, id_), f"commands of the broker to {target} {id_[:100]}")

    async def _run_waiting(self, target: str, id_: str) -> None:
        """Run the waiting commands in order. A failed command does not stop further commands."""
        queue = self._queues[target, id_]
        try:
            while queue:
                try:
                    await self._run(id_, queue[0][0])
                except LaresError as error:
                    self._refuse(target, id_, error)
                except Exception as error:
                    log.exception("publishing: a command to %s %s failed", target, id_[:100])
                    self._refuse(target, id_, AdapterFailed(f"the command failed ({type(error).__name__})"))
                self._bytes -= queue.popleft()[1]
        finally:
            self._bytes -= sum(size for _, size in queue)
            del self._queues[target, id_]


def _parse(target: str, payload: bytes) -> HubCommand:
    """Parse a message. Raise `LaresError`."""
    if target == "devices":
        if len(payload) > MAX_COMMAND_BYTES:
            raise Invalid(f"the command is larger than {MAX_COMMAND_BYTES // 1024} KiB")
        return Command.parse(parse_payload(payload))
    if target == "automations":
        if payload not in (b"on", b"off"):
            raise Invalid("the payload must be on or off")
        return payload == b"on"
    return None
