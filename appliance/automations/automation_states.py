"""The states of automations: switch, policy, schedules, waits, and last run. States survive reloads and restarts."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NotRequired, TypedDict

from msgspec import Struct, convert, field, to_builtins

from appliance.automations.policy import PolicyState
from appliance.clock import from_millis, to_millis
from appliance.errors import StoreFailed
from appliance.history.card_lines import fit_for_card
from appliance.history.execution_history import ExecutionStatus
from appliance.shrinking import shrunk
from appliance.store.record_keys import AUTOMATION_PREFIX, TOGGLE_PREFIX, WAIT_PREFIX
from appliance.store.records import OnFault, read_all, skip
from appliance.store.storage import DocumentReader, Storage
from appliance.tasks import Tasks

log = logging.getLogger("automations")

_SEPARATOR = "\t"
"""The character between two ids in a key. Ids can contain spaces, but no control characters."""

_KEPT_FIELDS = ("value", "previous_value", "late_secs")
"""The fields of an event that the end of its wait needs."""


class StoredPolicyState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored part of a `PolicyState`. Instants are in milliseconds since 1970. Running executions are not
    stored."""

    ended_at: int | None = None
    decided: dict[str, int] = {}


class StoredWait(TypedDict):
    """A running wait: its start in milliseconds since 1970, and the fields of the event that began it."""

    began_at: int
    value: NotRequired[Any]
    previous_value: NotRequired[Any]
    late_secs: NotRequired[float]


class _OldWait(TypedDict):
    """A wait in the automation's record, as in version 0.2."""

    began_at: int
    event: dict[str, Any]


class Run(Struct, frozen=True, kw_only=True):
    """The start and the result of an execution."""

    executed_at: datetime
    status: ExecutionStatus
    error: str | None = None


class StoredRun(Struct, frozen=True, kw_only=True):
    """The latest execution. `at` is the start of the execution in milliseconds since 1970."""

    at: int
    status: ExecutionStatus
    error: str | None = None

    @staticmethod
    def of(run: Run) -> StoredRun:
        return StoredRun(at=to_millis(run.executed_at), status=run.status, error=fit_for_card(run.error))

    def decode(self) -> Run:
        return Run(executed_at=from_millis(self.at), status=self.status, error=self.error)


class StoredAutomation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored state of an automation, without the switch and the waits. `fired` is in milliseconds since 1970.
    Only versions up to 0.2 wrote `waits`."""

    policy: StoredPolicyState | None = None
    waits: dict[str, _OldWait] = {}
    fired: dict[str, int] = {}
    run: StoredRun | None = None


class AutomationState(Struct, kw_only=True):
    """The state of an automation.

    - `fired`: the last occurrence of each schedule, or the start of an interval.
    - `waits`: the running waits by device id and by the trigger's key. A change replaces the inner dictionary,
      because the earlier one may wait for a flush.
    - `run`: the latest execution.
    - `trusted_run`: the latest execution with a trusted time; only this execution is stored.
    """

    is_enabled: bool = True
    policy_state: PolicyState = field(default_factory=PolicyState)
    fired: dict[str, datetime] = field(default_factory=dict)
    waits: dict[str, dict[str, StoredWait]] = field(default_factory=dict)
    run: Run | None = None
    trusted_run: StoredRun | None = None

    def encode(self) -> dict[str, Any]:
        """Return the stored form, without the switch and the waits."""
        ended = self.policy_state.ended_at
        stored_policy = StoredPolicyState(
            ended_at=None if ended is None else to_millis(ended),
            decided={key: to_millis(at) for key, at in self.policy_state.decided.items()},
        )
        stored = StoredAutomation(
            policy=None if stored_policy == StoredPolicyState() else stored_policy,
            fired={schedule: to_millis(at) for schedule, at in self.fired.items()},
            run=self.trusted_run,
        )
        fields: dict[str, Any] = to_builtins(stored)
        return fields

    @staticmethod
    def decode(raw: Any) -> AutomationState:
        """Decode the result of `encode`. If the data has another form, raise `ValueError` or `ArithmeticError`."""
        stored = convert(raw, StoredAutomation)
        waits: dict[str, dict[str, StoredWait]] = {}
        for key, wait in stored.waits.items():
            trigger_key, _, device_id = key.partition(" ")
            waits.setdefault(device_id, {})[trigger_key] = stored_wait(wait["began_at"], wait["event"])
        stored_policy = stored.policy or StoredPolicyState()
        return AutomationState(
            policy_state=PolicyState(
                ended_at=None if stored_policy.ended_at is None else from_millis(stored_policy.ended_at),
                decided={key: from_millis(at) for key, at in stored_policy.decided.items()},
            ),
            fired={schedule: from_millis(at) for schedule, at in stored.fired.items()},
            waits=waits,
            run=None if stored.run is None else stored.run.decode(),
            trusted_run=stored.run,
        )


def stored_wait(began_at: int, event: Mapping[str, Any]) -> StoredWait:
    """Return the wait with only some fields of the event, because thousands of waits may run."""
    kept = {name: event[name] for name in _KEPT_FIELDS if name in event}
    return convert({"began_at": began_at, **kept}, StoredWait)


def is_same_wait(one: StoredWait, other: StoredWait) -> bool:
    """Return whether the waits began in the same millisecond and contain the same objects."""
    return one["began_at"] == other["began_at"] and all(one.get(name) is other.get(name) for name in _KEPT_FIELDS)


def wait_record_key(id_: str, device_id: str) -> str:
    """Return the key of the record with the automation's waits for the device."""
    return f"{WAIT_PREFIX}{device_id}{_SEPARATOR}{id_}"


