"""The hub: the parts of the home in the order they start; stopping is the same order backwards."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial

from appliance.adapters.dispatch import Dispatcher
from appliance.adapters.factory import KINDS, build_adapters
from appliance.adapters.http import open_session
from appliance.adapters.link import Link
from appliance.adapters.supervisor import Supervisor
from appliance.automations.automations import Automations
from appliance.automations.homes import Home
from appliance.automations.scheduler import Scheduler
from appliance.automations.setup import catalog_of, open_automations
from appliance.automations.states import States
from appliance.clock import Clock
from appliance.config import Config
from appliance.errors import Fault
from appliance.health import Health
from appliance.history import RunHistory
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.lua.compiling import check_scripts
from appliance.lua.context import Context
from appliance.lua.executions import Executions
from appliance.lua.reload import Reloader, Work
from appliance.lua.runner import Runner
from appliance.lua.setup import build_runner, folder_of, refusal_of
from appliance.scenes import Scenes, build_catalog
from appliance.settings import LuaFolder
from appliance.store.changes import Changes
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.keys import Keys
from appliance.store.lock import Lock
from appliance.store.recorder import Recorder
from appliance.store.records import read_devices, read_order
from appliance.watch import Target, Watcher

log = logging.getLogger("hub")

SAFE = "the hub was started with --safe, so that no automation runs; start it without to have them"
"""What a reload of the automations answers then."""


class Hub:
    """The running whole. Inside its context every part is there by its name; nobody below has seen it.

    One that `is_safe` runs no automations, whatever the configuration says.
    """

    automations: Automations
    changes: Changes
    document: Document
    dispatcher: Dispatcher
    health: Health
    keys: Keys
    recorder: Recorder
    reloaders: Mapping[str, Reloader]
    runner: Runner
    scenes: Scenes
    schedule: Scheduler
    started_at: datetime

    def __init__(self, config: Config, disk: Disk, clock: Clock, *, is_safe: bool = False) -> None:
        if is_safe:
            config = replace(config, automations=replace(config.automations, enabled=False))
        self._refusals = {"automations": SAFE} if is_safe else {}
        self._config = config
        self._disk = disk
        self._stack = AsyncExitStack()
        self.folders: Mapping[str, LuaFolder] = {
            "scenes": config.scenes,
            "automations": config.automations,
            "scripts": config.scripts,
        }
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
            await self._enter_scripts(stack)
            await stack.enter_async_context(Supervisor(links, self.bus, self.clock))
            self._stack = stack.pop_all()
        for note in self.document.recovered.damage:
            self.bus.publish(events.SystemError(message=f"store: {note}"))
        for fault in (*self.scenes.catalog.left_out, *self.automations.catalog.left_out):
            log.warning("left out: %s", fault)
            self.bus.publish(events.SystemError(message=f"left out: {fault}"))
        return self

    async def reload(self) -> None:
        """Reload every folder of Lua files that is enabled, one after another."""
        for target, reloader in self.reloaders.items():
            if self.folders[target].enabled:
                await reloader.reload()

    def begin_to_stop(self) -> None:
        """Let nothing begin by itself any more; what is under way goes on."""
        self.automations.disarm()

    def give_up(self) -> None:
        """End the executions and commands that are under way; who waits for one is told so."""
        self.scenes.give_up()
        self.automations.give_up()
        self.dispatcher.give_up()

    async def _enter_store(self, stack: AsyncExitStack) -> None:
        """Lock the data directory, recover the document, restore the registry, and record from then on."""
        stack.callback(Lock(self._disk.folder).release)
        self.document = await stack.enter_async_context(Document(self._disk, self.clock))
        order = read_order(self.document)
        self.registry.restore(order, filter(self._is_ours, read_devices(self.document, order)))
        flush_secs = self._config.persistence.flush_secs
        recorder = Recorder(self.registry, self.bus, self.document, self.clock, flush_secs=flush_secs)
        self.recorder = await stack.enter_async_context(recorder)
        self.changes = await stack.enter_async_context(Changes(self.registry, self.document))
        self.keys = await stack.enter_async_context(Keys(self.document, self.bus))

    async def _enter_scripts(self, stack: AsyncExitStack) -> None:
        """Load what is written in Lua, arm the automations, and watch the folders from then on."""
        config, limits = self._config, self._config.automations.runner
        runner = build_runner(config.scripts, limits, config.locale.timezone, config.root, self.clock)
        self.runner = await stack.enter_async_context(runner)
        catalog = build_catalog(config.scenes, config.root, runner, limits.default_max_concurrent)
        scenes = Scenes(catalog, runner, self._new_context, self.clock)
        self.scenes = await stack.enter_async_context(scenes)
        scripts = folder_of(config.scripts, config.root, is_deep=True)
        works: dict[str, Work] = {
            "scenes": catalog.reload,
            "automations": await self._enter_automations(stack),
            "scripts": partial(check_scripts, scripts),
        }
        self.reloaders = {
            target: await stack.enter_async_context(
                Reloader(target, work, self.bus, self.clock, refusal=self._refusal_of(target))
            )
            for target, work in works.items()
        }
        await stack.enter_async_context(Watcher(self._watched(), self.clock))

    async def _enter_automations(self, stack: AsyncExitStack) -> Work:
        """Load and arm the automations; what reloads them."""
        config, trust = self._config, self.recorder.trust
        home = Home(registry=self.registry, bus=self.bus, clock=self.clock, trust=trust)
        states = States(self.document, self.recorder.remember, self.document.put_many)
        catalog = catalog_of(config.automations, config.root, self.runner.describe, config.locale, self.clock)
        executes = partial(Executions, self.runner, self._new_context, self.clock)
        parts = await stack.enter_async_context(open_automations(catalog, home, states, RunHistory(), executes))
        self.automations, self.schedule = parts.automations, parts.scheduler
        return parts.engine.reload

    def _refusal_of(self, target: str) -> Fault | None:
        folder = self.folders[target]
        said = self._refusals.get(target)
        return refusal_of(target, folder) if said is None else Fault(folder.directory, 0, said)

    def _new_context(self, label: str) -> Context:
        return Context(self.registry, self.dispatcher, self.clock, label)

    def _watched(self) -> list[Target]:
        """What is to be watched."""
        return [
            Target(
                folder=self._config.root / folder.directory,
                is_deep=target == "scripts",
                on_change=self.reloaders[target].reload,
            )
            for target, folder in self.folders.items()
            if folder.watch and folder.enabled and target in self.reloaders
        ]

    def _is_ours(self, device: Device) -> bool:
        """Whether a device that was stored is one that an enabled adapter, as it is configured now, may have made."""
        settings = self._config.adapters.get(device.metadata.source)
        return settings is not None and KINDS[type(settings)] is device.kind

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
