"""Failures: what went wrong in Lua, as a sentence with file, line and, where one helps, a hint."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from appliance.errors import Fault, RunCancelled, ScriptFailed
from appliance.lua.limits import Limits, Reason
from appliance.lua.source import Source
from appliance.lua.state import Failed, Stopped
from appliance.sections import nearest

_PLACE = re.compile(r"(?P<file>[^\n]+?):(?P<line>\d+): (?P<message>.*)", re.DOTALL)

_RESERVED = re.compile(
    r"(?:^|[{,;\s])(and|break|do|else|elseif|end|false|for|function|goto|if|in|local|nil|not|or|repeat|return|then|true"
    r"|until|while)\s*=(?!=)"
)

METHODS = (
    *("command", "command_group", "invoke", "get_device", "list_devices", "get_room", "list_rooms"),
    *("list_room_devices", "get_group", "list_groups", "list_group_devices", "log", "sleep"),
)
"""What `ctx` offers."""

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
        return Fault(file, line, step.message + _hint(step.message, step.absent, "", ""))
    return Fault(
        source.name,
        int(found["line"]),
        found["message"] + _hint(found["message"], step.absent, *_lines(source, int(found["line"]))),
    )


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


def _hint(message: str, absent: str, line: str, previous: str) -> str:
    """What helps, in brackets; nothing where nothing does."""
    for pattern, tell in _HINTS:
        found = pattern.match(message)
        hint = tell(found, absent, line, previous) if found is not None else None
        if hint is not None:
            return f" ({hint})"
    return ""


def _reserved_word(_: re.Match[str], absent: str, line: str, previous: str) -> str | None:
    word = _RESERVED.search(line) or _RESERVED.search(previous)
    return f'"{word[1]}" is a reserved word: write ["{word[1]}"] = …' if word is not None else None


def _absent(_: re.Match[str], absent: str, line: str, previous: str) -> str | None:
    return f"{absent} was not found, so what ctx gave is nil: test it with `if` first" if absent else None


def _method(found: re.Match[str], absent: str, line: str, previous: str) -> str | None:
    like = nearest(found[1], METHODS)
    return f"is it ctx:{like}?" if like is not None and like != found[1] else None


def _always(hint: str) -> Callable[..., str]:
    return lambda *_: hint


_HINTS: Sequence[tuple[re.Pattern[str], Callable[[re.Match[str], str, str, str], str | None]]] = (
    (re.compile(r".* near |.*<eof>", re.DOTALL), _reserved_word),
    (re.compile(r"'}' expected.* near '\w+'"), _always("is there a comma at the end of the line before?")),
    (
        re.compile(r"attempt to index a nil value \(global 'ctx'\)"),
        _always("ctx is the first parameter of execute: execute = function(ctx) … end"),
    ),
    (re.compile(r"attempt to index a nil value"), _absent),
    (re.compile(r"attempt to call a nil value \(method '(\w+)'\)"), _method),
    (
        re.compile(r"attempt to compare (number with string|string with number)"),
        _always("a number in quotes is text: take the quotes away, or use tonumber(…)"),
    ),
    (re.compile(r"must return a table, not nothing"), _always('does the file end with "return { … }"?')),
)
"""Messages of Lua's, and what to say to them; the first that has something to say is taken."""
