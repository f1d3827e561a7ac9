"""States: what is remembered of each automation by its id, over reloads, and what of it outlives a restart.

Also its policy: an automation that ran does not run again too soon, nor twice for the same thing. What a policy
remembers is a value: each question returns what is to be kept. Instants are those of the wall clock; where it was set
back, what lies in the future counts from now on, so that no cooldown lasts longer than stated.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from appliance.clock import from_millis, to_millis
from appliance.errors import StoreFailed
from appliance.history.card_lines import fit_for_card
from appliance.history.execution_history import ExecutionStatus
from appliance.home.values import Value
from appliance.store.records import Storage
from appliance.tables.checks import is_number
from appliance.tasks import Tasks

log = logging.getLogger("automations")

MAX_REMEMBERED = 1000
"""How many different events a dedupe window remembers; beyond that the oldest are forgotten."""

TOGGLE_PREFIX, AUTOMATION_PREFIX = "toggle/", "automation/"
"""Keys in the document: `toggle/<id>` is what somebody has switched, true or false, unless the file says the same;
`automation/<id>` is what was remembered."""

NEVER_BEGAN = (ExecutionStatus.SKIPPED, ExecutionStatus.DROPPED)


class Policy(Struct, frozen=True, kw_only=True):
    """What the `state` table of a definition says, in seconds; 0 is off."""

    cooldown_secs: float = 0
    dedupe_window_secs: float = 0
    resumable_schedule: bool = False


class Memory(Struct, frozen=True, kw_only=True):
    """What an automation's policy remembers: whether a run holds the cooldown, when the last good run ended (None:
    never, or given back), and when each event was decided, by fingerprint, oldest first."""

    is_running: bool = False
    ended_at: datetime | None = None
    decided: Mapping[str, datetime] = field(default_factory=dict)

    def to_json(self) -> dict[str, Value]:
        """What outlives a restart, as JSON; a run that was under way does not."""
        ended = {} if self.ended_at is None else {"ended_at": to_millis(self.ended_at)}
        decided = {key: to_millis(at) for key, at in self.decided.items()}
        return {**ended, "decided": decided} if decided else {**ended}

    @staticmethod
    def from_json(raw: Value) -> Memory:
        """The memory that `to_json` wrote; what is not of that form is forgotten."""
        fields = raw if isinstance(raw, dict) else {}
        return Memory(ended_at=read_instant(fields.get("ended_at")), decided=read_instants(fields.get("decided")))


class PolicyDecision(Struct, frozen=True):
    """Why not to run, None where it may; and the memory to keep from now on in either case."""

    refusal: str | None
    memory: Memory


def decide(policy: Policy, memory: Memory, event: Mapping[str, Value], now: datetime) -> PolicyDecision:
    """Whether the event may run the automation now. A yes takes the cooldown and remembers the event at once."""
    memory = _without_expired(policy, memory, now)
    reason = _cooldown(policy, memory, now)
    if reason is not None:
        return PolicyDecision(reason, memory)
    if not policy.dedupe_window_secs:
        return PolicyDecision(None, _begun(policy, memory))
    key = fingerprint(event)
    if key in memory.decided:
        return PolicyDecision(_duplicate(policy, memory.decided[key], now), memory)
    kept = dict(list(memory.decided.items())[-(MAX_REMEMBERED - 1) :])
    return PolicyDecision(None, replace(_begun(policy, memory), decided=kept | {key: now}))


def after(memory: Memory, status: ExecutionStatus, event: Mapping[str, Value], now: datetime) -> Memory:
    """The memory after the execution that was decided for the event has ended so.

    Where it ended well, the cooldown counts from now; where it failed, was cancelled or took too long, it gives the
    cooldown back; where it found no place among the others, the event is as if undecided, too.
    """
    if status is ExecutionStatus.OK:
        return Memory(ended_at=now if memory.is_running else memory.ended_at, decided=memory.decided)
    key = fingerprint(event) if status in NEVER_BEGAN else None
    decided = {each: at for each, at in memory.decided.items() if each != key}
    return replace(memory, is_running=False, decided=decided)


def fingerprint(event: Mapping[str, Value]) -> str:
    """A short text that is the same for the same events, `scheduled_at` aside; `5` is `5.0`, `true` is not `1`."""
    fields = {key: plain(value) for key, value in event.items() if key != "scheduled_at"}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest()


def _begun(policy: Policy, memory: Memory) -> Memory:
    return replace(memory, is_running=True, ended_at=None) if policy.cooldown_secs else memory


def _without_expired(policy: Policy, memory: Memory, now: datetime) -> Memory:
    """The memory without what has expired, and with nothing in it that lies in the future."""
    ended = _unless_expired(memory.ended_at, policy.cooldown_secs, now)
    instants = ((key, _unless_expired(at, policy.dedupe_window_secs, now)) for key, at in memory.decided.items())
    decided = {key: at for key, at in instants if at is not None}
    return replace(memory, ended_at=ended, decided=decided, is_running=memory.is_running and policy.cooldown_secs > 0)


def _unless_expired(at: datetime | None, secs: float, now: datetime) -> datetime | None:
    """The instant, at most the present one; None once so many seconds have passed since."""
    if at is None or now - at >= timedelta(seconds=secs):
        return None
    return min(at, now)


def _cooldown(policy: Policy, memory: Memory, now: datetime) -> str | None:
    if memory.is_running:
        return f"cooldown: {policy.cooldown_secs:g} s after the run that is in progress"
    if memory.ended_at is None:
        return None
    return f"cooldown: {_seconds_left(memory.ended_at, policy.cooldown_secs, now)} s more"


def _duplicate(policy: Policy, at: datetime, now: datetime) -> str:
    ago = math.floor((now - at).total_seconds())
    more = _seconds_left(at, policy.dedupe_window_secs, now)
    return f"duplicate: the same event came {ago} s ago, {more} s more"


def _seconds_left(since: datetime, secs: float, now: datetime) -> int:
    return math.ceil(secs - (now - since).total_seconds())


def plain(value: Value) -> Value:
    """The value with whole floats as integers, all the way down."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def read_instant(raw: Value) -> datetime | None:
    """The instant of these milliseconds since 1970; None for anything but a number that has one."""
    if not is_number(raw):
        return None
    try:
        return from_millis(raw)
    except (OverflowError, ValueError):
        return None


