"""Failures: what went wrong in Lua, as a sentence with file, line and, where one helps, a hint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from itertools import islice

from appliance.errors import ExecutionCancelled, Fault, ScriptFailed
from appliance.lua.hints import ErrorContext, hint_of
from appliance.lua.process import ExecutionLimits
from appliance.lua.source import Source
from appliance.lua_worker.protocol import FrameKind, Reason, WorkerFrame

MAX_LINE_CHARS = 400
"""How much of a line, or of a message, hints look at."""

_PLACE = re.compile(r"(?P<file>[^\n]+?):(?P<line>\d{1,9}): (?P<message>.*)", re.DOTALL)

_LIMITS = {
    Reason.BACKSTOP: (
        "took more than {0.backstop_secs:g} s in all, sleep not counted,",
        "automations.runner.backstop_timeout_secs",
    ),
    Reason.CPU: ("ran for {0.max_cpu_secs:g} s without waiting", "scripts.max_cpu_secs"),
    Reason.CPU_TOTAL: ("computed for {0.max_cpu_total_secs:g} s in all", "scripts.max_cpu_total_secs"),
    Reason.MEMORY: ("needed more than {0.max_memory_mb:g} MB of memory", "scripts.max_memory_mb"),
}
"""What an execution did that was stopped at one of its `ExecutionLimits`, and the key of the configuration."""


def failure_of(
    frame: WorkerFrame, files: Sequence[Source], limits: ExecutionLimits
) -> ScriptFailed | ExecutionCancelled:
    """The error for FAILED, STOPPED or LOST; `files` are those that the execution has read, its own first."""
    if frame.kind is FrameKind.FAILED:
        return ScriptFailed(_fault(*(part.decode(errors="replace") for part in frame.parts), files=files))
    if frame.kind is FrameKind.LOST:
        return ScriptFailed(Fault(files[0].name, 0, frame.parts[0].decode()))
    reasons = [Reason(number) for number in frame.parts[0]]
    if reasons == [Reason.CANCELLED]:
        return ExecutionCancelled(f"{files[0].name} was cancelled before it was done")
    file, line = _place(frame.parts[1].decode(errors="replace"), files, unknown=0)
    sentence, key = _LIMITS[reasons[-1]]
    is_stuck = reasons[0] is Reason.STUCK
    end = "could not be stopped; its Lua worker is replaced" if is_stuck else f"was stopped ({key})"
    status = "error" if reasons == [Reason.MEMORY] else "timeout"
    return ScriptFailed(Fault(file, line, f"{sentence.format(limits)} and {end}"), status)


def _fault(message: str, place: str, absent: str, *, files: Sequence[Source]) -> Fault:
    """Where the message itself begins with a place, that one counts; else the innermost line that was running."""
    file, line = _place(place, files)
    context = ErrorContext(message=message, absent=absent)
    while (found := _PLACE.match(context.message)) is not None:  # coroutine.wrap puts its own place in front
        source = _file(found["file"], files)
        if source is None:
            break
        file, line = source.name, int(found["line"])
        here, previous = _lines(source, line)
        context = ErrorContext(
            message=found["message"], line=here, previous=previous, absent=absent, has_scripts=len(files) > 1
        )
    return Fault(file, line, context.message + hint_of(context))


def _place(place: str, files: Sequence[Source], unknown: int = 1) -> tuple[str, int]:
    name, _, line = place.rpartition(":")
    source = _file(name, files)
    return (source.name, int(line)) if source is not None else (files[0].name, unknown)


def _file(short: str, files: Sequence[Source]) -> Source | None:
    """The file that Lua means: it keeps only the end of a long name."""
    is_cut = short.startswith("...")
    return next((each for each in files if each.name == short or (is_cut and each.name.endswith(short[3:]))), None)


def _lines(source: Source, number: int) -> tuple[str, str]:
    """The line of that number and the one before it, as far as hints look."""
    if not 0 < number <= len(source.text):
        return "", ""
    found = list(islice(BytesIO(source.chunk), max(number - 2, 0), number))  # a million lines are not kept for two
    previous, here, *_ = [b""] * (number == 1) + [line.rstrip(b"\n")[:MAX_LINE_CHARS] for line in found] + [b"", b""]
    return here.decode(errors="replace"), previous.decode(errors="replace")
