"""Running timers: what is kept of each in memory, and the queue of which the scheduler knows the next."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import orjson
from msgspec import Struct

from appliance.automations.alarms import TimerHandle
from appliance.automations.scheduler import Scheduler
from appliance.clock import Clock
from appliance.errors import Invalid, LaresError, StoreFailed
from appliance.home.texts import strip_id
from appliance.home.values import Value, to_bytes
from appliance.tables.checks import is_number
from appliance.tasks import Tasks

log = logging.getLogger("automations")

MAX_STALE = 64
"""Cancelled timers that stay in the queue, beyond which they are cleared away once they are the most."""

SAME_SECS = 1e-6
"""Timers due within this time of each other fire together: sums of floating point numbers may differ."""

MAX_SECS = 400 * 86_400
MAX_TIMER_PAYLOAD_BYTES = 16 << 10

MAX_MILLIS = 253_402_300_799_999
"""The end of the year 9999."""


class RunningTimer(Struct, eq=False):
    """A timer that is under way: `payload` as JSON, the times in milliseconds since 1970; `is_dated`: whether
    the clock was trusted then.

    `due` is the monotonic second, None while it does not run: the clock is not trusted yet, or it is over.
    `late_secs` is how long it was overdue when it went on. `unheard_since`: when it was over and no automation
    listened for it, in milliseconds since 1970.
    """

    name: str
    payload: bytes
    started_at: int
    due_at: int
    is_dated: bool
    due: float | None = None
    late_secs: float | None = None
    unheard_since: int | None = None
    is_gone: bool = False

    def __lt__(self, other: RunningTimer) -> bool:
        return (self.due or 0.0) < (other.due or 0.0)

    @staticmethod
    def of(name: str, raw: Any) -> RunningTimer | None:
        """The timer that `to_json` encoded; None for what is not of that form."""
        fields = raw if isinstance(raw, dict) else {}
        started_at, due_at = _millis(fields.get("started_at")), _millis(fields.get("due_at"))
        if started_at is None or due_at is None:
            return None
        timer = RunningTimer(
            name, to_bytes(fields.get("payload")), started_at, due_at, fields.get("is_dated") is not False
        )
        timer.unheard_since = _millis(fields.get("unheard_since"))
        return timer

    def to_json(self) -> dict[str, Any]:
        """The form in which it is stored."""
        times = {"started_at": self.started_at, "due_at": self.due_at, "is_dated": self.is_dated}
        unheard = {} if self.unheard_since is None else {"unheard_since": self.unheard_since}
        return {**times, **unheard, "payload": self.load_payload()}

    def load_payload(self) -> Value:
        """The payload as JSON data; None where the timer has none."""
        return orjson.loads(self.payload)

    @property
    def whole_secs(self) -> float:
        """How long it takes from its start to its end."""
        return (self.due_at - self.started_at) / 1000


def _millis(raw: Value) -> int | None:
    return int(raw) if is_number(raw) and 0 <= raw <= MAX_MILLIS else None


class TimerChange(Struct, frozen=True, kw_only=True):
    """What the queue makes: the timer of this `name` begins, or, as None, goes; or these `over` fire.

    `began` is the monotonic second of the call, `source` who called.
    """

    name: str = ""
    timer: RunningTimer | None = None
    over: Sequence[RunningTimer] = ()
    began: float = 0.0
    source: str = ""

    def to_json(self) -> dict[str, Value] | None:
        """What the card is to hold."""
        return None if self.timer is None else self.timer.to_json()


class TimerChanges:
    """Hands timers' changes to `work`, in the order they came; those that wait at the same time are one batch.

    `work` returns for each the error to raise where it was asked for, or None. If it raises any other exception, its
    batch gets `StoreFailed`, the traceback is logged, and the next batch is worked on.
    """

    def __init__(self, work: Callable[[list[TimerChange]], Awaitable[list[LaresError | None]]]) -> None:
        self._work = work
        self._tasks = Tasks()
        self._waiting: list[tuple[TimerChange, asyncio.Future[None]]] = []
        self._running: asyncio.Task[None] | None = None

    async def submit(self, change: TimerChange) -> None:
        """Wait until it was worked on, or raise its error. Cancelling ends only the waiting."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, done))
        if self._running is None:
            self._running = self._tasks.start(self._run(), "change of timers")
        await done

    async def close(self) -> None:
        """Return once nothing waits any more."""
        if self._running is not None:
            await asyncio.wait({self._running})

    async def _run(self) -> None:
        batch: list[tuple[TimerChange, asyncio.Future[None]]] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                self._answer(batch, await self._refusals_of([change for change, _ in batch]))
        finally:  # also when the loop is torn down in the middle of it
            self._running = None
            left, self._waiting = [*batch, *self._waiting], []
            self._answer(left, [_fault()] * len(left))

    async def _refusals_of(self, changes: list[TimerChange]) -> list[LaresError | None]:
        try:
            return await self._work(changes)
        except Exception as error:
            log.error("change of timers failed: %s: %s", type(error).__name__, error, exc_info=error)
            return [_fault()] * len(changes)

    @staticmethod
    def _answer(batch: list[tuple[TimerChange, asyncio.Future[None]]], refusals: Sequence[LaresError | None]) -> None:
        for (_, done), refusal in zip(batch, refusals, strict=True):
            if done.done():
                continue
            if refusal is None:
                done.set_result(None)
            else:
                done.set_exception(refusal)
                done.exception()  # the caller may be cancelled; then asyncio must not log it


