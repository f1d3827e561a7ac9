"""Starts and stops the adapters of a configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.base import AdapterContext
from appliance.adapters.kinds import kind_of
from appliance.imports import import_ahead


class RunningAdapters:
    """Makes a runner for each enabled section, in the order of the configuration, and starts and stops the adapters.

    Adapters start once the API answers, because importing their modules takes long. While the context is open,
    `start` and `stop` change the running sections, and `enter` adds further parts to a section.
    """

    def __init__(self, sections: Mapping[str, Any], context_of: Callable[[str], AdapterContext]) -> None:
        self._sections = sections
        self._context_of = context_of
        self._begins = {name: asyncio.Event() for name in sections}
        self._parts: dict[str, list[AbstractAsyncContextManager[Any]]] = {}
        self._has_begun = False
        self.runners = [self._make_runner(name, settings) for name, settings in sections.items()]

    async def __aenter__(self) -> RunningAdapters:
        for runner in self.runners:
            await self.enter(runner.name, runner)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop all sections at once, because each stop may take seconds."""
        await asyncio.gather(*map(self._close, tuple(self._parts)))

    async def enter(self, name: str, part: AbstractAsyncContextManager[Any]) -> None:
        """Enter a part of a section, and exit it when the section stops."""
        await part.__aenter__()
        self._parts.setdefault(name, []).append(part)

    async def start(self, name: str, settings: Any) -> AdapterRunner:
        await import_ahead([kind_of(settings).adapter_module])
        begin = self._begins[name] = asyncio.Event()
        runner = self._make_runner(name, settings)
        await self.enter(name, runner)
        if self._has_begun:
            begin.set()
        return runner

    async def stop(self, name: str) -> None:
        """Stop the adapter and all other parts of a section."""
        self._begins.pop(name, None)
        await self._close(name)

    async def _close(self, name: str) -> None:
        """Exit all parts of the section at once."""
        await asyncio.gather(*(part.__aexit__(None, None, None) for part in self._parts.pop(name, ())))

    def _make_runner(self, name: str, settings: Any) -> AdapterRunner:
        build = partial(kind_of(settings).build, settings)
        return AdapterRunner(build, self._context_of(name), self._begins[name])

    async def begin(self) -> None:
        """Import the adapters' modules on a thread. Afterwards, start one adapter per iteration of the event loop.

        A hundred adapters that start in one iteration would block the loop for tens of milliseconds, and would block
        it again at each poll.
        """
        await import_ahead(kind_of(settings).adapter_module for settings in self._sections.values())
        self._has_begun = True
        self._start_next(iter([*self._begins.values()]))

    def _start_next(self, begins: Iterator[asyncio.Event]) -> None:
        if (begin := next(begins, None)) is not None:
            begin.set()
            asyncio.get_running_loop().call_soon(self._start_next, begins)
