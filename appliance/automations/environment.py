"""Environment: what automations live in, as one value to hand on; of that the variables, and times of change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import NamedTuple

import orjson
from msgspec import Struct

from appliance.automations.automation_fields import Matcher, same, variable_name
from appliance.automations.brake import Brake
from appliance.automations.states import read_instants
from appliance.clock import Clock, ClockSteps, ClockTrust, to_millis
from appliance.errors import Invalid, NotFound
from appliance.home.bus import Bus
from appliance.home.events import DeviceRemoved, DeviceStateChanged, Event, VariableChanged
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.home.values import Value, last_known
from appliance.settings import AutomationRunner
from appliance.store.records import Storage
from appliance.tasks import Tasks
from appliance.version import MADE_AT

CHANGED_PREFIX = "changed/"
"""Keys in the document: `changed/<device id>` holds since when each comparison that a condition asks for holds."""


VARIABLE_PREFIX = "variable/"
"""Keys in the document: `variable/<name>` holds `{value}`."""

MAX_VALUE_BYTES = 16 << 10
MAX_VARIABLES = 1000
MAX_TOTAL_BYTES = 256 << 10
MAX_VALUE_DEPTH = 32
"""How deep a value may be nested; deeper ones Lua cannot read."""


class Variable(Struct, frozen=True, kw_only=True):
    """One variable and its value, which is never None."""

    name: str
    value: Value


class _Pending(Struct, kw_only=True, eq=False):
    """A durable setting that is on its way to the card. `is_outdated`: the variable was set again meanwhile."""

    name: str
    size: int
    is_outdated: bool = False


class Variables:
    """The variables by name. What is set last is what stays, on the card too."""

    def __init__(self, storage: Storage, bus: Bus, brake: Brake) -> None:
        self._remember = storage.remember
        self._put = storage.put
        self._bus = bus
        self._brake = brake
        self._tasks = Tasks()
        self._values: dict[str, Value] = {}
        self._last: dict[str, tuple[Value, ...]] = {}
        self._watched: frozenset[str] = frozenset()
        self._sizes: dict[str, int] = {}
        self._pending: list[_Pending] = []
        for name, raw in storage.stored.items(VARIABLE_PREFIX):
            fields = raw if isinstance(raw, dict) else {}
            if fields.get("value") is not None:
                self._store(name, fields["value"], len(orjson.dumps(fields["value"])))
            if isinstance(fields.get("last"), list):
                self._last[name] = tuple(fields["last"][:2])

    async def __aenter__(self) -> Variables:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    def watch(self, names: frozenset[str]) -> None:
        """Keep, from now on, the last values of these variables over removals; triggers compare with them."""
        self._watched = names
        for name in [each for each in self._last if each not in names]:
            del self._last[name]
            self._remember(VARIABLE_PREFIX + name, _stored(self._values.get(name), ()))

    def list_all(self) -> list[Variable]:
        """Every variable, by name."""
        return [Variable(name=name, value=value) for name, value in sorted(self._values.items())]

    def find(self, name: str) -> Value:
        """The variable's value; None where it is not set."""
        return self._values.get(name)

    def get(self, name: str) -> Variable:
        """The variable; `NotFound` where it is not set."""
        if name not in self._values:
            raise NotFound("variable", name)
        return Variable(name=name, value=self._values[name])

    def set(self, name: str, value: Value, source: str) -> None:
        """Set it, None to remove it; it is written with the next flush. `source` is who does so, as in the audit.

        `Invalid` where the name or value is not allowed, or there are too many.
        """
        size = self._check(name, value)
        for each in self._pending:
            each.is_outdated |= each.name == name
        self._remember(VARIABLE_PREFIX + name, _stored(value, self._last_after(name, value)))
        self._apply(name, value, size, source)

    async def set_durable(self, name: str, value: Value, source: str) -> None:
        """As `set`, but returns once it is on the card, and it is so only then; `StoreFailed` where it cannot be."""
        pending = _Pending(name=name, size=self._check(name, value))
        self._pending.append(pending)
        await self._tasks.finish(self._set_durable(pending, value, source), f"setting of the variable {name}")

    async def _set_durable(self, pending: _Pending, value: Value, source: str) -> None:
        name = pending.name
        try:
            if pending.is_outdated:  # before it began: what was set since is to be written, with the next flush
                return
            await self._put({VARIABLE_PREFIX + name: _stored(value, self._last_after(name, value))})
        finally:
            self._pending.remove(pending)
        if not pending.is_outdated:
            self._apply(name, value, pending.size, source)

    def _check(self, name: str, value: Value) -> int:
        """Return the bytes of the value as JSON; raise `Invalid` if the variable may not be set to it now."""
        size = check_variable(name, value)
        if value is None:
            return 0
        others = self._bytes_used()
        others.pop(name, None)
        if len(others) >= MAX_VARIABLES:
            raise Invalid(f"variable '{name}': there are {MAX_VARIABLES} already; remove one first")
        if sum(others.values()) + size > MAX_TOTAL_BYTES:
            raise Invalid(f"variable '{name}': all together may take {MAX_TOTAL_BYTES} bytes; remove one first")
        return size

    def _bytes_used(self) -> dict[str, int]:
        """The bytes of each variable, or of its largest value that is on its way to the card."""
        taken = dict(self._sizes)
        for each in self._pending:
            taken[each.name] = max(taken.get(each.name, 0), each.size)
        return taken

    def _apply(self, name: str, value: Value, size: int, source: str) -> None:
        previous, known, last = self._values.get(name), self._known(name), self._last_after(name, value)
        self._store(name, value, size)
        self._last.pop(name, None)
        if last:
            self._last[name] = last
        if not same(previous, value):
            self._brake.note_effect(source, "variable", name)
            self._bus.publish(VariableChanged(name=name, value=value, previous=previous, known=known))

    def _known(self, name: str) -> tuple[Value, ...]:
        """Its value and what `Device.last` is for an attribute."""
        value, last = self._values.get(name), self._last.get(name, ())
        return last if value is None else (value, *last)

    def _last_after(self, name: str, value: Value) -> tuple[Value, ...]:
        return last_known(value, self._known(name)) if name in self._watched else ()

    def _store(self, name: str, value: Value, size: int) -> None:
        if value is None:
            self._values.pop(name, None)
            self._sizes.pop(name, None)
        else:
            self._values[name] = value
            self._sizes[name] = size


