"""Failures: what went wrong in Lua, as a sentence with file, line and, where one helps, a hint."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from appliance.errors import Fault, RunCancelled, ScriptFailed
from appliance.lua.execution_limits import ExecutionLimits
from appliance.lua.hints import ErrorContext, hint_of
from appliance.lua.source import Source
from appliance.lua_worker.protocol import FrameKind, Reason, WorkerFrame

MAX_LINE_CHARS = 400
"""How much of a line, or of a message, hints look at."""

_PLACE = re.compile(r"(?P<file>[^\n]+?):(?P<line>\d+): (?P<message>.*)", re.DOTALL)

_LIMITS: dict[Reason, tuple[Callable[[ExecutionLimits], str], str]] = {
    Reason.BACKSTOP: (
        lambda limits: f"took more than {limits.backstop_secs:g} s in all, sleep not counted,",
        "automations.runner.backstop_timeout_secs",
    ),
    Reason.CPU: (lambda limits: f"ran for {limits.max_cpu_secs:g} s without a ctx call", "scripts.max_cpu_secs"),
    Reason.MEMORY: (
        lambda limits: f"needed more than {limits.max_memory_mb:g} MB of memory",
        "scripts.max_memory_mb",
    ),
}
"""What an execution did that was stopped, and the key of the configuration that says so."""


def failure_of(frame: WorkerFrame, files: Sequence[Source], limits: ExecutionLimits) -> ScriptFailed | RunCancelled:
    """What FAILED, STOPPED or LOST comes to; `files` are those that the execution has read, its own first."""
    if frame.kind is FrameKind.FAILED:
        return ScriptFailed(_fault(*(part.decode(errors="replace") for part in frame.parts), files=files))
    if frame.kind is FrameKind.LOST:
        return ScriptFailed(Fault(files[0].name, 0, frame.parts[0].decode()))
    reasons = [Reason(number) for number in frame.parts[0]]
    if reasons == [Reason.CANCELLED]:
        return RunCancelled(f"{files[0].name} was cancelled before it was done")
    file, line = _place(frame.parts[1].decode(errors="replace"), files, unknown=0)
    sentence, key = _LIMITS[reasons[-1]]
    is_stuck = reasons[0] is Reason.STUCK
    end = "could not be stopped; its Lua worker is replaced" if is_stuck else f"was stopped ({key})"
    status = "error" if reasons == [Reason.MEMORY] else "timeout"
    return ScriptFailed(Fault(file, line, f"{sentence(limits)} and {end}"), status)


def _fault(message: str, place: str, absent: str, *, files: Sequence[Source]) -> Fault:
    """Where the message itself names a place, that one holds; else the innermost line that was running."""
    found = _PLACE.match(message)
    source = _file(found["file"], files) if found is not None else None
    if found is None or source is None:
        file, line = _place(place, files)
        return _hinted(file, line, ErrorContext(message=message, absent=absent))
    again = _PLACE.match(found["message"])
    if again is not None and _file(again["file"], files) is not None:  # coroutine.wrap puts its own place in front
        return _fault(found["message"], place, absent, files=files)
    line = int(found["line"])
    here, before = _lines(source, line)
    context = ErrorContext(
        message=found["message"], line=here, previous=before, absent=absent, has_scripts=len(files) > 1
    )
    return _hinted(source.name, line, context)


def _hinted(file: str, line: int, context: ErrorContext) -> Fault:
    return Fault(file, line, context.message + hint_of(context))


def _place(place: str, files: Sequence[Source], unknown: int = 1) -> tuple[str, int]:
    name, _, line = place.rpartition(":")
    source = _file(name, files)
    return (source.name, int(line)) if source is not None else (files[0].name, unknown)


def _file(short: str, files: Sequence[Source]) -> Source | None:
    """The file that Lua means: it keeps only the end of a long name."""
    for source in files:
        if source.name == short or (short.startswith("...") and source.name.endswith(short[3:])):
            return source
    return None


def _lines(source: Source, line: int) -> tuple[str, str]:
    """The line of that number and the one before it."""
    lines = [b"", *source.chunk.split(b"\n", line), b""]
    return (_shown(lines[line]), _shown(lines[line - 1])) if 0 < line < len(lines) - 1 else ("", "")


def _shown(line: bytes) -> str:
    return line[:MAX_LINE_CHARS].decode(errors="replace")
