"""The hub: the parts of the home in the order they start; stopping is the same order backwards."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial

from appliance.adapters.dispatch import Dispatcher
from appliance.adapters.kinds import kind_of
from appliance.adapters.mqtt.access import FrameOf, access_of, no_frame
from appliance.adapters.mqtt.kind import open_outlets
from appliance.adapters.session import LateSession
from appliance.adapters.setup import AdapterStart
from appliance.automations.automations import Automations
from appliance.automations.calls import AutomationCalls
from appliance.automations.known_names import KnownNames
from appliance.automations.scheduler import Scheduler
from appliance.automations.setup import build_environment, catalog_of, open_automations
from appliance.automations.storage import Storage
from appliance.automations.timers import Timers
from appliance.automations.variables import Variables
from appliance.clock import Clock
from appliance.config import Config
from appliance.errors import Fault, LaresError
from appliance.health import Health
from appliance.history.commands import CommandAudit
from appliance.history.devices import DeviceHistory
from appliance.history.runs import RunHistory
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.log_buffer import LogBuffer
from appliance.loop_lag import LoopLag
from appliance.lua.compiling import check_scripts
from appliance.lua.context import Context, MoreCall
from appliance.lua.executions import Executions
from appliance.lua.reload import Reloader, Work
from appliance.lua.runner import Runner
from appliance.lua.setup import build_runner, folder_of, refusal_of
from appliance.scenes import Scenes, build_catalog
from appliance.settings import LuaFolder
from appliance.store.changes import Changes
from appliance.store.crashes import CrashCounter
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.keys import Keys
from appliance.store.lock import Lock
from appliance.store.recorder import Recorder
from appliance.store.records import read_devices, read_layout
from appliance.store.replacement import finish_at_start
from appliance.store.secrets import AdapterSecrets
from appliance.watch import Target, Watcher

log = logging.getLogger("hub")

AUDIT_SHARE = 8
"""The audit of commands may take this part of the history's memory, the values of devices the rest."""

SAFE_BY_ITSELF = (
    "safe mode: the hub crashed three times within five minutes, so that no automation runs; "
    "a reload of the automations (POST /automations/reload) ends it"
)
"""Why no automation runs after a series of crashes."""

SAFE = "the hub was started with --safe, so that no automation runs; start it without to have them"
"""What a reload of the automations answers then."""


