"""Notifies systemd of the hub's state; see sd_notify(3)."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from appliance.clock import Clock


class Notifier:
    """Sends the hub's state to systemd. Failures are ignored, because the watchdog detects a hub that hangs."""

    def __init__(self, environment: Mapping[str, str], clock: Clock) -> None:
        self._clock = clock
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._interval_secs = _half_the_watchdog(environment)

    def ready(self) -> None:
        """Notify systemd that the hub is ready, at the start and after `reloading`."""
        self._send("READY=1")

    def reloading(self) -> None:
        """Notify systemd that a reload begins. Call `ready` at the end of the reload."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={int(self._clock.monotonic() * 1e6)}")

    def stopping(self) -> None:
        """Notify systemd that the hub is stopping. Do not call `ready` afterwards."""
        self._send("STOPPING=1")

    async def feed_watchdog(self) -> None:
        """Send WATCHDOG=1 twice per watchdog interval. If there is no watchdog, return at once."""
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
    """Return the socket's address. A leading @ means an abstract name."""
    return "\0" + named[1:] if named.startswith("@") else named


def _half_the_watchdog(environment: Mapping[str, str]) -> float:
    """Return half of the watchdog interval in seconds, or 0 if there is no watchdog."""
    usecs = environment.get("WATCHDOG_USEC", "")
    is_ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(usecs) / 2e6 if usecs.isdecimal() and is_ours else 0.0
