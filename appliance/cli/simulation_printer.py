"""What `lares simulate` prints: a line for everything that an automation does, or why it does nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from appliance.cli.terminal import say
from appliance.clock import Clock, timestamp
from appliance.history.execution_history import ExecutionEntry, ExecutionHistory, ExecutionStatus
from appliance.home.events import CommandEnded, Event

NOT_RUN = (ExecutionStatus.SKIPPED, ExecutionStatus.DROPPED)


class SimulationPrinter(ExecutionHistory):
    """Prints what happens when it happens, and counts it; a history that keeps nothing.

    `zone` is that of the times for people; None prints a JSON object a line. Where `runs_lua`, an automation fires
    when its Lua begins, else when it would. `stop` is called when standard output is closed; `gone` is set then.
    `latest` is the source of the latest line.
    """

    def __init__(self, clock: Clock, zone: ZoneInfo | None, stop: Callable[[], None], *, runs_lua: bool) -> None:
        super().__init__()
        self._clock = clock
        self._zone = zone
        self._stop = stop
        self._runs_lua = runs_lua
        self.fired = 0
        self.commands = 0
        self.is_over = False
        self.latest = "an automation"
        self.gone: BrokenPipeError | None = None

    def on_start(self, source: str) -> None:
        """The Lua of `automation:<id>` or `scene:<id>` begins."""
        if source.startswith("automation:"):
            self._print_fired(self._clock.now(), source)
        else:
            self._print(self._clock.now(), source, "runs", {"runs": True})

    def add(self, entry: ExecutionEntry) -> None:
        """Print what became of a trigger: that it fired, failed, or why it did not fire."""
        source = f"automation:{entry.subject}"
        if entry.status in NOT_RUN:
            fields = {"fired": False, "error": entry.error}
            self._print(entry.executed_at, source, f"does not fire: {entry.error}", fields)
        elif entry.status is not ExecutionStatus.OK:
            self._print(self._clock.now(), source, f"fails: {entry.error}", {"fired": True, "error": entry.error})
        elif not self._runs_lua:
            self._print_fired(entry.executed_at, source)

    def on_event(self, event: Event) -> None:
        """Print a command and its result."""
        if not isinstance(event, CommandEnded):
            return
        self.commands += 1
        command = event.command
        value = "" if command.value is None else f" {json.dumps(command.value)}"
        failure = "" if event.message is None else f", which comes to nothing: {event.message}"
        fields = {"capability": command.capability, "action": command.action, "value": command.value}
        fields |= {"device_id": event.device_id, "status": event.status, "message": event.message}
        self._print(
            event.at, event.source, f"commands {event.device_id}: {command}{value}{failure}", {"command": fields}
        )

    def print_action(self, source: str, what: str, fields: Mapping[str, Any]) -> None:
        """Print something else that Lua does."""
        self._print(self._clock.now(), source, what, fields)

    def _print_fired(self, at: datetime, source: str) -> None:
        self.fired += 1
        self._print(at, source, "fires", {"fired": True, "error": None})

    def _print(self, at: datetime, source: str, what: str, fields: Mapping[str, Any]) -> None:
        if self.is_over:
            return
        kind, _, id_ = source.partition(":")
        self.latest = f"{kind} '{id_}'"
        if self._zone is None:
            line = json.dumps({"at": timestamp(at), kind: id_, **fields})
        else:
            name = id_ if kind == "automation" else f"{kind} {id_}"
            line = f"{at.astimezone(self._zone):%a %Y-%m-%d %H:%M:%S %Z}  {name}  {what}"
        try:
            say(line)
        except BrokenPipeError as error:
            self.gone = error
            self._stop()