def read_instants(raw: Value) -> dict[str, datetime]:
    """The instants of a table of milliseconds since 1970; what is not of that form is left out."""
    instants = {key: read_instant(at) for key, at in raw.items()} if isinstance(raw, dict) else {}
    return {key: at for key, at in instants.items() if at is not None}


class State(Struct, kw_only=True):
    """One automation's. `fired` is which occurrence of each of its schedules fired last, or when an interval began;
    `waits` are those under way at the last stop; `last_status` and `last_error` are how the execution at `last_run`
    ended, `run` what is kept of the latest whose time is trusted.
    """

    is_enabled: bool = True
    memory: Memory = field(default_factory=Memory)
    fired: dict[str, datetime] = field(default_factory=dict)
    waits: dict[str, dict[str, Any]] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    last_run: datetime | None = None
    last_status: ExecutionStatus = ExecutionStatus.OK
    last_error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """What outlives a restart beside the switch."""
        fired = {schedule: to_millis(at) for schedule, at in self.fired.items()}
        fields = {"policy": self.memory.to_json(), "waits": self.waits, "fired": fired, "run": self.run}
        return {key: value for key, value in fields.items() if value}

    @staticmethod
    def from_json(raw: Any) -> State:
        """The state that `to_json` wrote; what is not of that form is forgotten."""
        fields = raw if isinstance(raw, dict) else {}
        waits, run = fields.get("waits"), fields.get("run")
        run = run if isinstance(run, dict) and read_instant(run.get("at")) is not None else {}
        error, status = run.get("error"), run.get("status")
        pairs = waits.items() if isinstance(waits, dict) else ()
        return State(
            memory=Memory.from_json(fields.get("policy")),
            fired=read_instants(fields.get("fired")),
            waits={key: each for key, each in pairs if isinstance(each, dict)},
            run=run,
            last_run=read_instant(run.get("at")),
            last_status=next((each for each in ExecutionStatus if each == status), ExecutionStatus.OK),
            last_error=error if isinstance(error, str) else None,
        )