def _fault() -> StoreFailed:
    return StoreFailed("the change was not made; the log says why")


class TimerQueue:
    """The timers that run, by when they are due. However many there are, the scheduler holds one timer."""

    def __init__(self, clock: Clock, scheduler: Scheduler, on_due: Callable[[list[RunningTimer]], None]) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._on_due = on_due
        self._heap: list[RunningTimer] = []
        self._stale = 0
        self._alarm: TimerHandle | None = None
        self._armed_for: float | None = None

    def start(self, timer: RunningTimer, secs: float) -> None:
        """Start the timer, which does not run; it is due so many seconds from now."""
        timer.due = self._clock.monotonic() + max(0.0, secs)
        heapq.heappush(self._heap, timer)
        self._arm()

    def remove(self, timer: RunningTimer) -> None:
        """Drop the timer, which must not be used again; it never fires."""
        timer.is_gone = True
        if timer.due is None:
            return
        self._stale += 1
        if self._stale > max(MAX_STALE, len(self._heap) // 2):
            self._heap = [each for each in self._heap if not each.is_gone]
            heapq.heapify(self._heap)
            self._stale = 0
        self._arm()

    def _arm(self) -> None:
        """Have the scheduler wait for the next that is due."""
        while self._heap and self._heap[0].is_gone:
            heapq.heappop(self._heap)
            self._stale -= 1
        due = self._heap[0].due if self._heap else None
        if due == self._armed_for:
            return
        if self._alarm is not None:
            self._scheduler.cancel(self._alarm)
        self._alarm, self._armed_for = None, due
        if due is not None:
            left = max(0.0, due - self._clock.monotonic())
            self._alarm = self._scheduler.after("timers", left, self._fire_due)

    def _fire_due(self, _: float) -> None:
        self._alarm, self._armed_for = None, None
        now = self._clock.monotonic() + SAME_SECS
        over = []
        while self._heap and (self._heap[0].is_gone or (self._heap[0].due or 0.0) <= now):
            timer = heapq.heappop(self._heap)
            if timer.is_gone:
                self._stale -= 1
                continue
            timer.due = None
            over.append(timer)
        self._arm()
        if over:
            self._on_due(over)


def check_timer(name: str, secs: float, payload: Value) -> str:
    """The name without white space around it; `Invalid` where name, seconds or payload are not allowed."""
    name = strip_id(name)
    if not is_number(secs) or not 0 <= secs <= MAX_SECS:
        raise Invalid(f"timer '{name}': must take 0 to {MAX_SECS} seconds (400 days), not {secs!r}")
    try:
        size = len(orjson.dumps(payload))
    except (orjson.JSONEncodeError, RecursionError):
        raise Invalid(f"timer '{name}': the payload is no JSON") from None
    if size > MAX_TIMER_PAYLOAD_BYTES:
        raise Invalid(
            f"timer '{name}': the payload takes {size} bytes as JSON; {MAX_TIMER_PAYLOAD_BYTES} are allowed"
        )
    return name
