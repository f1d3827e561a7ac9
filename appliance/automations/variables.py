"""Variables: values that scenes and automations share. The values survive restarts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import Struct, convert
from msgspec.json import decode
from msgspec.structs import replace

from appliance.automations.brake import Brake
from appliance.automations.field_checks import variable_name
from appliance.errors import Invalid, NotFound
from appliance.home.bus import Bus
from appliance.home.events import VariableChanged
from appliance.home.values import Value, json_size, last_known, same
from appliance.store.file_format import EncodedChanges, encode_values
from appliance.store.record_keys import VARIABLE_PREFIX
from appliance.store.records import OnFault, read_all, skip
from appliance.store.storage import DocumentReader, Storage
from appliance.tasks import Tasks

MAX_VALUE_BYTES = 16 << 10


MAX_VARIABLES = 1000


MAX_TOTAL_BYTES = 256 << 10


class Variable(Struct, frozen=True, kw_only=True):
    """A variable. `value` is never None."""

    name: str
    value: Value


class StoredVariable(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored variable. A removed variable has no value. `last` contains the last known values, like `Device.last`
    for an attribute."""

    value: Any = None
    last: tuple[Any, ...] = ()

    @property
    def known(self) -> tuple[Value, ...]:
        """Return the current value and the last values."""
        return self.last if self.value is None else (self.value, *self.last)

    def encode(self) -> dict[str, Value] | None:
        fields = {} if self.value is None else {"value": self.value}
        return {**fields, "last": list(self.last)} if self.last else fields or None


def read_variables(stored: DocumentReader, on_fault: OnFault = skip) -> dict[str, StoredVariable]:
    """Decode the stored variables by name."""
    return read_all(stored, VARIABLE_PREFIX, lambda _, raw: convert(raw, StoredVariable), on_fault)


class _Kept(StoredVariable, frozen=True, kw_only=True):
    """A variable in memory. `size` is the size of the value as JSON."""

    size: int = 0


_NOTHING = _Kept()


class _Pending(Struct, kw_only=True, eq=False):
    """A durable change that is being stored. `is_outdated` is true if the variable was set again in the meantime."""

    name: str
    size: int
    is_outdated: bool = False


