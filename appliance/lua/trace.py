"""The trace of an execution: what it did, step by step, for the history."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from appliance.clock import Clock

MAX_STEPS = 200
MAX_LOG_STEPS = 50
MAX_TEXT = 200
"""Characters that are kept of a text in a step."""


class Trace:
    """Keeps the newest steps, of lines of the log fewer. `at_ms` counts from when the trace was made."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._steps: deque[Mapping[str, Any]] = deque(maxlen=MAX_STEPS)

    def add(self, step: str, **fields: Any) -> None:
        """Note a step, `command`, `invoke`, `sleep`, `log`, `scene` or `wait`, and what is told of it."""
        at_ms = round((self._clock.monotonic() - self._began) * 1000)
        self._steps.append({"at_ms": at_ms, "step": step, **{key: _short(value) for key, value in fields.items()}})
        if step == "log":
            logged = [index for index, each in enumerate(self._steps) if each["step"] == "log"]
            if len(logged) > MAX_LOG_STEPS:
                del self._steps[logged[0]]

    def list_steps(self) -> tuple[Mapping[str, Any], ...]:
        """The steps that are kept, the oldest first."""
        return tuple(self._steps)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    return f"{value[: MAX_TEXT - 1]}…" if isinstance(value, str) and len(value) > MAX_TEXT else value