class States:
    """The states by id. What is remembered is written now and then; switches are on the card before they count."""

    def __init__(self, storage: Storage) -> None:
        self._stored = storage.stored
        self._remember = storage.remember
        self._put = storage.put
        self._is_being_flushed = storage.is_being_flushed
        self._removing: Counter[str] = Counter()
        self._tasks = Tasks()
        self._states = {id_: State.from_json(value) for id_, value in storage.stored.items(AUTOMATION_PREFIX)}
        self._switched = {id_: is_on is not False for id_, is_on in storage.stored.items(TOGGLE_PREFIX)}
        self._at_first: Mapping[str, bool] = {}
        self.begin_with({})

    async def __aenter__(self) -> States:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    def of(self, id_: str) -> State:
        """The state of the automation of this id, which may be new."""
        return self._states.setdefault(id_, State())

    def begin_with(self, enabled: Mapping[str, bool]) -> None:
        """What the files say of automations that nobody has switched; others are on."""
        self._at_first = enabled
        for id_ in {**self._switched, **enabled}:
            self.of(id_).is_enabled = self._switched.get(id_, enabled.get(id_, True))

    def remember(self, id_: str, memory: Memory) -> None:
        """Keep what a policy remembers, over a restart too."""
        state = self.of(id_)
        if memory != state.memory:
            state.memory = memory
            self._store(id_, state)

    def note_fired(self, id_: str, schedule: str, at: datetime) -> None:
        """Keep what fired last of a schedule, over a restart too."""
        state = self.of(id_)
        state.fired[schedule] = at
        self._store(id_, state)

    def note_run(
        self, id_: str, at: datetime, status: ExecutionStatus, error: str | None, *, is_trusted: bool
    ) -> None:
        """Keep when it was executed last, and how that ended; over a restart too where that time is trusted."""
        state = self.of(id_)
        state.last_run, state.last_status, state.last_error = at, status, error
        if is_trusted:
            state.run = {"at": to_millis(at), "status": status, "error": fit_for_card(error)}
            self._store(id_, state)

    def note_wait(self, id_: str, key: str, wait: dict[str, Any] | None) -> None:
        """Keep a wait that is under way, over a restart too; None is that it is over."""
        state = self.of(id_)
        if wait is not None:
            state.waits[key] = wait
        elif state.waits.pop(key, None) is None:
            return
        self._store(id_, state)

    def keep_waits(self, id_: str, names: Mapping[str, str]) -> None:
        """Forget the waits of other triggers than these; each is found by its old key, and kept by its new one."""
        state = self.of(id_)
        named = ((key.partition(" "), wait) for key, wait in state.waits.items())
        waits = {f"{names[key]} {device_id}": wait for (key, _, device_id), wait in named if key in names}
        if len(waits) < len(state.waits):
            log.info("automation '%s': what it waited for is forgotten: its trigger was edited", id_)
        if waits.keys() != state.waits.keys():
            state.waits = waits
            self._store(id_, state)

    def end_wait(self, id_: str, key: str) -> Awaitable[None] | None:
        """Forget a wait that is over; if it is on the card, return what removes it there.

        It may also be on its way there: by a flush, or together with another wait that is being removed.
        """
        stored_as = AUTOMATION_PREFIX + id_
        on_card = dict(self._stored.items(stored_as)).get("")
        is_on_its_way = self._is_being_flushed(stored_as) or self._removing[id_] > 0
        self.note_wait(id_, key, None)
        if not is_on_its_way and key not in State.from_json(on_card).waits:
            return None
        self._removing[id_] += 1
        return self._remove_wait(id_)

    async def _remove_wait(self, id_: str) -> None:
        try:
            with contextlib.suppress(StoreFailed):  # the home runs on; the next flush removes it
                await self._put({AUTOMATION_PREFIX + id_: self.of(id_).to_json() or None})
        finally:
            self._removing[id_] -= 1

    def forget_others(self, ids: Collection[str]) -> None:
        """Forget automations that there are no more, their switches too, as soon as the card takes it."""
        gone = [id_ for id_ in self._states if id_ not in ids]
        switched = [TOGGLE_PREFIX + id_ for id_ in gone if self._switched.pop(id_, None) is not None]
        for id_ in gone:
            del self._states[id_]
            self._remember(AUTOMATION_PREFIX + id_, None)
        if switched:
            self._tasks.start(self._remove(switched), "forgetting of automations")

    async def switch(self, id_: str, *, is_enabled: bool) -> None:
        """Switch it on or off, once that is on the card; `StoreFailed` where it cannot be.

        Once begun it is finished even if the caller is cancelled.
        """
        await self._tasks.finish(self._switch(id_, is_enabled), f"switch of {id_}")

    async def _switch(self, id_: str, is_enabled: bool) -> None:
        is_as_the_file_says = is_enabled == self._at_first.get(id_, True)
        await self._put({TOGGLE_PREFIX + id_: None if is_as_the_file_says else is_enabled})
        self._switched.pop(id_, None)
        if not is_as_the_file_says:
            self._switched[id_] = is_enabled
        self.of(id_).is_enabled = is_enabled

    async def _remove(self, keys: list[str]) -> None:
        with contextlib.suppress(StoreFailed):  # the next start finds them again
            await self._put(dict.fromkeys(keys))

    def _store(self, id_: str, state: State) -> None:
        self._remember(AUTOMATION_PREFIX + id_, state.to_json() or None)
