"""The hub. Starts its parts in order, and stops them in reverse order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from appliance.adapter_sections import AdapterSections
from appliance.adapters.address_gates import AddressGates
from appliance.adapters.base import AdapterContext
from appliance.adapters.dispatch import Dispatcher
from appliance.adapters.influx_post import LinePost
from appliance.adapters.kinds import list_operations, section_kinds_of
from appliance.adapters.late_session import LateSession
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.out.home_access import FrameOf, HomeAccess, no_frame
from appliance.adapters.mqtt.out.section_publishers import Publishers, build_publishers
from appliance.adapters.publisher import Publisher
from appliance.adapters.running_adapters import RunningAdapters
from appliance.automations.automations import Automations, build_automation_catalog
from appliance.automations.ctx import CtxMethods
from appliance.automations.environment import Environment
from appliance.automations.names.name_collector import NameCollector
from appliance.automations.names.name_watcher import NameWatcher
from appliance.automations.safe_mode import CRASHED_OFTEN, STARTED_SAFE, SafeMode
from appliance.automations.schedule.clock_watch import ClockWatch
from appliance.clock import Clock, ClockSteps
from appliance.config import Config
from appliance.config_changes import ConfigFile, LoadConfig
from appliance.errors import Fault, LaresError
from appliance.event_loop import hurry
from appliance.files.file_checks import FileChecks
from appliance.files.home_files import HomeFiles
from appliance.files.recipes import Recipes
from appliance.files.section_trial import SectionTrials
from appliance.files.sections import Sections
from appliance.health import Health
from appliance.history.execution_history import ExecutionEntry
from appliance.history.home_history import HomeHistory
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.log_buffer import LogBuffer
from appliance.lua.files.folder import find_stray, folder_of, folders_of
from appliance.lua.files.kind_files import folder_of_kinds
from appliance.lua.files.reload import Reloaded, Reloader, targets_of
from appliance.lua.files.scripts import Scripts
from appliance.lua.kind_catalog import KindCatalog, open_kind_catalog
from appliance.lua.running.context import Context, CtxFunction
from appliance.lua.running.executor import ExecutionRequest, Executor
from appliance.lua.running.failed_calls import FailedCalls
from appliance.lua.running.load_limit import limit_load
from appliance.lua.running.packed_rows import RowMemory
from appliance.lua.running.unfinished_executions import UnfinishedExecutions
from appliance.lua.running.worker_pool import WorkerPool, build_pool
from appliance.scenes import Scenes, build_scene_catalog
from appliance.settings import LuaFolder
from appliance.store.disk import Disk
from appliance.store.store import Store
from appliance.watch import Target, Watcher

STORE_PACKS = 4
"""How often the stored values are packed after devices were removed. Each time, more pages become free: after a flood
of 2,000 devices, 1.5 MB."""

log = logging.getLogger("hub")


class Hub:
    """The running hub. While the hub's context is open, its parts are available as attributes. Only the packages api
    and cli use this class.

    The class lists the parts that start with the hub, in the order of their start.

    If `is_safe` is true, the hub runs no automations, regardless of the configuration. `frame_of` encodes the events
    that the hub publishes over MQTT. `load` reads the configuration again.
    """

    began: float
    steps: ClockSteps
    health: Health
    history: HomeHistory
    pool: WorkerPool
    _unfinished: UnfinishedExecutions
    _name_collector: NameCollector
    _ctx_methods: Mapping[str, CtxFunction]
    kinds: KindCatalog
    adapters: RunningAdapters
    dispatcher: Dispatcher
    adapter_sections: AdapterSections
    environment: Environment
    scenes: Scenes
    automations: Automations
    names: NameWatcher
    executors: Sequence[Executor]
    reloaders: Mapping[str, Reloader]
    files: HomeFiles
    recipes: Recipes
    sections: Sections

    def __init__(
        self,
        config: Config,
        disk: Disk,
        clock: Clock,
        *,
        is_safe: bool = False,
        log_buffer: LogBuffer | None = None,
        frame_of: FrameOf = no_frame,
        load: LoadConfig | None = None,
    ) -> None:
        self._load = load
        self.safe_mode = SafeMode(is_requested=is_safe)
        self._config = config
        self._frame_of = frame_of
        self._stack = AsyncExitStack()
        self.start_errors: list[events.SystemErrorReported] = []
        self.has_files = config.files.enabled
        """Whether clients can read and save Lua files over HTTP."""
        self.is_stopping = False
        self._stop_requested_at: float | None = None
        self._packs_left = 0  # of the stored values
        self.worker_starts = asyncio.Event()
        """Is set when the Lua worker starts. If the worker has not started by the end of the hub's start, the
        event is set then."""
        self.folders: Mapping[str, LuaFolder] = {
            "scenes": config.scenes,
            "automations": replace(config.automations, enabled=False) if is_safe else config.automations,
            "scripts": config.scripts,
        }
        self.clock, self.timezone = clock, config.locale.timezone
        self.failed_calls = FailedCalls(clock)
        self._row_memory = RowMemory()
        self.bus = Bus()
        self.log = log_buffer or LogBuffer()
        self.registry = Registry(self.bus, clock)
        flush_secs = config.persistence.flush_secs
        self._disk = disk
        sections = section_kinds_of(config.adapters)
        self.store = Store(disk, self.registry, self.bus, clock, flush_secs=flush_secs, sections=sections)

    async def __aenter__(self) -> Hub:
        config, self.began, self.steps = self._config, self.clock.monotonic(), ClockSteps(self.clock)
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            stack.enter_context(self.log)
            await enter(self.store)
            has_crashed_often = await self.store.crashes.note_start(has_crashed=self.store.has_crashed)
            if has_crashed_often and config.automations.enabled:
                self.safe_mode.begin_after_crashes(self.store.crashes)
            self.health = Health(config.adapters, self.bus)
            session = await enter(LateSession())
            self.history = await enter(self._build_history(session))
            self.store.recorder.after_flush(self.history.beat)
            stack.push_async_callback(self.record_stored)  # writing the history may exceed the time limit
            self.pool = await enter(self._build_pool())
            starting = stack.enter_context(ExitStack())
            starting.enter_context(limit_load())
            self._unfinished = await enter(UnfinishedExecutions(self.store.document, self.clock))
            file, describe = Path(config.file), self.pool.describe
            self.kinds = await open_kind_catalog(stack, file, config.adapters, describe, self.bus, self._build_pool)
            self.adapters = RunningAdapters(config.adapters, partial(self._context_of, session.open, AddressGates()))
            self.dispatcher = await enter(Dispatcher(self.adapters.runners, self.bus, self.clock))
            self.adapter_sections = AdapterSections(
                config=config,
                file=ConfigFile(config, self._load),
                running=self.adapters,
                dispatcher=self.dispatcher,
                kinds=self.kinds,
                health=self.health,
                registry=self.registry,
                store=self.store,
                clock=self.clock,
                build_publishers=self._build_publishers,
            )
            self.environment = self._build_environment()
            self._ctx_methods = self._build_ctx_methods()
            self._name_collector = self._build_name_collector()
            self.scenes = await enter(self._build_scenes())
            await self._enter_automations(stack)
            starting.close()
            self.executors = (self.scenes.executor, self.automations.executor)
            self.reloaders = self._build_reloaders()
            for reloader in self.reloaders.values():
                await enter(reloader)
            self.files = await enter(self._build_files())
            folders = config.scenes.directory, config.automations.directory
            self.recipes = Recipes(self.files, Path(config.file), *folders)
            self.sections = Sections(self.files, self._build_trials(session))
            await enter(Watcher(self._list_watched(), self.clock))
            await enter(self.adapters)
            await self.adapter_sections.publish_home()
            self._stack = stack.pop_all()
        self.worker_starts.set()
        self._report_start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, Exception) and not issubclass(kind, LaresError):
            self.store.record_fault()
        else:
            self.store.crashes.end_series()
        await self.record_stored()  # leaving the adapters may exceed the time limit
        await self._stack.aclose()

    async def record_stored(self) -> None:
        """Store the whole state except the history, and record a clean stop."""
        await self.store.recorder.flush_at_stop()
        self.store.record_stored()

    def _report_start(self) -> None:
        """Log and publish the faults found at startup, and keep them for clients that connect later."""
        rejected = (*self.scenes.catalog.rejected, *self.automations.catalog.rejected, *self.kinds.rejected)
        for fault in rejected:
            log.warning("not loaded: %s", fault)
        for stray in find_stray(Path(self._config.file).absolute().parent):
            log.warning("%s", stray)
        messages = (
            *([CRASHED_OFTEN] if self.safe_mode.is_after_crashes else []),
            *(f"store: {note}" for note in (*self.store.document.recovered.damage, *self.store.unreadable)),
            *(f"not loaded: {fault}" for fault in rejected),
        )
        self.start_errors = [events.SystemErrorReported(message=message) for message in messages]
        for error in self.start_errors:
            self.bus.publish(error)

    async def reload(self) -> list[Reloaded]:
        """Reload the adapter sections and each enabled Lua folder, one after another."""
        return [await reloader.reload() for reloader in self.reloaders.values() if reloader.refusal is None]

    async def pack(self) -> bool:
        """Save memory: remove the brake's expired records, and pack the remaining data of removed devices. After the
        last removals, also pack the stored values. Return whether the next call packs more."""
        self.environment.brake.remove_expired()
        if await self.history.pack():
            self._packs_left = STORE_PACKS
            return True
        self.names.store_removals()
        if self._packs_left:
            self._packs_left -= 1
            await self.store.document.pack()
        return self._packs_left > 0

    async def trust_clock(self) -> None:
        """Trust the clock from now on, even after restarts. Return after the decision is stored, or raise
        `StoreFailed`."""
        await self.store.recorder.trust_clock()
        self.environment.scheduler.recheck()

    def record_stop(self) -> None:
        """Record the stop request, so that a later kill is not counted as a crash."""
        if self._stop_requested_at is None:
            self._stop_requested_at = self.clock.monotonic()
        self.store.record_stop()

    def begin_to_stop(self) -> None:
        """Disable timers, triggers, schedules, backups, and commands over MQTT. Cancel waiting automations. Running
        executions continue."""
        self.is_stopping = True
        hurry()
        self.environment.timers.pause()
        self.automations.engine.disarm()
        self.automations.executor.begin_to_stop()

    @property
    def stop_began(self) -> float:
        """The time of the first stop request, or now, in seconds of the monotonic clock."""
        return self.clock.monotonic() if self._stop_requested_at is None else self._stop_requested_at

    def is_working(self, until: float) -> bool:
        """Return whether a running execution could still end before `until`, a time in seconds of the monotonic
        clock."""
        return any(executor.is_working(until) for executor in self.executors)

    async def abort_all(self) -> None:
        """Cancel all running executions and commands. Callers that are waiting for a result get an error. Before,
        store the state, because the end of hundreds of executions takes long on a busy machine."""
        if self.is_working(inf):
            await self.record_stored()
        self._unfinished.end_all()
        for executor in self.executors:
            executor.cancel_all()
        self.dispatcher.refuse_new()
        self.dispatcher.abort_all()

    def _build_history(self, session: LateSession) -> HomeHistory:
        return HomeHistory(
            self._config.history,
            self.bus,
            self.clock,
            self.timezone,
            months=self.store.months,
            write_on=self.store.thread.run,
            is_trusted=self.store.clock_trust.is_trusted,
            lines_to=partial(LinePost, session.open, self.clock),
        )

    def _build_pool(self, max_cpu_secs: float = inf) -> WorkerPool:
        config = self._config
        return build_pool(
            scripts=config.scripts,
            runner=config.automations.runner,
            timezone=config.locale.timezone,
            root=config.root,
            clock=self.clock,
            on_kill=lambda reason: self.bus.publish(events.SystemErrorReported(message=f"lua: {reason}")),
            on_start=self.worker_starts.set,
            max_cpu_secs=max_cpu_secs,
        )

    def _context_of(self, open_session: Callable[[], Any], gates: AddressGates, name: str) -> AdapterContext:
        return AdapterContext(
            name=name,
            clock=self.clock,
            publish=Publisher(name, self.registry, self.bus, self.clock),
            secrets=self.store.secrets_of(name),
            open_session=open_session,
            gates=gates,
            record=self._record,
            root=self._config.root,
            locale=self._config.locale,
            lua_host=self.kinds,
        )

    async def _record(self, devices: Sequence[Device]) -> None:
        """Store these device states together with the waits that begin with them."""
        await self.store.recorder.record(devices, self.automations.engine.preview_waits(devices))

    async def _build_publishers(self, name: str, settings: Mqtt, brokers: Collection[str]) -> Publishers:
        """Return the objects that publish the home on the section's broker."""
        home = HomeAccess(
            registry=self.registry,
            bus=self.bus,
            send=self.dispatcher.send,
            scenes=lambda: {scene.id: scene.name for scene in self.scenes.catalog.list_definitions()},
            run_scene=partial(self.scenes.execute, client=f"broker {name}"),
            automations=self.automations.list_switches,
            revision=lambda: (self.scenes.catalog.revision, self.automations.revision),
            switch=lambda id_, is_enabled: self.automations.switch(id_, is_enabled=is_enabled),
            is_stopping=lambda: self.is_stopping,
            frame_of=self._frame_of,
        )
        secrets, root = self.store.secrets_of(name), self._config.root
        return await build_publishers(name, settings, secrets, home, self.clock, root, brokers)

    def _build_environment(self) -> Environment:
        trust, stopped_at = self.store.clock_trust, self.store.stopped_at
        watch = ClockWatch(self.clock, trust, self.steps, began=self.began, stopped_at=stopped_at)
        limits = self._config.automations.runner
        document, record = self.store.document, self.store.recorder.record
        return Environment(self.registry, self.bus, watch, document, limits=limits, record=record)

    def _build_ctx_methods(self) -> Mapping[str, CtxFunction]:
        async def run_scene(id_: str, context: Context) -> ExecutionEntry:
            return await self.scenes.run(id_, context)

        return CtxMethods(self.environment, self.dispatcher, run_scene, self._config.notify.targets).table()

    def _build_name_collector(self) -> NameCollector:
        sections, kinds = self.adapter_sections, self.kinds
        return NameCollector(
            config=self._config,
            environment=self.environment,
            sections=lambda: sections.names,
            operations=lambda: {**list_operations(sections.settings), **kinds.list_operations()},
            scenes=lambda: self.scenes.catalog,
            automations=lambda: self.automations,
        )

    def _build_scenes(self) -> Scenes:
        config = self._config
        catalog = build_scene_catalog(
            section=config.scenes,
            root=config.root,
            pool=self.pool,
            default_max=config.automations.runner.default_max_concurrent,
            inspect=self._name_collector.inspect,
            dependencies=self._name_collector.list_dependencies,
        )
        return Scenes(catalog, self._build_executor("scene"))

    def _build_executor(self, kind: str) -> Executor:
        history = self.history.new_executions(kind)
        self._unfinished.report(kind, history)
        return Executor(self.pool, self._new_context, self.clock, history, self._unfinished)

    def _new_context(self, request: ExecutionRequest) -> Context:
        return Context(
            self.clock,
            request.kind,
            request.id,
            self._ctx_methods,
            self.failed_calls,
            request.chain,
            self._row_memory,
            is_alarm=request.is_alarm,
            client=request.client,
        )

    async def _enter_automations(self, stack: AsyncExitStack) -> None:
        config = self._config
        catalog = build_automation_catalog(
            settings=config.automations,
            root=config.root,
            describe=self.pool.describe,
            locale=config.locale,
            clock=self.clock,
            known=self._name_collector.list_for_load,
            dependencies=self._name_collector.list_dependencies,
        )
        executor = self._build_executor("automation")
        automations = Automations(catalog, self.environment, executor, self.safe_mode)
        automations.hold_until(self.health.have_all_started, self.bus)
        self.automations = await stack.enter_async_context(automations)
        self.names = NameWatcher(
            self.bus, self.clock, self.store.document, self._name_collector.view, self.health.have_all_started
        )
        await stack.enter_async_context(self.names)

    def _build_reloaders(self) -> dict[str, Reloader]:
        scripts = Scripts(
            self.pool.compile, folder_of(self._config.scripts, self._config.root), self._name_collector.inspect
        )
        scenes, automations, sections = self.scenes, self.automations, self.adapter_sections
        reloader, refusal = partial(Reloader, bus=self.bus, clock=self.clock), self._find_refusal
        reloaders = (
            reloader("adapters", sections.reload, more=lambda: sections.last_changes),
            reloader("scenes", scenes.reload, load_valid=scenes.reload_valid, refusal=refusal("scenes")),
            reloader(
                "automations",
                automations.reload,
                load_valid=automations.reload_valid,
                refusal=refusal("automations"),
            ),
            reloader("scripts", scripts.check, refusal=refusal("scripts")),
        )
        return {each.target: each for each in reloaders}

    def _find_refusal(self, target: str) -> Fault | None:
        """Return the reason why the Lua folder cannot be reloaded, or None."""
        folder = self.folders[target]
        if target == "automations" and self.safe_mode.is_requested:
            return Fault(folder.directory, 0, STARTED_SAFE)
        return (
            None if folder.enabled else Fault(folder.directory, 0, f"{target}.enabled is false in the configuration")
        )

    def _build_files(self) -> HomeFiles:
        config = self._config
        checks = FileChecks(
            config,
            self.pool,
            self.scenes.catalog,
            self.automations,
            self.kinds,
            folders_of(config, config.root),
            self.names.find_known,
        )
        reloads = {
            kind: self.reloaders[f"{kind}s"].reload_valid for kind in ("scene", "automation", "script", "adapter")
        }
        reloads["config"] = self.reloaders["adapters"].reload
        return HomeFiles(
            config,
            self._disk,
            checks,
            self.clock,
            self.store.document,
            run=self.store.thread.run,
            reload_valid=reloads,
            secret_settings=self.kinds.list_secrets,
        )

    def _build_trials(self, session: LateSession) -> SectionTrials:
        config = self._config
        return SectionTrials(
            folder_of_kinds(Path(config.file)),
            self.clock,
            config.root,
            config.locale,
            open_session=session.open,
            secrets_of=self.store.secrets_of,
            build_pool=self._build_pool,
        )

    def _list_watched(self) -> list[Target]:
        reloads = {target: reloader.reload for target, reloader in self.reloaders.items()}
        kinds = self.kinds.files.folder.path if self._config.watch_adapters else None
        return targets_of(self.folders, self._config.root, reloads, kinds)
