"""The workers: one that takes new executions, and condemned ones in which others come to their end."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from appliance.clock import timestamp
from appliance.lua.execution import ExecutionSettings, LuaExecution
from appliance.lua.worker import Worker
from appliance.tasks import Tasks

MAX_DRAIN_SECS = 60.0
"""How long a condemned worker may last for the sake of the others in it."""

MAX_CONDEMNED = 1
"""Condemned workers at once; of more, the oldest is killed."""

MAX_KILLS_KEPT = 20

log = logging.getLogger("lua")


class Workers:
    """Owns the processes. Leaving the context ends them all; `on_kill` is told of each that ended badly, and why."""

    def __init__(self, settings: ExecutionSettings, zone: ZoneInfo, on_kill: Callable[[str], None]) -> None:
        self._settings = settings
        self._zone = zone
        self._on_kill = on_kill
        self._current: Worker | None = None
        self._alive: list[Worker] = []
        self._kills: deque[dict[str, Any]] = deque(maxlen=MAX_KILLS_KEPT)
        self._kill_count = 0
        self._is_closing = False
        self._tasks = Tasks()

    async def __aenter__(self) -> Workers:
        self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_closing = True
        for worker in tuple(self._alive):
            worker.kill("the hub stopped", quietly=True)
        await self._tasks.__aexit__()

    def place(self, execution: LuaExecution) -> None:
        """Begin the execution in the worker that takes new ones; a fresh one is started where there is none."""
        worker = self._current if self._current is not None and self._current.is_usable else self._start()
        worker.admit(execution)

    def figures(self) -> dict[str, Any]:
        """The workers as they are now, and those that ended badly since the start."""
        return {
            "workers": [each.figures() for each in self._alive],
            "kills": self._kill_count,
            "last_kills": list(self._kills),
        }

    def _start(self) -> Worker:
        self._current = worker = Worker(self._settings, self._condemn, self._on_end)
        self._alive.append(worker)
        self._tasks.start(worker.run(self._zone), "Lua worker")
        return worker

    def _condemn(self, worker: Worker, culprit: str) -> None:
        """Let new executions go to a fresh worker; this one has a minute for those that are in it."""
        if worker is self._current:
            self._start()
        worker.condemn(culprit)
        self._note(worker, f"{culprit} could not be stopped")  # whoever hears of it may begin something
        because = f"the Lua worker was killed, because {culprit}, which ran in it too, could not be stopped"
        asyncio.get_running_loop().call_later(MAX_DRAIN_SECS, lambda: worker.kill(because, quietly=True))
        condemned = [each for each in self._alive if each.condemned_for is not None and each.ended_because is None]
        for each in condemned[:-MAX_CONDEMNED]:
            each.kill(because.replace(culprit, each.condemned_for or ""), quietly=True)

    def _on_end(self, worker: Worker, unbegun: Sequence[LuaExecution]) -> None:
        """Note the end of a process; executions that it was to begin are begun in another."""
        self._alive.remove(worker)
        if not worker.is_quiet and worker.ended_because is not None:
            self._note(worker, worker.ended_because)
        if worker is self._current:
            self._current = None
            if not self._is_closing and worker.is_ready:
                self._start()
        for execution in unbegun:
            self.place(execution)

    def _note(self, worker: Worker, reason: str) -> None:
        self._kill_count += 1
        at = timestamp(self._settings.clock.now())
        self._kills.appendleft({"at": at, "pid": worker.pid, "reason": reason})
        log.error("a Lua worker is lost: %s", reason)
        self._on_kill(reason)
