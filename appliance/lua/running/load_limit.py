"""The limit for the time that endless files add to a load of folders, such as the hub's start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec.structs import replace

from appliance.errors import Fault, ScriptFailed
from appliance.lua.running.run_limits import RunLimits, RunSettings
from appliance.lua.running.stopped_scripts import StoppedScripts
from appliance.lua.text.source import Source

FIRST_CPU_SECS = 0.5
"""Maximum processor time in seconds of a file's first run."""

SHORTEST_CPU_SECS = 0.05
"""`FIRST_CPU_SECS` once the files that exceeded it have used their time. A usual file needs a tenth of this."""

MAX_LATE_SECS = 12.0
"""Maximum real seconds for all files that exceed `FIRST_CPU_SECS`. Afterwards, each such file has only
`SHORTEST_CPU_SECS`."""

TIMEOUT = "timeout"
"""The status of a `ScriptFailed` whose file exceeded a time limit."""

_WHY = "a short limit, because other files took too long to load; correct the endless files, then try again"
_REMEDY = "correct the file"

_current: ContextVar[LoadLimit | None] = ContextVar("load_limit", default=None)


class LoadLimit:
    """Limits the time that endless files add to a load.

    In the first round, each file runs with a short limit. The files that exceed it are late: in the second round,
    they run with their normal limits at the same time, so that a slow file loads even if others are endless. Each
    round uses at most half of the time that is left for late files. In one round, a script that was stopped while a
    file required it does not run for other files.

    - `_since`: the time since which late files use time in this round.
    - `_late`: the late files, with their fault and the name of the file that took too long, which may be a script.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.is_over = False
        self._now = now
        self._left_secs = MAX_LATE_SECS
        self._since: float | None = None
        self._is_second = False
        self._late: dict[Source, tuple[Fault, str]] = {}
        self._scripts: dict[Source, str] = {}

    def is_late(self, source: Source) -> bool:
        return source in self._late

    @contextmanager
    def second_round(self, sources: Sequence[Source]) -> Iterator[tuple[list[Source], list[Source]]]:
        """Divide the sources into two parts that run one after another. The first part contains only one file for
        each late script."""
        self._end_round()
        self._is_second, self._since = True, self._now()
        one_each: dict[str, Source] = {}
        for source in sources:
            one_each.setdefault(self._late[source][1] if source in self._late else source.name, source)
        first = set(one_each.values())
        try:
            yield [each for each in sources if each in first], [each for each in sources if each not in first]
        finally:
            self._end_round()
            self._is_second = False
            self._late.clear()

    async def run(
        self, source: Source, settings: RunSettings, run: Callable[[RunSettings], Awaitable[bytes]]
    ) -> bytes:
        """Run the file with the limits of the round. Raise `ScriptFailed` if the file fails."""
        began, scripts = self._now(), StoppedScripts(self._scripts)
        limits = self._limits_of(source, settings.limits)
        try:
            return await run(replace(settings, limits=limits, stopped_scripts=scripts))
        except ScriptFailed as failed:
            if failed.status == TIMEOUT or scripts.cause:
                self._late[source] = failed.fault, scripts.cause or source.name
                self._since = began if self._since is None else self._since
            raise

    def _limits_of(self, source: Source, normal: RunLimits) -> RunLimits:
        used = 0.0 if self._since is None else self._now() - self._since
        left = self._left_secs / 2 - used
        if self._is_second and source in self._late:
            if left <= 0:
                raise ScriptFailed(self._late[source][0], TIMEOUT)
            why, slowdown = f"{normal.cpu_limit}; {_REMEDY}", min(normal.slowdown, left / normal.max_cpu_secs)
            return replace(normal, slowdown=slowdown, cpu_limit=why)
        secs = min(FIRST_CPU_SECS if left > 0 else SHORTEST_CPU_SECS, normal.max_cpu_secs)
        slowdown = min(normal.slowdown, max(left, normal.slowdown * SHORTEST_CPU_SECS) / secs)
        return replace(normal, max_cpu_secs=secs, slowdown=slowdown, cpu_limit=_WHY)

    def _end_round(self) -> None:
        if self._since is not None:
            self._left_secs -= min(self._left_secs / 2, self._now() - self._since)
        self._since = None
        self._scripts.clear()


@contextmanager
def limit_load(now: Callable[[], float] | None = None) -> Iterator[LoadLimit]:
    """Limit the files that are loaded within the context. Inside another such context, share its limit. `now` returns
    the time in seconds, by default of the event loop."""
    outer = _current.get()
    if outer is not None and not outer.is_over:
        yield outer
        return
    limit = LoadLimit(asyncio.get_running_loop().time if now is None else now)
    token = _current.set(limit)
    try:
        yield limit
    finally:
        _current.reset(token)
        limit.is_over = True  # tasks that began within the context keep it


def current_load() -> LoadLimit | None:
    """Return the limit of the load that the calling task belongs to, if any."""
    limit = _current.get()
    return None if limit is None or limit.is_over else limit
