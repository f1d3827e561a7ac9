"""The hub: the parts of the home in the order they start; stopping is the same order backwards."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack
from datetime import datetime

from appliance.adapters.dispatch import Dispatcher
from appliance.adapters.factory import KINDS, build_adapters
from appliance.adapters.http import open_session
from appliance.adapters.link import Link
from appliance.adapters.supervisor import Supervisor
from appliance.clock import Clock
from appliance.config import Config
from appliance.health import Health
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.store.changes import Changes
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.keys import Keys
from appliance.store.lock import Lock
from appliance.store.recorder import Recorder
from appliance.store.records import read_devices, read_order


class Hub:
    """The running whole. Inside its context every part is there by its name; nobody below has seen it."""

    changes: Changes
    document: Document
    dispatcher: Dispatcher
    health: Health
    keys: Keys
    started_at: datetime

    def __init__(self, config: Config, disk: Disk, clock: Clock) -> None:
        self._config = config
        self._disk = disk
        self._stack = AsyncExitStack()
        self.clock = clock
        self.bus = Bus()
        self.registry = Registry(self.bus, clock)

    async def __aenter__(self) -> Hub:
        self.started_at = self.clock.now()
        async with AsyncExitStack() as stack:
            await self._enter_store(stack)
            self.health = Health(self._config.adapters, self.bus)
            session = await stack.enter_async_context(open_session())
            turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
            adapters = build_adapters(self._config.adapters, session, self.clock)
            links = [Link(each, turns[each.http.address], self.registry, self.bus, self.clock) for each in adapters]
            self.dispatcher = await stack.enter_async_context(Dispatcher(links))
            await stack.enter_async_context(Supervisor(links, self.bus, self.clock))
            self._stack = stack.pop_all()
        for note in self.document.recovered.damage:
            self.bus.publish(events.SystemError(message=f"store: {note}"))
        return self

    async def _enter_store(self, stack: AsyncExitStack) -> None:
        """Lock the data directory, recover the document, restore the registry, and record from then on."""
        stack.callback(Lock(self._disk.folder).release)
        self.document = await stack.enter_async_context(Document(self._disk, self.clock))
        order = read_order(self.document)
        self.registry.restore(order, filter(self._is_ours, read_devices(self.document, order)))
        flush_secs = self._config.persistence.flush_secs
        recorder = Recorder(self.registry, self.bus, self.document, self.clock, flush_secs=flush_secs)
        await stack.enter_async_context(recorder)
        self.changes = await stack.enter_async_context(Changes(self.registry, self.document))
        self.keys = await stack.enter_async_context(Keys(self.document, self.bus))

    def _is_ours(self, device: Device) -> bool:
        """Whether a device that was stored is one that an enabled adapter, as it is configured now, may have made."""
        settings = self._config.adapters.get(device.metadata.source)
        return settings is not None and KINDS[type(settings)] is device.kind

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
