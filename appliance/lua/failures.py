"""Failures: what went wrong in Lua, as a sentence with file, line and, where one helps, a hint."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from appliance.errors import Fault, RunCancelled, ScriptFailed
from appliance.lua.hints import Trouble, hint_of
from appliance.lua.limits import Limits, Reason
from appliance.lua.source import Source
from appliance.lua.state import Failed, Stopped

_PLACE = re.compile(r"(?P<file>[^\n]+?):(?P<line>\d+): (?P<message>.*)", re.DOTALL)

_STOPPED: dict[Reason, Callable[[Limits], str]] = {
    Reason.BACKSTOP: lambda limits: (
        f"took more than {limits.backstop_secs:g} s in all, sleep not counted, and was stopped "
        "(automations.runner.backstop_timeout_secs)"
    ),
    Reason.CPU: lambda limits: (
        f"ran for {limits.max_cpu_secs:g} s without a ctx call and was stopped (scripts.max_cpu_secs)"
    ),
    Reason.MEMORY: lambda limits: (
        f"needed more than {limits.max_memory_mb:g} MB of memory and was stopped (scripts.max_memory_mb)"
    ),
    Reason.STUCK: lambda limits: (
        f"ran for {limits.max_cpu_secs:g} s without a ctx call, cannot be stopped inside a library function, "
        "and was given up"
    ),
}

_TIMEOUTS = frozenset({Reason.BACKSTOP, Reason.CPU, Reason.STUCK})


def failure_of(step: Stopped | Failed, files: Sequence[Source], limits: Limits) -> ScriptFailed | RunCancelled:
    """The error to raise; `files` are those that the execution has read, its own first."""
    if isinstance(step, Failed):
        return ScriptFailed(_fault(step, files))
    if step.reason is Reason.CANCELLED:
        return RunCancelled(f"{files[0].name} was cancelled before it was done")
    file, line = _place(step.place, files)
    status = "timeout" if step.reason in _TIMEOUTS else "error"
    return ScriptFailed(Fault(file, line, _STOPPED[step.reason](limits)), status)


def _fault(step: Failed, files: Sequence[Source]) -> Fault:
    """Where the message itself names a place, that one holds; else the innermost line that was running."""
    found = _PLACE.match(step.message)
    source = _file(found["file"], files) if found is not None else None
    if found is None or source is None:
        file, line = _place(step.place, files)
        return _hinted(file, line, Trouble(message=step.message, absent=step.absent))
    line = int(found["line"])
    here, before = _lines(source, line)
    trouble = Trouble(
        message=found["message"], line=here, previous=before, absent=step.absent, has_scripts=len(files) > 1
    )
    return _hinted(source.name, line, trouble)


def _hinted(file: str, line: int, trouble: Trouble) -> Fault:
    return Fault(file, line, trouble.message + hint_of(trouble))


def _place(place: str, files: Sequence[Source]) -> tuple[str, int]:
    name, _, line = place.rpartition(":")
    source = _file(name, files)
    return (source.name, int(line)) if source is not None else (files[0].name, 1)


def _file(short: str, files: Sequence[Source]) -> Source | None:
    """The file that Lua means: it keeps only the end of a long name."""
    for source in files:
        if source.name == short or (short.startswith("...") and source.name.endswith(short[3:])):
            return source
    return None


def _lines(source: Source, line: int) -> tuple[str, str]:
    """The line of that number and the one before it."""
    lines = ["", *source.chunk.decode(errors="replace").split("\n"), ""]
    return (lines[line], lines[line - 1]) if 0 < line < len(lines) else ("", "")
