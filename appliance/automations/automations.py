"""The automations as a whole: what API and command line read and change of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from appliance.automations.automation_executor import DISABLED, AutomationExecutor
from appliance.automations.definition import AutomationDefinition
from appliance.automations.engine import Engine
from appliance.automations.states import States
from appliance.history.execution_history import ExecutionEntry
from appliance.history.period import Period
from appliance.home.values import Value
from appliance.lua.lua_catalog import Catalog

log = logging.getLogger("automations")


NOT_YET_ON = "it is off, as its file says: fill in the names at its top, then switch it on"
"""What is said of an automation with `enabled = false` that nobody has switched on."""


class View(Struct, frozen=True, kw_only=True):
    """One automation with its state; `last_run` and `last_error` are since the hub started, `running` is how many of
    its executions run now.
    """

    definition: AutomationDefinition
    is_enabled: bool
    last_run: datetime | None
    last_error: str | None
    running: int


class Automations:
    """What others read and change of automations; each method raises `NotFound` for an id that there is not."""

    def __init__(
        self, catalog: Catalog[AutomationDefinition], engine: Engine, executor: AutomationExecutor, states: States
    ) -> None:
        self.catalog = catalog
        self._engine = engine
        self._executor = executor
        self._states = states
        self.executions = executor.executor

    def list_views(self) -> list[View]:
        """Every automation, sorted by id."""
        return [self._view(definition) for definition in self.catalog.list_definitions()]

    def view(self, id_: str) -> View:
        """The automation of the id; `NotFound` where there is none."""
        return self._view(self.catalog.get(id_).definition)

    async def switch(self, id_: str, *, is_enabled: bool) -> View:
        """Switch it on or off, once that is on the card; `StoreFailed` where it cannot be."""
        self.catalog.get(id_)
        await self._states.switch(id_, is_enabled=is_enabled)
        log.info("automation '%s' is switched %s", id_, "on" if is_enabled else "off")
        self._engine.on_change()
        if not is_enabled:
            self.executions.skip_waiting(id_, DISABLED.reason)
        return self.view(id_)

    async def run_by_hand(self, id_: str, event: Mapping[str, Value]) -> ExecutionEntry:
        """Run it with this event if its conditions hold, and wait for its end."""
        return await self._executor.run_by_hand(self.catalog.get(id_), event)

    async def validate(self, id_: str) -> View:
        """What its file says as it is on the disk now; `ConfigFailed` holds what is wrong with it."""
        asset = await self.catalog.read(id_)
        return self._view(asset.definition)

    def cancel(self, id_: str) -> int:
        """End what runs and waits of it at once, also if a reload has removed it; how many those were."""
        count = self.executions.cancel(id_)
        if count == 0:
            self.catalog.get(id_)
        return count

    def list_next(self, id_: str) -> list[datetime]:
        """The next times at which it falls due, at most ten, the soonest first."""
        self.catalog.get(id_)
        return self._engine.list_next(id_)

    def hears_hook(self, hook: str) -> bool:
        """Whether one, switched on or not, has a trigger for the hook of this id."""
        return self._engine.hears_hook(hook)

    def disarm(self) -> None:
        """Let nothing set off an automation any more; what runs goes on."""
        self._engine.disarm()

    def abort_all(self) -> None:
        """End every execution, since the hub stops; callers that wait for one get its result, cancelled."""
        self.executions.abort_all()

    def list_runs(self, id_: str, period: Period) -> list[ExecutionEntry]:
        """What became of its triggers in the period, the newest first."""
        self.catalog.get(id_)
        return self._executor.history.list_runs(id_, period)

    def figures(self) -> dict[str, Any]:
        """How many are in force and under way, how each is, and what is wrong with the files that were not loaded."""
        return {
            "loaded": len(self.catalog.list_definitions()),
            **self.executions.figures(),
            "each": self._engine.figures(),
            "left_out": self.catalog.rejected,
        }

    def _view(self, definition: AutomationDefinition) -> View:
        state = self._states.of(definition.id)
        return View(
            definition=definition,
            is_enabled=state.is_enabled,
            last_run=state.last_run,
            last_error=state.last_error,
            running=self.executions.count_running(definition.id),
        )
