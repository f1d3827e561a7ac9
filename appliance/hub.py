"""The hub: the parts of the home in the order they start; stopping is the same order backwards."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from contextlib import AsyncExitStack
from datetime import datetime

from appliance.adapters.dispatch import Dispatcher
from appliance.adapters.factory import build_adapters
from appliance.adapters.http import open_session
from appliance.adapters.link import Link
from appliance.adapters.supervisor import Supervisor
from appliance.clock import Clock
from appliance.config import Config
from appliance.health import Health
from appliance.home.bus import Bus
from appliance.home.registry import Registry

log = logging.getLogger("hub")


class Hub:
    """The running whole. Inside its context every part is there by its name; nobody below has seen it."""

    dispatcher: Dispatcher
    health: Health
    started_at: datetime

    def __init__(self, config: Config, clock: Clock) -> None:
        self._config = config
        self._stack = AsyncExitStack()
        self.clock = clock
        self.bus = Bus()
        self.registry = Registry(self.bus, clock)

    async def __aenter__(self) -> Hub:
        self.started_at = self.clock.now()
        async with AsyncExitStack() as stack:
            self.health = Health(self._config.adapters, self.bus)
            session = await stack.enter_async_context(open_session())
            turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
            adapters = build_adapters(self._config.adapters, session, self.clock)
            links = [Link(each, turns[each.http.address], self.registry, self.bus, self.clock) for each in adapters]
            self.dispatcher = await stack.enter_async_context(Dispatcher(links))
            await stack.enter_async_context(Supervisor(links, self.bus, self.clock))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
