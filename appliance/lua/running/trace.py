"""The trace of an execution: its newest steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from appliance.clock import Clock

MAX_TRACE_STEPS = 200
MAX_LOG_STEPS = 50

MAX_STEP_CHARS = 200
"""Maximum length of a string in a trace step."""


class Trace:
    """Stores an execution's newest steps, with at most `MAX_LOG_STEPS` log lines. A step's `at_ms` is the time since
    the trace was created."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._steps: deque[Mapping[str, Any]] = deque(maxlen=MAX_TRACE_STEPS)

    def add(self, step: str, **fields: Any) -> None:
        """Add a step: `command`, `invoke`, `sleep`, `log`, `scene`, or `wait`."""
        at_ms = round((self._clock.monotonic() - self._began) * 1000)
        self._steps.append({"at_ms": at_ms, "step": step, **{key: shorten(value) for key, value in fields.items()}})
        if step == "log":
            logged = [index for index, each in enumerate(self._steps) if each["step"] == "log"]
            if len(logged) > MAX_LOG_STEPS:
                del self._steps[logged[0]]

    def list_steps(self) -> tuple[Mapping[str, Any], ...]:
        """Return the steps, oldest first."""
        return tuple(self._steps)


def shorten(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shorten(each) for key, each in value.items()}
    return f"{value[: MAX_STEP_CHARS - 1]}…" if isinstance(value, str) and len(value) > MAX_STEP_CHARS else value