def check_variable(name: str, value: Value) -> int:
    """Return the bytes of a variable's value as JSON; raise `Invalid` if no variable may have this name or value."""
    try:
        variable_name(name)
    except Invalid as fault:
        raise Invalid(f"the variable's name {fault}") from None
    if value is None:
        return 0
    try:
        _check_depth(value, MAX_VALUE_DEPTH)
        size = len(orjson.dumps(value))
    except (orjson.JSONEncodeError, RecursionError):
        raise Invalid(f"variable '{name}': the value is no JSON") from None
    if size > MAX_VALUE_BYTES:
        raise Invalid(f"variable '{name}': the value takes {size} bytes as JSON; {MAX_VALUE_BYTES} are allowed")
    return size


def _stored(value: Value, last: tuple[Value, ...]) -> dict[str, Value] | None:
    fields = {} if value is None else {"value": value}
    return {**fields, "last": list(last)} if last else fields or None


def _check_depth(value: Value, left: int) -> None:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for child in children:
        if left <= 1:
            raise Invalid(f"the value is nested more than {MAX_VALUE_DEPTH} deep")
        _check_depth(child, left - 1)


class Comparison(NamedTuple):
    """An attribute and what a condition compares it with."""

    attribute: str
    matcher: Matcher

    @property
    def key(self) -> str:
        """The name under which its time is kept; the attribute's own unless only a range counts."""
        return f"{self.attribute} {self.matcher}" if self.matcher.is_range else self.attribute

    def begins(self, event: DeviceStateChanged) -> bool:
        """Return whether the comparison begins to hold, or its value changes; a gap is neither."""
        value = event.device.attributes.get(self.attribute)
        if self.attribute not in event.changed or not self.matcher.is_usable(value):
            return False
        previous = None if event.previous is None else self.matcher.last_usable(event.previous.known(self.attribute))
        return self.matcher.is_entered(value, previous) if self.matcher.is_range else not same(value, previous)


