"""Publishes the health of one adapter: starts, answers, outages, and failures."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from appliance.clock import Clock
from appliance.errors import AdapterFailed, LaresError
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import OFFLINE, ONLINE
from appliance.home.registry import Registry

MAX_FAULTS = 100
"""Maximum number of different command faults that are logged per adapter."""

MAX_SET_AT_ONCE = 32
"""Maximum number of devices whose state changes in one turn of the loop when an outage begins or ends."""

log = logging.getLogger("adapters")


class HealthPublisher:
    """Publishes the health of one adapter. No call blocks.

    These methods set the adapter's health, from good to bad:

    - `answered`: the answer is good, and any outage or failure ends.
    - `ready`: no answer is needed, and any failure ends.
    - `reached`: there is an answer, good or bad, and any outage ends.
    - `started`: the first attempt has ended, with any result. `progressed`: the first attempt continues.
    - `record_error`: one request failed. The health contains the error, and nothing is logged.
    - `failed`: the answer is wrong. A failure begins, and is logged once.
    - `lost`: there is no answer. An outage begins, which sets the devices offline and is logged once.
    - `crashed`, `faulted`: `run`, or a command, raised an unexpected exception. Only the runner calls these methods.

    `on_recovered` is called when an outage ends. `has_started` is set after the adapter's first attempt. `progress`
    counts progress reports during a start. `is_lost` is true during an outage, when the devices are offline.
    """

    def __init__(self, name: str, registry: Registry, bus: Bus, clock: Clock) -> None:
        self.name = name
        self.on_recovered: Callable[[], None] = lambda: None
        self.has_started = asyncio.Event()
        self.progress = 0
        self._registry = registry
        self._bus = bus
        self._clock = clock
        self.is_lost = False
        self._remaining: deque[str] = deque()
        self._is_faulty = False
        self._faults: set[str] = set()

    def started(self) -> None:
        """Report the end of the first attempt. Further calls have no effect."""
        if not self.has_started.is_set():
            self.has_started.set()
            self._bus.publish(events.AdapterStarted(adapter=self.name))

    def progressed(self, message: str) -> None:
        """Publish the progress of a long start. The adapter's health contains the message until the adapter answers
        or fails."""
        self.progress += 1
        self._bus.publish(events.AdapterProgressed(adapter=self.name, message=message))

    def ready(self) -> None:
        self._is_faulty = False
        self._bus.publish(events.AdapterReady(adapter=self.name))

    def answered(self, secs: float | None = None) -> None:
        """Report a good answer of the device or service. `secs` is the duration of the request."""
        self.reached()
        self._is_faulty = False
        self._bus.publish(events.AdapterAnswered(adapter=self.name, at=self._clock.now(), secs=secs))

    def reached(self) -> None:
        if self.is_lost:
            self.is_lost = False
            log.info("%s: answers again", self.name)
            self._set_state(ONLINE)
            self.on_recovered()

    def lost(self, error: LaresError) -> None:
        """Publish an outage: one event per device, one log line, and one `system.error`."""
        self.record_error(error)
        if not self.is_lost:
            self.is_lost = True
            self._set_state(OFFLINE)
            self._report(error, log.warning)

    def _set_state(self, state: str) -> None:
        """Set the state of all devices, a few devices per turn of the loop. If a newer state is set, stop."""
        self._remaining = deque(self._registry.ids_of(self.name))
        self._set_some(self._remaining, state)

    def _set_some(self, ids: deque[str], state: str) -> None:
        if ids is self._remaining:
            self._registry.set_state(self.name, state, [ids.popleft() for _ in range(min(MAX_SET_AT_ONCE, len(ids)))])
            if ids:
                asyncio.get_running_loop().call_soon(self._set_some, ids, state)

    def failed(self, error: LaresError) -> None:
        self.record_error(error)
        if not self._is_faulty:
            self._is_faulty = True
            self._report(error, log.warning)

    def crashed(self, error: BaseException, *, is_first: bool) -> None:
        """Publish a failure of the adapter itself. Log the traceback the first time, unless the error is a
        `LaresError`."""
        is_foreseen = isinstance(error, LaresError)
        reason = str(error) if is_foreseen else f"{type(error).__name__}: {error}"
        failure = LaresError(f"the adapter failed and restarts ({reason})")
        self.record_error(failure)
        if is_first:
            traceback = None if is_foreseen else error
            self._report(failure, lambda words, message: log.error(words, message, exc_info=traceback))

    def faulted(self, error: BaseException) -> AdapterFailed:
        """Convert an unexpected exception in a command to an error. Each fault is logged once, with its traceback.

        The adapter is not restarted, because its polling may still work.
        """
        reason = f"({type(error).__name__}: {error})"
        self.record_error(AdapterFailed(f"a command failed {reason}"))
        if (fault := _fault_key(error)) not in self._faults and len(self._faults) < MAX_FAULTS:
            self._faults.add(fault)
            log.error("%s: a command failed %s", self.name, reason, exc_info=error)
        return AdapterFailed(f"the adapter failed {reason}")

    def record_error(self, error: LaresError) -> None:
        self._bus.publish(events.AdapterErrored(adapter=self.name, message=str(error), at=self._clock.now()))

    def _report(self, error: LaresError, write: Callable[[str, str], None]) -> None:
        message = f"{self.name}: {error}"
        write("%s", message)
        self._bus.publish(events.SystemErrorReported(message=message))


def _fault_key(error: BaseException) -> str:
    """Return a key for the error: its class, and the file and line that raised it."""
    at, line = error.__traceback__, ""
    while at is not None:
        line = f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}"
        at = at.tb_next
    return f"{type(error).__name__} {line}"