class Hub:
    """The running whole. Inside its context every part is there by its name; nobody below has seen it.

    One that `is_safe` runs no automations, whatever the configuration says. What it publishes elsewhere of events is
    what `frame_of` makes of them.
    """

    automations: Automations
    changes: Changes
    crashes: CrashCounter
    document: Document
    dispatcher: Dispatcher
    health: Health
    keys: Keys
    recorder: Recorder
    reloaders: Mapping[str, Reloader]
    runner: Runner
    safe_because: str | None
    scenes: Scenes
    schedule: Scheduler
    timers: Timers
    variables: Variables
    started_at: datetime

    def __init__(
        self,
        config: Config,
        disk: Disk,
        clock: Clock,
        *,
        is_safe: bool = False,
        log_buffer: LogBuffer | None = None,
        frame_of: FrameOf = no_frame,
    ) -> None:
        if is_safe:
            config = replace(config, automations=replace(config.automations, enabled=False))
        self._refusals = {"automations": SAFE} if is_safe else {}
        self.safe_because = SAFE if is_safe else None
        self._config = config
        self._frame_of = frame_of
        self._disk = disk
        self._stack = AsyncExitStack()
        self.start_errors: list[events.SystemErrorReported] = []
        self._calls: dict[str, MoreCall] = {}
        self._left_out: list[str] = []
        self._has_failed = False
        self._lock: Lock | None = None
        self.folders: Mapping[str, LuaFolder] = {
            "scenes": config.scenes,
            "automations": config.automations,
            "scripts": config.scripts,
        }
        self.clock = clock
        self.bus = Bus()
        self.log = log_buffer or LogBuffer()
        self.loop_lag = LoopLag()
        self.adapters = AdapterStart(config.adapters)
        self.registry = Registry(self.bus, clock)
        budget = config.history.max_mb << 20
        self.history = DeviceHistory(self.bus, clock, budget - budget // AUDIT_SHARE)
        self.audit = CommandAudit(self.bus, budget // AUDIT_SHARE)

    async def __aenter__(self) -> Hub:
        self.started_at = self.clock.now()
        async with AsyncExitStack() as stack:
            stack.enter_context(self.log)
            stack.enter_context(self.loop_lag)
            await self._enter_store(stack)
            await self._count_crashes()
            self.health = Health(self._config.adapters, self.bus)
            session = await stack.enter_async_context(LateSession())
            secrets = partial(AdapterSecrets, self.document)
            runners = self.adapters.build_runners(
                self.registry, self.bus, self.clock, secrets, session, self._config.root
            )
            self.dispatcher = await stack.enter_async_context(Dispatcher(runners, self.bus, self.clock))
            await self._enter_scripts(stack)
            for runner in runners:
                await stack.enter_async_context(runner)
            access = access_of(
                self.registry, self.bus, self.dispatcher, self.scenes, self.automations, self._frame_of
            )
            for outlet in await open_outlets(self._config.adapters, secrets, access, self.clock, self._config.root):
                await stack.enter_async_context(outlet)
            self._stack = stack.pop_all()
        if self.safe_because == SAFE_BY_ITSELF:
            log.warning("%s", SAFE_BY_ITSELF)
            self._report_at_start(SAFE_BY_ITSELF)
        for note in (*self.document.recovered.damage, *self._left_out):
            self._report_at_start(f"store: {note}")
        for fault in (*self.scenes.catalog.left_out, *self.automations.catalog.left_out):
            log.warning("left out: %s", fault)
            self._report_at_start(f"left out: {fault}")
        return self

    def _report_at_start(self, message: str) -> None:
        """Publish what is wrong, and keep it for the first who reads events: nobody can have begun to."""
        error = events.SystemErrorReported(message=message)
        self.start_errors.append(error)
        self.bus.publish(error)

    async def _count_crashes(self) -> None:
        """Note that the hub runs, and be safe where it has lately crashed again and again."""
        if await self.crashes.note_start(has_crashed=self._has_crashed) and self._config.automations.enabled:
            self.safe_because = SAFE_BY_ITSELF

    async def _reload_automations(self, reload: Work) -> tuple[int, list[Fault]]:
        """Reload them; where that succeeds, safe mode is over."""
        count, faults = await reload()
        if self.safe_because == SAFE_BY_ITSELF and not faults:
            self.safe_because = None
            self.crashes.end_series()
            self.timers.release()
            log.info("safe mode is over: the automations were reloaded")
        return count, faults

    async def reload(self) -> None:
        """Reload every folder of Lua files that is enabled, one after another."""
        for target, reloader in self.reloaders.items():
            if self.folders[target].enabled:
                await reloader.reload()

    async def trust_clock(self) -> None:
        """Trust the clock from now on, over restarts too; returns once that is stored, or raises `StoreFailed`."""
        await self.recorder.trust_clock()
        self.schedule.recheck()

    def note_stop(self) -> None:
        """Note that the process was asked to end: should it be cut off from now on, that is no crash."""
        if self._lock is not None:
            self._lock.note_stop()

    def begin_to_stop(self) -> None:
        """Let nothing begin by itself any more; what is under way goes on."""
        self.timers.hold()
        self.automations.disarm()

    def give_up(self) -> None:
        """End the executions and commands that are under way; who waits for one is told so."""
        self.scenes.give_up()
        self.automations.give_up()
        self.dispatcher.give_up()

    async def _enter_store(self, stack: AsyncExitStack) -> None:
        """Lock the data directory, recover the document, restore the registry, and record from then on."""
        self._began = self.clock.monotonic()
        lock = self._lock = Lock(self._disk.folder)
        stack.callback(lock.release)
        self._stopped_at, self._has_crashed = lock.stopped_at, lock.was_left
        finish_at_start(self._disk.folder, self.clock.now())
        self.document = await stack.enter_async_context(Document(self._disk, self.clock))
        layout = read_layout(self.document, self._leave_out)
        devices = read_devices(self.document, layout, self._leave_out)
        self.registry.restore(layout, filter(self._is_ours, devices))
        flush_secs = self._config.persistence.flush_secs
        recorder = Recorder(self.registry, self.bus, self.document, self.clock, flush_secs=flush_secs)
        self.recorder = await stack.enter_async_context(recorder)
        self.crashes = CrashCounter(self.document, self.clock, recorder.remember)
        stack.callback(self._release, lock)
        self.changes = await stack.enter_async_context(Changes(self.registry, self.document))
        self.keys = await stack.enter_async_context(Keys(self.document, self.bus, self._leave_out))

    def _release(self, lock: Lock) -> None:
        """Release the lock and say how the hub ended."""
        if self._has_failed:
            lock.release_after_fault()
        else:
            lock.release_after_stop(self._stop_instant())

    def _stop_instant(self) -> datetime | None:
        """The present, for the next hub to know when this one stopped; None where the clock is not trusted."""
        return self.clock.now() if self.recorder.trust.is_trusted() else None

    async def _enter_scripts(self, stack: AsyncExitStack) -> None:
        """Load what is written in Lua, arm the automations, and watch the folders from then on."""
        config, limits = self._config, self._config.automations.runner
        zone, root = config.locale.timezone, config.root
        runner = build_runner(config.scripts, limits, zone, root, self.clock, self._tell_of_worker)
        self.runner = await stack.enter_async_context(runner)
        catalog = build_catalog(config.scenes, config.root, runner, limits.default_max_concurrent)
        scenes = Scenes(catalog, runner, self._new_context, self.clock)
        self.scenes = await stack.enter_async_context(scenes)
        scripts = folder_of(config.scripts, config.root, is_deep=True)
        works: dict[str, Work] = {
            "scenes": catalog.reload,
            "automations": await self._enter_automations(stack),
            "scripts": partial(check_scripts, runner.compile, scripts),
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
        environment = build_environment(
            self.registry,
            self.bus,
            self.clock,
            trust,
            Storage(stored=self.document, remember=self.recorder.remember, put=self.document.put_many),
            limits=config.automations.runner,
            began=self._began,
            stopped_at=self._stopped_at,
        )
        self.variables = environment.variables
        known = KnownNames(
            adapters=config.adapter_names,
            rooms=lambda: self.registry.layout.rooms,
            groups=lambda: self.registry.layout.groups,
        )
        describe = self.runner.describe
        catalog = catalog_of(config.automations, config.root, describe, config.locale, self.clock, known)
        executes = partial(Executions, self.runner, self._new_context, self.clock)
        parts = await stack.enter_async_context(
            open_automations(catalog, environment, RunHistory(), executes, is_loaded=self.safe_because is None)
        )
        self.automations, self.schedule, self.timers = parts.automations, parts.scheduler, parts.timers
        calls = AutomationCalls(environment, parts.timers, self.scenes.run, config.notify.targets)
        self._calls.update(calls.table())
        return partial(self._reload_automations, parts.engine.reload)

    def _leave_out(self, key: str, error: Exception) -> None:
        """Note that something stored cannot be understood: it is not used, and stays on the card."""
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        note = f"{key} cannot be understood ({reason}); it is left out and stays on the card"
        log.warning("store: %s", note)
        self._left_out.append(note)

    def _tell_of_worker(self, reason: str) -> None:
        self.bus.publish(events.SystemErrorReported(message=f"lua: {reason}"))

    def _refusal_of(self, target: str) -> Fault | None:
        folder = self.folders[target]
        said = self._refusals.get(target)
        return refusal_of(target, folder) if said is None else Fault(folder.directory, 0, said)

    def _new_context(self, label: str) -> Context:
        return Context(self.registry, self.dispatcher, self.clock, label, self._calls)

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
        return settings is not None and device.kind in kind_of(settings).device_kinds

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._has_failed = kind is not None and issubclass(kind, Exception) and not issubclass(kind, LaresError)
        if not self._has_failed:
            self.crashes.end_series()
        await self._stack.aclose()
