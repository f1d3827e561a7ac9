"""The common base of scenes and automations."""

from __future__ import annotations

from typing import Any, Generic

from appliance.errors import Fault
from appliance.history.execution_history import ExecutionEntry
from appliance.history.period import Period
from appliance.lua.files.catalog import Catalog, T
from appliance.lua.running.executor import Executor


class ExecutableFiles(Generic[T]):
    """A catalog of scenes or automations with their executions. Methods raise `NotFound` for unknown ids."""

    def __init__(self, catalog: Catalog[T], executor: Executor) -> None:
        self.catalog = catalog
        self.executor = executor

    async def reload(self) -> tuple[int, list[Fault]]:
        """Load all files if all are valid; see `Catalog.reload`."""
        count, faults = await self.catalog.reload()
        if not faults:
            await self._use_loaded_files()
        return count, faults

    async def reload_valid(self) -> int:
        """Load the valid files; see `Catalog.reload_valid`."""
        count = await self.catalog.reload_valid()
        await self._use_loaded_files()
        return count

    async def _use_loaded_files(self) -> None:
        await self.executor.use_sources({each.definition.id: each.source for each in self.catalog.list_files()})

    async def cancel(self, id_: str) -> int:
        """Cancel the file's executions, even if a reload has removed the file. Return the number of cancelled
        executions."""
        count = await self.executor.cancel_executions(id_)
        if count == 0:
            self.catalog.get(id_)
        return count

    def list_runs(self, id_: str, period: Period) -> list[ExecutionEntry]:
        """Return the file's history entries in the period, newest first."""
        self.catalog.get(id_)
        return self.executor.history.list_runs(id_, period)

    def figures(self) -> dict[str, Any]:
        loaded = len(self.catalog.list_definitions())
        return {"loaded": loaded, **self.executor.figures(), "left_out": self.catalog.rejected}
