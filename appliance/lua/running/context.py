"""The context of an execution: the results of its commands, its warnings, and its trace."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from appliance.adapters.dispatch import Outcome, Status
from appliance.adapters.lua_calls import write_script_line
from appliance.clock import Clock
from appliance.home.commands import Command
from appliance.lua.running.command_results import CommandResults
from appliance.lua.running.failed_calls import FailedCalls
from appliance.lua.running.packed_rows import RowMemory
from appliance.lua.running.trace import Trace, shorten_strings

log = logging.getLogger("scripts")

MAX_WARNINGS = 20

TOO_LARGE = "the running executions needed too much memory"

CtxFunction = Callable[..., Awaitable[Any]]
"""Implements a method of `ctx`: takes the context and three arguments, and returns JSON data."""


class Context:
    """The `LuaCalls` of one execution.

    - `kind`, `id_`: the scene or automation. `source` is its name in the audit log, such as `scene:evening`.
    - `results`: the newest `MAX_RESULTS` command results in call order.
    - `methods`: the implementation of each method.
    - `memory`: limits the results and traces of all running executions together.
    - `counted_secs`: the counted time of the scenes that the execution has run.
    - `chain`: the sources of the executions that led to this execution. The attribute `chain` also includes `source`.
    - `is_alarm`: whether an alarm caused the execution.
    - `client`: the key or the broker whose client caused the execution, if a client caused it.
    """

    def __init__(
        self,
        clock: Clock,
        kind: str,
        id_: str,
        methods: Mapping[str, CtxFunction],
        failed_calls: FailedCalls | None = None,
        chain: tuple[str, ...] = (),
        memory: RowMemory | None = None,
        *,
        is_alarm: bool = False,
        client: str = "",
    ) -> None:
        memory = memory or RowMemory()
        self._methods = methods
        self._failed_calls = failed_calls or FailedCalls(clock)
        self.source = f"{kind}:{id_}"
        self.chain = (*chain, self.source)
        self.is_alarm = is_alarm
        self.client = client
        self.counted_secs = 0.0
        self.trace = Trace(clock, memory)
        self._warnings: list[str] = []
        self._label = {kind: id_}
        self._results = CommandResults(memory)

    @property
    def results(self) -> list[dict[str, Any]]:
        """Return the `{target, status, message}` of each command."""
        return self._results.to_list()

    @property
    def warnings(self) -> list[str]:
        """Return the first `MAX_WARNINGS` failures, and whether running executions needed too much memory."""
        missing = {"results": self._results.count_missing(), "trace": self.trace.count_missing()}
        cut = [f"{part}: the oldest {count} are missing ({TOO_LARGE})" for part, count in missing.items() if count]
        return [*self._warnings, *cut]

    async def call(self, operation: str, arguments: Sequence[Any]) -> Any:
        """Execute `ctx:<operation>(…)`. Raise a `LaresError` if the method fails."""
        return await self._methods[operation](self, *arguments)

    def log(self, level: str, message: str, fields: Any) -> None:
        """Log a script's line with the name of the scene or automation that runs the script."""
        self.trace.add("log", level=level, message=message)
        write_script_line(log, level, message, fields, **self._label)

    def note_failure(self, target: str, reason: str) -> None:
        """Log and record a failed call, because a script with `pcall` would hide the error."""
        log.warning("%s: %s failed: %s", self.source, target, reason)
        self._failed_calls.add(self.source, target, reason)
        self.warn(target, reason)

    def warn(self, target: str, reason: str) -> None:
        """Add a failed call to the warnings of the execution's history entry."""
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(shorten_strings(f"{target}: {reason}"))

    def record(self, outcome: Outcome, command: Command) -> dict[str, Any]:
        """Store and return the result of a command to one device."""
        fields = {"device_id": outcome.device_id, "status": outcome.status, "message": outcome.message}
        self.trace.add("command", capability=command.capability, action=command.action, value=command.value, **fields)
        if outcome.status is not Status.OK:
            reason = outcome.message or outcome.status
            self.note_failure(f"{command} to {outcome.device_id}", reason)
        self._results.add(outcome.device_id, outcome.status, outcome.message)
        return {"target": outcome.device_id, "status": outcome.status, "message": outcome.message}
