"""The adapters of a configuration: a runner for each, and when they begin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from appliance.adapters.addresses import AddressGates
from appliance.adapters.base import AdapterContext, Secrets, Session
from appliance.adapters.kinds import kind_of
from appliance.adapters.publisher import Publisher
from appliance.adapters.runner import AdapterRunner
from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from appliance.late import import_ahead


class AdapterStart:
    """Makes the runners of the enabled sections and lets their adapters begin.

    They begin once the API answers, because they need what takes long to import.
    """

    def __init__(self, sections: Mapping[str, Any]) -> None:
        self._sections = sections
        self._begin = asyncio.Event()

    def build_runners(
        self,
        registry: Registry,
        bus: Bus,
        clock: Clock,
        secrets: Callable[[str], Secrets],
        session: Session,
        root: Path,
    ) -> list[AdapterRunner]:
        """A runner for each section, in the order of the configuration."""
        gates = AddressGates()
        return [
            AdapterRunner(
                partial(kind_of(settings).build, settings),
                AdapterContext(
                    name=name,
                    clock=clock,
                    publish=Publisher(name, registry, bus, clock),
                    secrets=secrets(name),
                    session=session,
                    gates=gates,
                    root=root,
                ),
                self._begin,
            )
            for name, settings in self._sections.items()
        ]

    async def begin(self) -> None:
        """Import on a thread what the adapters need, and let them begin."""
        await import_ahead(module for settings in self._sections.values() for module in kind_of(settings).late)
        self._begin.set()