def read_waits(stored: DocumentReader, on_fault: OnFault = skip) -> dict[str, dict[str, StoredWait]]:
    """Decode the stored waits by device id and automation id, joined with a tab, and by the trigger's key."""
    return read_all(stored, WAIT_PREFIX, lambda _, value: convert(value, dict[str, StoredWait]), on_fault)


def read_states(stored: DocumentReader, on_fault: OnFault = skip) -> dict[str, AutomationState]:
    """Decode the stored states by automation id, without the switches."""
    return read_all(stored, AUTOMATION_PREFIX, lambda _, value: AutomationState.decode(value), on_fault)


def read_switches(stored: DocumentReader, on_fault: OnFault = skip) -> dict[str, bool]:
    """Decode the stored switches by automation id."""
    return read_all(stored, TOGGLE_PREFIX, lambda _, value: convert(value, bool), on_fault)


class AutomationStates:
    """The states by automation id. The next flush stores changes, but a switch is stored before it takes effect. The
    last run is stored as a minor value."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._tasks = Tasks()
        self._states = read_states(storage)
        for key, waits in read_waits(storage).items():
            device_id, _, id_ = key.partition(_SEPARATOR)
            self.of(id_).waits[device_id] = waits
        self._switched = read_switches(storage)
        self._at_first: Mapping[str, bool] = {}
        self.revision = 0
        """A number that changes with the switches."""
        self.switch_all({})

    async def __aenter__(self) -> AutomationStates:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    def of(self, id_: str) -> AutomationState:
        """Return the automation's state. Create the state for a new automation."""
        if (state := self._states.get(id_)) is None:
            state = self._states[id_] = AutomationState()
        return state

    def switch_all(self, enabled: Mapping[str, bool]) -> None:
        """For automations without a stored switch, apply the field `enabled` from their files."""
        self._at_first = enabled
        self.revision += 1
        for id_ in {**self._switched, **enabled}:
            self.of(id_).is_enabled = self._switched.get(id_, enabled.get(id_, True))

    def store_policy_state(self, id_: str, policy_state: PolicyState) -> None:
        """Store the state of a policy."""
        state = self.of(id_)
        if policy_state != state.policy_state:
            state.policy_state = policy_state
            self._store(id_, state)

    def store_fired(self, id_: str, schedule: str, at: datetime) -> None:
        """Store the schedule's last occurrence."""
        state = self.of(id_)
        state.fired[schedule] = at
        self._store(id_, state)

    def store_run(self, id_: str, run: Run, *, is_trusted: bool) -> None:
        """Set the latest execution. Store it only if its time is trusted."""
        state = self.of(id_)
        state.run = run
        if is_trusted:
            state.trusted_run = StoredRun.of(run)
            self._store(id_, state, is_minor=True)

    def store_wait(self, id_: str, device_id: str, key: str, wait: StoredWait | None) -> None:
        """Store the running wait of the trigger with this key. The value None removes the stored wait."""
        state = self.of(id_)
        known = state.waits.get(device_id, {})
        if wait is not None:
            state.waits[device_id] = {**known, key: wait}
        elif key not in known:
            return
        elif len(known) > 1:
            state.waits[device_id] = {each: running for each, running in known.items() if each != key}
        else:
            del state.waits[device_id]
            state.waits = shrunk(state.waits)
        self._storage.put_later(wait_record_key(id_, device_id), state.waits.get(device_id))

    def drop_other_waits(self, id_: str, keys: Collection[str]) -> None:
        """Keep only the waits of triggers with these keys, and remove all other waits."""
        state = self.of(id_)
        others = [(device_id, key) for device_id, found in state.waits.items() for key in found if key not in keys]
        for device_id, key in others:
            self.store_wait(id_, device_id, key, None)
        if others:
            log.info("automation '%s': its trigger was edited, so its pending wait is discarded", id_)

    def remove_others(self, ids: Collection[str]) -> None:
        """Remove the states and switches of all other automations, also in storage."""
        gone = [id_ for id_ in self._states if id_ not in ids]
        switched = [TOGGLE_PREFIX + id_ for id_ in gone if self._switched.pop(id_, None) is not None]
        for id_ in gone:
            for device_id in self._states.pop(id_).waits:
                self._storage.put_later(wait_record_key(id_, device_id), None)
            self._storage.put_later(AUTOMATION_PREFIX + id_, None)
        if switched:
            self._tasks.start(self._remove(switched), "removal of deleted automations")

    async def switch(self, id_: str, *, is_enabled: bool) -> None:
        """Store the change, then switch the automation on or off. If the change cannot be stored, raise
        `StoreFailed`. The change finishes even if the caller is cancelled."""
        await self._tasks.finish(self._switch(id_, is_enabled), f"switch of {id_}")

    async def _switch(self, id_: str, is_enabled: bool) -> None:
        is_as_the_file_says = is_enabled == self._at_first.get(id_, True)
        await self._storage.put_many({TOGGLE_PREFIX + id_: None if is_as_the_file_says else is_enabled})
        self._switched.pop(id_, None)
        if not is_as_the_file_says:
            self._switched[id_] = is_enabled
        self.of(id_).is_enabled = is_enabled
        self.revision += 1

    async def _remove(self, keys: list[str]) -> None:
        with contextlib.suppress(StoreFailed):  # if the removal fails, these states still exist at the next start
            await self._storage.put_many(dict.fromkeys(keys))

    def _store(self, id_: str, state: AutomationState, *, is_minor: bool = False) -> None:
        self._storage.put_later(AUTOMATION_PREFIX + id_, state.encode() or None, is_minor=is_minor)