class Variables:
    """The variables by name. If a variable is set twice, the last change wins, both in memory and in storage."""

    def __init__(self, storage: Storage, bus: Bus, brake: Brake) -> None:
        self._storage = storage
        self._bus = bus
        self._brake = brake
        self._tasks = Tasks()
        self._kept: dict[str, _Kept] = {}
        self._watched: frozenset[str] = frozenset()
        self._pending: list[_Pending] = []
        for name, stored in read_variables(storage).items():
            size = 0 if stored.value is None else len(orjson.dumps(stored.value))
            self._keep(name, _Kept(value=stored.value, size=size, last=stored.last[:2]))

    async def __aenter__(self) -> Variables:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    def watch(self, names: frozenset[str]) -> None:
        """From now on, keep the last values of these variables after a removal. Triggers compare new values with
        the last values."""
        self._watched = names
        # the next flush must not overwrite a change that is being stored; the next call removes its last values
        being_stored = {each.name for each in self._pending if not each.is_outdated}
        for name, kept in [*self._kept.items()]:
            if kept.last and name not in names and name not in being_stored:
                forgotten = replace(kept, last=())
                self._keep(name, forgotten)
                self._storage.put_later(VARIABLE_PREFIX + name, forgotten.encode())

    def list_all(self) -> list[Variable]:
        """Return every variable, sorted by name."""
        kept = sorted((name, each.value) for name, each in self._kept.items() if each.value is not None)
        return [Variable(name=name, value=value) for name, value in kept]

    def find(self, name: str) -> Value:
        return self._kept.get(name, _NOTHING).value

    def get(self, name: str) -> Variable:
        """Return the variable. Raise `NotFound` if the variable is not set."""
        if (value := self.find(name)) is None:
            raise NotFound("variable", name)
        return Variable(name=name, value=value)

    def set(self, name: str, value: Value, source: str) -> None:
        """Set the variable, or remove it if `value` is None. The next flush writes the change to storage. `source` is
        the caller's name in the audit log.

        Raise `Invalid` for a wrong name or value, or if there are too many variables.
        """
        size = self._check(name, value)
        for each in self._pending:
            each.is_outdated |= each.name == name
        kept = self._change(name, value, size, {})
        self._storage.put_later(VARIABLE_PREFIX + name, kept.encode())
        self._apply(name, kept, source)

    async def set_durable(self, name: str, value: Value, source: str) -> None:
        """Like `set`, but store the value first. Raise `StoreFailed` if storage fails."""
        pending = _Pending(name=name, size=self._check(name, value))
        self._pending.append(pending)
        await self._tasks.finish(self._set_durable(pending, value, source), f"setting of the variable {name}")

    async def _set_durable(self, pending: _Pending, value: Value, source: str) -> None:
        key, kept = VARIABLE_PREFIX + pending.name, _NOTHING

        def prepare(batch: EncodedChanges) -> EncodedChanges:
            nonlocal kept
            if pending.is_outdated:
                return {}
            kept = self._change(pending.name, value, pending.size, batch)
            return encode_values({key: kept.encode()})

        def commit() -> None:
            if not pending.is_outdated:
                self._apply(pending.name, kept, source)

        try:
            if not pending.is_outdated:  # otherwise, the flush writes the later value
                await self._storage.change(prepare, commit, replaces=[key])
        finally:
            self._pending.remove(pending)

    def _check(self, name: str, value: Value) -> int:
        """Return the size of the value as JSON. Raise `Invalid` if the name or value is wrong, or if the existing
        variables leave no room."""
        size = check_variable(name, value)
        if value is None:
            return 0
        others = self._bytes_used()
        others.pop(name, None)
        check_capacity(name, size, others)
        return size

    def _bytes_used(self) -> dict[str, int]:
        """Return the size of each variable. For a variable that is being written, return the size of its largest
        value."""
        taken = {name: each.size for name, each in self._kept.items() if each.value is not None}
        for each in self._pending:
            taken[each.name] = max(taken.get(each.name, 0), each.size)
        return taken

    def _change(self, name: str, value: Value, size: int, batch: EncodedChanges) -> _Kept:
        """Return the variable after the change. `batch` contains the earlier changes that are stored together with
        this change."""
        if name not in self._watched:
            return _Kept(value=value, size=size)
        before: StoredVariable = self._kept.get(name, _NOTHING)
        if (key := VARIABLE_PREFIX + name) in batch:
            before = decode(batch[key] or b"{}", type=StoredVariable)
        return _Kept(value=value, size=size, last=last_known(value, before.known))

    def _apply(self, name: str, kept: _Kept, source: str) -> None:
        before = self._kept.get(name, _NOTHING)
        self._keep(name, kept)
        if not same(before.value, kept.value):
            self._brake.note_effect(source, "variable", name)
            event = VariableChanged(name=name, value=kept.value, previous=before.value, known=before.known)
            self._bus.publish(event)

    def _keep(self, name: str, kept: _Kept) -> None:
        if kept.value is None and not kept.last:
            self._kept.pop(name, None)
        else:
            self._kept[name] = kept


def variable_sizes(stored: DocumentReader) -> dict[str, int]:
    """Return the size of each stored variable as JSON, by name."""
    values = {name: each.value for name, each in read_variables(stored).items()}
    return {name: len(orjson.dumps(value)) for name, value in values.items() if value is not None}


def check_capacity(name: str, size: int, others: Mapping[str, int]) -> None:
    """Raise `Invalid` if the other variables, given by their sizes, leave no room for the variable."""
    if len(others) >= MAX_VARIABLES:
        raise Invalid(f"variable '{name}': there are {MAX_VARIABLES} already; remove one first")
    if sum(others.values()) + size > MAX_TOTAL_BYTES:
        raise Invalid(f"variable '{name}': all variables exceed {MAX_TOTAL_BYTES} bytes; remove one first")


def check_variable(name: str, value: Value) -> int:
    """Return the size of a variable's value as JSON. Raise `Invalid` if the name or value is not allowed."""
    try:
        variable_name(name)
    except Invalid as fault:
        raise Invalid(f"the variable's name {fault}") from None
    if value is None:
        return 0
    return json_size(f"variable '{name}': the value", value, MAX_VALUE_BYTES)
