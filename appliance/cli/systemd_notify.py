"""sd_notify(3): the hub's state for systemd, over the socket that it names; without one nothing is sent."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from appliance.clock import Clock


class Notifier:
    """Sends the hub's state. A message that cannot be sent is dropped: the watchdog notices a hub that hangs."""

    def __init__(self, environment: Mapping[str, str], clock: Clock) -> None:
        self._clock = clock
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._interval_secs = _half_the_watchdog(environment)

    def ready(self) -> None:
        """The hub serves, or serves again after `reloading`."""
        self._send("READY=1")

    def reloading(self) -> None:
        """The hub reads its catalogs again; `ready` must follow."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={int(self._clock.monotonic() * 1e6)}")

    def stopping(self) -> None:
        """The hub stops; `ready` must not follow."""
        self._send("STOPPING=1")

    async def feed_watchdog(self) -> None:
        """Send WATCHDOG=1 twice as often as systemd asks for; return at once where it asks for none."""
        while self._interval_secs:
            self._send("WATCHDOG=1")
            await self._clock.sleep(self._interval_secs)

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
                sender.sendto(message.encode(), self._address)
        except OSError:
            return


def _address(named: str) -> str:
    """The socket's address; @ stands for a name that is in no file system."""
    return "\0" + named[1:] if named.startswith("@") else named


def _half_the_watchdog(environment: Mapping[str, str]) -> float:
    """Seconds; 0 where no watchdog waits for this process."""
    usecs = environment.get("WATCHDOG_USEC", "")
    is_ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(usecs) / 2e6 if usecs.isdecimal() and is_ours else 0.0
