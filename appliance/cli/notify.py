"""Telling systemd how the hub does, over the socket that it names; elsewhere nobody is told."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from appliance.clock import Clock


class Notifier:
    """Speaks sd_notify(3). A message that cannot be sent is let go: the watchdog notices what matters."""

    def __init__(self, environment: Mapping[str, str], clock: Clock) -> None:
        self._clock = clock
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._beat_secs = _half_the_watchdog(environment)

    def ready(self) -> None:
        """The hub serves, or serves again after `reloading`."""
        self._tell("READY=1")

    def reloading(self) -> None:
        """The hub reads its catalogs again; `ready` must follow."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={int(self._clock.monotonic() * 1e6)}")

    def stopping(self) -> None:
        """The hub is about to end."""
        self._tell("STOPPING=1")

    async def feed_watchdog(self) -> None:
        """Tell again and again that the loop turns, twice as often as systemd asks; end at once if it does not."""
        while self._beat_secs:
            self._tell("WATCHDOG=1")
            await self._clock.sleep(self._beat_secs)

    def _tell(self, message: str) -> None:
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
    wanted = environment.get("WATCHDOG_USEC", "")
    is_ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(wanted) / 2e6 if wanted.isdecimal() and is_ours else 0.0
