"""Waits until the file of a kind changes; the adapter of a section whose kind has a fault does nothing else."""

from __future__ import annotations

from appliance.adapters.base import Adapter, AdapterContext, AdapterReplaced, CommandResult
from appliance.adapters.lua_kinds.host import LoadedSection, SectionFault
from appliance.errors import AdapterFailed
from appliance.home.commands import Command


class WaitingAdapter(Adapter):
    """A section whose kind cannot be loaded."""

    def __init__(self, context: AdapterContext, fault: SectionFault) -> None:
        super().__init__(context)
        self._fault = fault
        self._error = AdapterFailed(str(fault.faults[0]))

    async def run(self) -> None:
        """Report the fault, and wait. Raises `AdapterReplaced` once the file changes."""
        self.publish.failed(self._error)
        self.publish.started()
        await replace_when(self._fault)

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Raises the error."""
        raise self._error


async def replace_when(known: LoadedSection | SectionFault) -> None:
    """Wait until the kind of the section changes, then raise `AdapterReplaced`."""
    await known.changed.wait()
    raise AdapterReplaced