class ChangeTimes:
    """Remembers since when comparisons hold, of those that `watch` names, over restarts too.

    Without `above` and `below` that is the last change. Where the clock is set, what was seen before in this run of
    the hub has another time by it.
    """

    def __init__(self, storage: Storage, registry: Registry, bus: Bus, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._steps = ClockSteps(clock)
        self._remember = storage.remember
        self._watched: Mapping[str, Collection[Comparison]] = {}
        self._times: dict[str, dict[str, datetime]] = {}
        self._seen: dict[str, set[str]] = {}
        for device_id, value in storage.stored.items(CHANGED_PREFIX):
            self._times[device_id] = read_instants(value)
        bus.listen(self._on_event, DeviceRemoved, DeviceStateChanged)

    def watch(self, comparisons: Mapping[str, Collection[Comparison]]) -> None:
        """From now on remember these comparisons, by device id or alias; forget other devices."""
        self._watched = comparisons
        watched = {self._registry.id_of(each) for each in comparisons}
        for device_id in [each for each in self._times if each not in watched]:
            self._forget(device_id)

    def get(self, device: Device, comparison: Comparison) -> datetime:
        """Return since when it holds; if that was not observed, when the device last changed."""
        self._follow_clock()
        return self._times.get(device.id, {}).get(comparison.key, device.updated_at)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, DeviceRemoved) and event.device_id in self._times:
            self._forget(event.device_id)
        if not isinstance(event, DeviceStateChanged) or event.previous is None:
            return
        device = event.device
        for each in (*self._watched.get(device.id, ()), *self._watched.get(device.alias or "", ())):
            if each.begins(event):
                self._note(device.id, each.key)
            elif each.key not in self._times.get(device.id, {}):
                self._note(device.id, each.key, event.previous.updated_at)

    def _follow_clock(self) -> None:
        step = self._steps.poll()
        for device_id, names in self._seen.items() if step else ():
            for name in names:
                self._keep(device_id, name, self._steps.redate(self._times[device_id][name], step))

    def _note(self, device_id: str, name: str, at: datetime | None = None) -> None:
        self._follow_clock()
        self._seen.setdefault(device_id, set()).add(name)
        self._keep(device_id, name, self._clock.now() if at is None else at)

    def _keep(self, device_id: str, name: str, at: datetime) -> None:
        times = self._times.setdefault(device_id, {})
        times[name] = at
        self._remember(CHANGED_PREFIX + device_id, {each: to_millis(time) for each, time in times.items()})

    def _forget(self, device_id: str) -> None:
        del self._times[device_id]
        self._seen.pop(device_id, None)
        self._remember(CHANGED_PREFIX + device_id, None)


DEFAULT_LIMITS = AutomationRunner()


class Environment:
    """Registry, bus, clock with its trust and storage, with an own brake, change times and variables.

    `limits` are those of the brake. `began` is the monotonic second at which the hub began to start, None for the
    present; `stopped_at` is when the one before it stopped in order, None where that is not known; `left_at` is the
    newest time at which it is known to have run.
    """

    def __init__(
        self,
        registry: Registry,
        bus: Bus,
        clock: Clock,
        trust: ClockTrust,
        storage: Storage,
        *,
        limits: AutomationRunner = DEFAULT_LIMITS,
        began: float | None = None,
        stopped_at: datetime | None = None,
    ) -> None:
        self.registry = registry
        self.bus = bus
        self.clock = clock
        self.trust = trust
        self.storage = storage
        self.began = began
        self.stopped_at = stopped_at
        newest = trust.newest if trust.newest > MADE_AT else None  # the build time is no time of this home
        self.left_at = stopped_at or newest
        self.brake = Brake(bus, clock, max_runs=limits.brake_runs, secs=limits.brake_secs)
        self.change_times = ChangeTimes(storage, registry, bus, clock)
        self.variables = Variables(storage, bus, self.brake)
        self.list_timers: Callable[[], Mapping[str, datetime]] = dict
        """When the timers that run are due, by name, once there are any."""

    def secs_since_stop(self) -> float:
        """Return for how long at most the hub did not watch the home before now, in seconds."""
        now = self.clock.now()
        if self.left_at is None or self.left_at > now or not self.trust.is_trusted():
            return 0.0 if self.began is None else round(self.clock.monotonic() - self.began, 3)
        return round((now - self.left_at).total_seconds(), 3)
