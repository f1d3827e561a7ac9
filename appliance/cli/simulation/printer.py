"""Prints the lines of a simulation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from appliance.cli.terminal import check_reader, counted, say
from appliance.clock import Clock, timestamp
from appliance.history.execution_history import ExecutionEntry, ExecutionHistory, ExecutionStatus
from appliance.home.events import CommandEnded, Event
from appliance.tables.checks import rounded

MAX_EQUAL_LINES = 5
"""Maximum number of equal lines to print per automation. A final line reports the number of omitted lines."""

MAX_COUNTED_CHARS = 16 << 20
"""Maximum total length of the different lines that the printer counts. It prints further lines without a count."""

CHECK_READER_EVERY = 1000
"""After this number of omitted lines, the printer checks whether its reader still exists."""

FIRES = "fires"
NOT_RUN = (ExecutionStatus.SKIPPED, ExecutionStatus.DROPPED)


class SimulationPrinter(ExecutionHistory):
    """Prints and counts all results, without a history.

    - `zone`: the time zone of printed times. If `zone` is None, each line is a JSON object.
    - `runs_lua`: whether Lua runs. If Lua runs, an automation is treated as fired when its Lua begins.
    - `gone`: set when standard output is closed; the printer then calls `stop`.
    - `latest`: the source of the latest line.
    """

    def __init__(
        self,
        clock: Clock,
        zone: ZoneInfo | None,
        stop: Callable[[], None],
        *,
        runs_lua: bool,
        write: Callable[[str], None] = say,
    ) -> None:
        super().__init__()
        self._write = write
        self._clock = clock
        self._zone = zone
        self._stop = stop
        self._runs_lua = runs_lua
        self.fired = 0
        self.commands = 0
        self.is_over = False
        self.latest = "an automation"
        self.gone: BrokenPipeError | None = None
        self.only: str | None = None
        """The id of the automation whose lines are printed, or None for all automations."""
        self._repeated: dict[tuple[str, str], tuple[int, datetime]] = {}
        """The number of repetitions and the last time of each line."""
        self._counted_chars = 0

    def on_start(self, source: str) -> None:
        """Print that the Lua code of `automation:<id>` or `scene:<id>` begins."""
        if source.startswith("automation:"):
            self._print_fired(self._clock.now(), source)
        else:
            self._print(self._clock.now(), source, "runs", {"runs": True})

    def add(self, entry: ExecutionEntry) -> None:
        """Print the result of a trigger: the automation ran, failed, or did not run for a reason."""
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
        self.commands += self._is_shown(event.source)
        command = event.command
        value = "" if command.value is None else f" {json.dumps(rounded(command.value))}"
        failure = "" if event.message is None else f", which fails: {event.message}"
        fields = {"capability": command.capability, "action": command.action, "value": command.value}
        fields |= {"device_id": event.device_id, "status": event.status, "message": event.message}
        self._print(
            event.at, event.source, f"commands {event.device_id}: {command}{value}{failure}", {"command": fields}
        )

    def print_action(self, source: str, what: str, fields: Mapping[str, Any]) -> None:
        """Print an action of Lua that is not a command."""
        self._print(self._clock.now(), source, what, fields)

    def print_repetitions(self) -> None:
        """Print the number of repetitions of each omitted line."""
        for (source, what), (count, last) in self._repeated.items():
            if (more := count - MAX_EQUAL_LINES) > 0:
                self._say(last, source, f"{what} (repeated {counted(more, 'more time')}; this is the last)")

    @property
    def counts_equal_lines(self) -> bool:
        """Return whether the only effect of a repeated line is that the line is counted."""
        return self._zone is not None and not self._runs_lua

    def repeat(self, source: str, times: int) -> None:
        """Count `times` further repetitions of the source's only line. The last time of the line is set when the
        line occurs next."""
        for (of, what), (count, last) in self._repeated.items():
            if of == source:
                self._repeated[of, what] = count + times, last
                self.fired += times * (what == FIRES)

    def _print_fired(self, at: datetime, source: str) -> None:
        self.fired += self._is_shown(source)
        self._print(at, source, FIRES, {"fired": True, "error": None})

    def _is_shown(self, source: str) -> bool:
        kind, _, id_ = source.partition(":")
        return self.only is None or kind != "automation" or id_ == self.only

    def _print(self, at: datetime, source: str, what: str, fields: Mapping[str, Any]) -> None:
        if self.is_over:
            return
        kind, _, id_ = source.partition(":")
        self.latest = f"{kind} '{id_}'"
        if not self._is_shown(source):
            return
        if self._zone is None:
            self._put(json.dumps({"at": timestamp(at), kind: id_, **fields}))
            return
        count = self._repeated.get((source, what), (0, at))[0] + 1
        self._counted_chars += len(what) if count == 1 else 0
        if count > 1 or self._counted_chars <= MAX_COUNTED_CHARS:
            self._repeated[source, what] = count, at
        if count <= MAX_EQUAL_LINES:
            self._say(at, source, what)
        elif count % CHECK_READER_EVERY == 0:
            self._put(None)

    def _say(self, at: datetime, source: str, what: str) -> None:
        kind, _, id_ = source.partition(":")
        name = id_ if kind == "automation" else f"{kind} {id_}"
        self._put(f"{at.astimezone(self._zone):%a %Y-%m-%d %H:%M:%S %Z}  {name}  {what}")

    def _put(self, line: str | None) -> None:
        """Write the line. If the line is None, only check whether standard output is still being read."""
        try:
            if line is None:
                check_reader()
            else:
                self._write(line)
        except BrokenPipeError as error:
            self.gone = error
            self._stop()
