"""States: what is remembered of each automation by its id, over reloads, and what of it outlives a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from appliance.automations.policy import Memory, instant_of, millis_of
from appliance.errors import StoreFailed
from appliance.tasks import Tasks

TOGGLE, AUTOMATION = "toggle/", "automation/"
"""Keys in the document: `toggle/<id>` is false for what is switched off; `automation/<id>` is what was remembered."""


class Told(Protocol):
    """What tells the states: the document, or a copy of it."""

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """The keys that begin with the prefix, without it, and their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """The occurrence that fired last, or the instant at which a beat began, and the schedule whose it was."""

    schedule: str
    at: datetime

    @staticmethod
    def from_json(raw: Any) -> Fired | None:
        """What `to_json` wrote; None for what is not of that form."""
        fields = raw if isinstance(raw, dict) else {}
        schedule, at = fields.get("schedule"), instant_of(fields.get("at"))
        return Fired(schedule=schedule, at=at) if isinstance(schedule, str) and at is not None else None

    def to_json(self) -> dict[str, Any]:
        """It as JSON."""
        return {"schedule": self.schedule, "at": millis_of(self.at)}


@dataclass(slots=True, kw_only=True)
class State:
    """One automation's; `last_run` and `last_error` are of this run of the hub."""

    is_enabled: bool = True
    memory: Memory = field(default_factory=Memory)
    fired: Fired | None = None
    last_run: datetime | None = None
    last_error: str | None = None

    def last_of(self, schedule: str) -> datetime | None:
        """The occurrence of this schedule that fired last; None where none is known, or those of another are."""
        return None if self.fired is None or self.fired.schedule != schedule else self.fired.at


class States:
    """The states by id. `remember` writes now and then and never waits; `put` returns when all is on the card."""

    def __init__(
        self,
        told: Told,
        remember: Callable[[str, dict[str, Any] | None], None],
        put: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        self._remember = remember
        self._put = put
        self._states: dict[str, State] = {}
        self._tasks = Tasks()
        for id_, value in told.items(AUTOMATION):
            fields = value if isinstance(value, dict) else {}
            memory, fired = Memory.from_json(fields.get("policy")), Fired.from_json(fields.get("fired"))
            self._states[id_] = State(memory=memory, fired=fired)
        for id_, is_enabled in told.items(TOGGLE):
            self.of(id_).is_enabled = is_enabled is not False

    async def __aenter__(self) -> States:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    def of(self, id_: str) -> State:
        """The state of the automation of this id, which may be new."""
        return self._states.setdefault(id_, State())

    def remember(self, id_: str, memory: Memory) -> None:
        """Keep what a policy remembers, over a restart too."""
        state = self.of(id_)
        if memory != state.memory:
            state.memory = memory
            self._keep(id_, state)

    def note_fired(self, id_: str, fired: Fired) -> None:
        """Keep what fired last, over a restart too."""
        state = self.of(id_)
        state.fired = fired
        self._keep(id_, state)

    async def switch(self, id_: str, *, is_enabled: bool) -> None:
        """Switch it on or off, once that is on the card; `StoreFailed` where it cannot be.

        A switch that was begun is finished though whoever asked for it goes away.
        """
        failure = await asyncio.shield(self._tasks.start(self._switch(id_, is_enabled), f"switch of {id_}"))
        if failure is not None:
            raise failure

    async def _switch(self, id_: str, is_enabled: bool) -> StoreFailed | None:
        try:
            await self._put({TOGGLE + id_: None if is_enabled else False})
        except StoreFailed as failure:
            return failure
        self.of(id_).is_enabled = is_enabled
        return None

    def _keep(self, id_: str, state: State) -> None:
        policy = state.memory.to_json()
        fields = {"policy": policy} if policy else {}
        if state.fired is not None:
            fields["fired"] = state.fired.to_json()
        self._remember(AUTOMATION + id_, fields or None)
