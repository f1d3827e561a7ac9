"""The adapters of a configuration: a runner for each, and the moment when they begin."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.address_gates import AddressGates
from appliance.adapters.base import AdapterContext, Secrets
from appliance.adapters.kinds import kind_of
from appliance.adapters.line_post import LinePost
from appliance.adapters.lua_kinds.host import KindHost
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.late import import_ahead


class AdapterStart:
    """Makes the runners of the enabled sections, and starts their adapters.

    Adapters start once the API answers, because the modules that they need take long to import.
    """

    def __init__(self, sections: Mapping[str, Any]) -> None:
        self._sections = sections
        self._begins = {name: asyncio.Event() for name in sections}

    def build_runners(
        self,
        registry: Registry,
        bus: Bus,
        clock: Clock,
        secrets: Callable[[str], Secrets],
        open_session: Callable[[], Any],
        record: Callable[[Iterable[Device]], Awaitable[None]],
        root: Path,
        timezone: tzinfo = UTC,
        kinds: KindHost | None = None,
    ) -> list[AdapterRunner]:
        """A runner for each section, in the order of the configuration; `kinds` runs those in Lua."""
        gates = AddressGates()
        return [
            AdapterRunner(
                partial(kind_of(settings).build, settings),
                AdapterContext(
                    name=name,
                    clock=clock,
                    publish=Publisher(name, registry, bus, clock),
                    secrets=secrets(name),
                    open_session=open_session,
                    gates=gates,
                    record=record,
                    root=root,
                    timezone=timezone,
                    kinds=kinds,
                ),
                self._begins[name],
            )
            for name, settings in self._sections.items()
        ]

    async def begin(self) -> None:
        """Import on a thread what the adapters need, then start them, each in a turn of the loop of its own.

        A hundred in one turn would hold the loop for tens of milliseconds, and again whenever they poll.
        """
        await import_ahead(kind_of(settings).adapter_module for settings in self._sections.values())
        self._start_next(iter(self._begins.values()))

    def _start_next(self, begins: Iterator[asyncio.Event]) -> None:
        if (begin := next(begins, None)) is not None:
            begin.set()
            asyncio.get_running_loop().call_soon(self._start_next, begins)


class LateSession:
    """The HTTP session of adapters and history, opened when first asked for: who needs none imports no client."""

    def __init__(self) -> None:
        self._session: Any = None

    async def __aenter__(self) -> LateSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    def open(self) -> Any:
        """The one `DeviceSession`; leaving the context closes it."""
        if self._session is None:
            from appliance.adapters.device_http import DeviceSession

            self._session = DeviceSession()
        return self._session

    def lines_to(self, clock: Clock, url: str, token: str | None) -> LinePost:
        """What posts line protocol to the address, over the session."""
        return LinePost(url, token, self.open, clock)
