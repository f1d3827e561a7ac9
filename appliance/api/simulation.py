"""The request and the result of `POST /simulate`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct


class SimulationRequest(Struct, frozen=True, kw_only=True):
    """A simulation: the text in place of the file's at the path, from a time, now by default, for some hours.

    `events` are lines as in the file of `lares simulate --events`.
    """

    path: str | None = None
    text: str | None = None
    start: str | None = None
    hours: float = 24
    events: str = ""
    runs_lua: bool = False


class SimulationResult(Struct, frozen=True, kw_only=True):
    """The lines of a simulation that reached `until`, earlier than asked if it is not complete."""

    lines: Sequence[Mapping[str, Any]]
    until: datetime
    is_complete: bool


Simulate = Callable[[SimulationRequest, Mapping[str, Any]], Awaitable[SimulationResult]]
"""Simulates the home with the state that the document's keys and values describe."""
