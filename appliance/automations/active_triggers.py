"""Active triggers: the triggers of the loaded automations, with their schedules and waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from msgspec import Struct, field

from appliance.automations.automation_states import StoredWait
from appliance.automations.definition import AutomationDefinition
from appliance.automations.schedule.scheduled_calls import CalendarCall, DelayedCall
from appliance.automations.triggers.base import Match, Trigger
from appliance.lua.files.catalog import LoadedFile
from appliance.shrinking import shrunk


class Wait(Struct, eq=False):
    """A running wait of a device, and the monotonic time of its end. Waits are sorted by their ends."""

    due: float
    device_id: str
    stored: StoredWait

    def __lt__(self, other: Wait) -> bool:
        return self.due < other.due


class RunningWaits:
    """The running waits of a trigger by device id.

    The heap also contains cancelled waits, but after a wait has ended, at most one per running wait, because each of
    them can keep a page of memory in use. For the same reason, the heap contains no tuples: Python keeps thousands of
    freed tuples.
    """

    def __init__(self) -> None:
        self._waits: dict[str, Wait] = {}
        self._heap: list[Wait] = []

    def __len__(self) -> int:
        return len(self._waits)

    def __iter__(self) -> Iterator[str]:
        return iter(self._waits)

    def __getitem__(self, device_id: str) -> Wait:
        return self._waits[device_id]

    def add(self, wait: Wait) -> None:
        self._waits[wait.device_id] = wait
        heappush(self._heap, wait)

    def pop(self, device_id: str) -> Wait | None:
        """Remove and return the device's wait, if any."""
        wait = self._waits.pop(device_id, None)
        if wait is None:
            return None
        self._waits = shrunk(self._waits)
        if len(self._heap) > 2 * len(self._waits):
            self._heap = [*self._waits.values()]
            heapify(self._heap)
        return wait

    def find_first(self) -> Wait | None:
        """Return the wait that ends first, or None if no wait is running."""
        while self._heap:
            first = self._heap[0]
            if self._waits.get(first.device_id) is first:
                return first
            heappop(self._heap)
        return None


class ActiveTrigger(Struct, eq=False, kw_only=True):
    """A trigger of a loaded automation.

    - `key`: identifies the trigger within the automation, also in the storage of waits (`stored_hashes.key_of`).
    - `call`: the scheduler's call for the trigger's schedule or interval.
    - `waits`: the trigger's running waits.
    - `wait_call`: the scheduler's call for the end of the first wait, or for an earlier time.
    """

    file: LoadedFile[AutomationDefinition]
    trigger: Trigger
    key: str
    call: CalendarCall | DelayedCall | None = None
    waits: RunningWaits = field(default_factory=RunningWaits)
    wait_call: DelayedCall | None = None
    is_stopped: bool = False

    @property
    def id(self) -> str:
        return self.file.definition.id

    @property
    def label(self) -> str:
        return f"automation '{self.id}'"

    @property
    def resumes(self) -> bool:
        return self.file.definition.policy.resumable_schedule


Fire = Callable[[ActiveTrigger, Match], None]
"""Runs the automation after a trigger has matched."""
