"""The request and the result of `POST /simulate`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

MAX_SIMULATED_HOURS = 24 * 366
"""The longest simulation."""


class SimulationRequest(Struct, frozen=True, kw_only=True):
    """A request for a simulation.

    - `path`, `text`: the path of a file, and the text that replaces the text of the file.
    - `start`: the beginning of the simulation; by default now.
    - `hours`: the duration of the simulation.
    - `events`: the lines of a file for `lares simulate --events`.
    """

    path: str | None = None
    text: str | None = None
    start: str | None = None
    hours: float = 24
    events: str = ""
    runs_lua: bool = False


class SimulationResult(Struct, frozen=True, kw_only=True):
    """The lines of a simulation up to `until`, as JSON. If `is_complete` is false, `until` is earlier than
    requested."""

    lines: Sequence[bytes]
    until: datetime
    is_complete: bool


Simulate = Callable[[SimulationRequest, Mapping[str, bytes]], Awaitable[SimulationResult]]
"""Simulates the home with this stored state, a mapping of document keys to JSON."""
