"""Context: what `ctx` of one execution does in the home, and what its commands came to."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from appliance.adapters.dispatch import Dispatcher, Outcome, Status
from appliance.clock import Clock
from appliance.errors import Invalid, NotFound
from appliance.home import plain
from appliance.home.commands import Command
from appliance.home.registry import Registry

log = logging.getLogger("scripts")

LONGEST_SLEEP = 3600
MOST_RESULTS = 1_000

LEVELS: Mapping[str, int] = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}


class Context:
    """The `Calls` of one execution. `source` is who commands, `scene:evening`.

    `results` holds what every command to a device came to, in call order; of very many, the latest.
    """

    def __init__(self, registry: Registry, dispatcher: Dispatcher, clock: Clock, source: str) -> None:
        self._registry = registry
        self._dispatcher = dispatcher
        self._clock = clock
        kind, _, name = source.partition(":")
        self._label = {kind: name}
        self._results: list[dict[str, Any]] = []

    @property
    def results(self) -> list[dict[str, Any]]:
        """`{target, status, message}` of each command."""
        return self._results[-MOST_RESULTS:]

    async def call(self, operation: str, arguments: Sequence[Any]) -> Any:
        """Do what `ctx:<operation>(…)` asks; a `LaresError` says why it cannot be done."""
        if operation in _LOOKUPS:
            return _LOOKUPS[operation](self._registry, arguments[0])
        return await _ACTIONS[operation](self, *arguments)

    def log(self, level: str, message: str, fields: Any) -> None:
        """Write a line of the script's to the log, with its name."""
        named = fields if isinstance(fields, dict) else {} if fields is None else {"fields": fields}
        extra = {f"{key}_" if key in _TAKEN else key: value for key, value in sorted(named.items())}
        log.log(LEVELS[level], "%s", message, extra={**extra, **self._label})

    async def _command(self, device_id: str, raw: Any) -> dict[str, Any]:
        command = Command.parse(raw)
        try:
            device = self._registry.get_device(device_id)
        except NotFound as error:
            outcome = Outcome(device_id=device_id, status=Status.ERROR, message=str(error))
        else:
            [outcome] = await self._dispatcher.send([device], command)
        self._record(outcome)
        return {"status": outcome.status, "message": outcome.message}

    async def _command_group(self, group_id: str, raw: Any) -> list[dict[str, Any]]:
        devices = self._registry.list_group_devices(group_id)
        outcomes = await self._dispatcher.send(devices, Command.parse(raw))
        return [self._record(outcome) for outcome in outcomes]

    async def _invoke(self, target: str, payload: Any) -> Any:
        if payload is not None and not isinstance(payload, dict):
            raise Invalid("ctx:invoke: the payload must be a table with named fields")
        return await self._dispatcher.invoke(target, payload or {})

    async def _sleep(self, seconds: float, _: None) -> None:
        if not 0 <= seconds <= LONGEST_SLEEP:
            raise Invalid(f"ctx:sleep takes 0 to {LONGEST_SLEEP} seconds, not {seconds:g}")
        await self._clock.sleep(seconds)

    def _record(self, outcome: Outcome) -> dict[str, Any]:
        result = {"target": outcome.device_id, "status": outcome.status, "message": outcome.message}
        self._results.append(result)
        if len(self._results) > 2 * MOST_RESULTS:
            del self._results[:-MOST_RESULTS]
        return result


_TAKEN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
"""Names of fields that a log record keeps for itself."""


def _or_none(get: Callable[[Registry, str], dict[str, Any]]) -> Callable[[Registry, str], dict[str, Any] | None]:
    """The look-up with None where there is no such thing."""

    def look_up(registry: Registry, name: str) -> dict[str, Any] | None:
        try:
            return get(registry, name)
        except NotFound:
            return None

    return look_up


_LOOKUPS: Mapping[str, Callable[[Registry, str], Any]] = {
    "get_device": _or_none(lambda registry, name: plain.device(registry.get_device(name))),
    "list_devices": lambda registry, _: [plain.device(each) for each in registry.list_devices()],
    "get_room": _or_none(lambda registry, name: plain.room(registry.get_room(name))),
    "list_rooms": lambda registry, _: [plain.room(each) for each in registry.list_rooms()],
    "list_room_devices": lambda registry, name: [plain.device(each) for each in registry.list_room_devices(name)],
    "get_group": _or_none(lambda registry, name: plain.group(registry.get_group(name))),
    "list_groups": lambda registry, _: [plain.group(each) for each in registry.list_groups()],
    "list_group_devices": lambda registry, name: [plain.device(each) for each in registry.list_group_devices(name)],
}
"""What `ctx` answers from memory."""

_ACTIONS: Mapping[str, Callable[..., Awaitable[Any]]] = {
    "command": Context._command,
    "command_group": Context._command_group,
    "invoke": Context._invoke,
    "sleep": Context._sleep,
}
"""What `ctx` does, and waits for."""

OPERATIONS = frozenset({*_LOOKUPS, *_ACTIONS})
"""Every request that `ctx` can make; `ctx:log` is none, for it waits for nothing."""
