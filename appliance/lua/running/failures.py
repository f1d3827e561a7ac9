"""Converts Lua errors to messages with file and line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from itertools import islice

from appliance.errors import Busy, ExecutionCancelled, Fault, ScriptFailed
from appliance.lua.running.run_limits import RunLimits
from appliance.lua.text.hints import ErrorContext, hint_of
from appliance.lua.text.source import FieldLines, Source
from appliance.lua_worker.protocol import FrameKind, Reason, WorkerFrame

MAX_LINE_CHARS = 400
"""Maximum length of a line or message in the search for hints. The rest is ignored."""

_POSITION = re.compile(r"(?P<file>[^\n]+?):(?P<line>\d{1,9}): (?P<message>.*)", re.DOTALL)

_RETURNED = re.compile(r"the returned table(?P<path>[\w.\[\]]*) ")

_LIMITS = {
    Reason.BACKSTOP: (
        "took more than {0.backstop_secs:g} s in total (without sleep)",
        "automations.runner.backstop_timeout_secs",
    ),
    Reason.RUNNING_TIME: ("used {0.max_cpu_secs:g} s of processor time without waiting", "{0.cpu_limit}"),
    Reason.REAL_TIME: (
        "ran for {0.max_real_secs:.3g} s without waiting, because the machine is busy or the script mostly reads",
        "{0.slowdown:.3g} times {0.cpu_limit}",
    ),
    Reason.CPU_TOTAL: ("used {0.max_cpu_total_secs:g} s of processor time in total", "scripts.max_cpu_total_secs"),
    Reason.SHARED_MEMORY: (
        "could not continue, because the running executions use the memory for Lua,",
        "scripts.max_memory_mb",
    ),
    Reason.MEMORY: ("needed more than {0.max_memory_mb:g} MB of memory", "scripts.max_memory_mb"),
}
"""The message for each limit, and the limit's name."""


def failure_of(
    frame: WorkerFrame, files: Sequence[Source], limits: RunLimits, *, is_kind: bool = False
) -> ScriptFailed | ExecutionCancelled | Busy:
    """Return the error for a FAILED, STOPPED, LOST, or REFUSED frame. `files` contains the files that the execution
    has read, beginning with the executed file.

    `is_kind` means that a kind's function has failed. In kinds, `ctx` has other methods.
    """
    if frame.kind is FrameKind.FAILED:
        message, position, absent = (part.decode(errors="replace") for part in frame.parts)
        fault = _fault(message, position, absent, files=files, is_kind=is_kind)
        stated = _POSITION.match(message)
        has_position = _RETURNED.match(message) is not None or (stated and _file(stated["file"], files)) is not None
        # a kind calls `error(sentence, 0)` to report a fault of the device, so the file's line does not help
        return ScriptFailed(fault, is_sentence=is_kind and bool(position) and not has_position)
    if frame.kind is FrameKind.LOST:
        return ScriptFailed(Fault(files[0].name, 0, frame.parts[0].decode()))
    if frame.kind is FrameKind.REFUSED:
        return Busy(frame.parts[0].decode())
    reasons = [Reason(number) for number in frame.parts[0]]
    if reasons == [Reason.CANCELLED]:
        return ExecutionCancelled(f"{files[0].name} was cancelled before it ended")
    is_stuck = reasons[0] is Reason.STUCK
    # if the first statement of a file is stuck, Lua has never polled
    file, line = _position(frame.parts[1].decode(errors="replace"), files, unknown=int(is_stuck))
    sentence, limit = (text.format(limits) for text in _LIMITS[reasons[-1]])
    # a long library function does not poll, so `line` is only the last polled line
    since = " at or after this line (look for a pattern search or a huge range)" * (line > 0)
    end = f"could not be stopped{since}" if is_stuck else f"was stopped ({limit})"
    status = "error" if reasons in ([Reason.MEMORY], [Reason.SHARED_MEMORY]) else "timeout"
    return ScriptFailed(Fault(file, line, f"{sentence} and {end}"), status)


def place_of(position: bytes, files: Sequence[Source]) -> str:
    """Return the position as `file:line`, or the executed file if the position is empty."""
    file, line = _position(position.decode(errors="replace"), files, unknown=0)
    return f"{file}:{line}" if line else file


def _fault(message: str, position: str, absent: str, *, files: Sequence[Source], is_kind: bool) -> Fault:
    """Return the fault at the first `file:line` in the message. If the message contains no such position, use the
    innermost running line."""
    file, line = _position(position, files)
    if (returned := _RETURNED.match(message)) is not None:  # the returned value is invalid; no line was running
        path = re.findall(r"[a-zA-Z_]\w*", returned["path"])
        lines = FieldLines(files[0])
        line = lines.find(*path) or lines.of_return or line
    context = ErrorContext(message=message, absent=absent)
    # coroutine.wrap puts an additional position before the message
    while (found := _POSITION.match(context.message)) is not None:
        source = _file(found["file"], files)
        if source is None:
            break
        file, line = source.name, int(found["line"])
        here, previous = _lines(source, line)
        context = ErrorContext(
            message=found["message"],
            line=here,
            previous=previous,
            absent=absent,
            has_scripts=len(files) > 1,
            text=source.text,
            is_kind=is_kind,
        )
    return Fault(file, line, context.message + hint_of(context))


def _position(position: str, files: Sequence[Source], unknown: int = 1) -> tuple[str, int]:
    name, _, line = position.rpartition(":")
    source = _file(name, files)
    return (source.name, int(line)) if source is not None else (files[0].name, unknown)


def _file(short: str, files: Sequence[Source]) -> Source | None:
    """Return the file with this name. If the name is long, Lua keeps only its end."""
    is_cut = short.startswith("...")
    return next((each for each in files if each.name == short or (is_cut and each.name.endswith(short[3:]))), None)


def _lines(source: Source, number: int) -> tuple[str, str]:
    """Return this line and the previous line, both cut to `MAX_LINE_CHARS`."""
    if not 0 < number <= len(source.text):
        return "", ""
    # splitting the whole file would be slow for a million lines
    found = list(islice(BytesIO(source.chunk), max(number - 2, 0), number))
    previous, here, *_ = [b""] * (number == 1) + [line.rstrip(b"\n")[:MAX_LINE_CHARS] for line in found] + [b"", b""]
    return here.decode(errors="replace"), previous.decode(errors="replace")
