"""Tries an adapter section before it is saved. The trial runs in an empty home, with the real device or with a
recording."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from appliance.adapters.adapter_runner import AdapterRunner, Build
from appliance.adapters.base import AdapterContext, Secrets
from appliance.adapters.kinds import LUA_KIND, kind_of
from appliance.adapters.lua_kinds.host import SectionFault
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.adapters.redaction import Redaction, texts_in
from appliance.adapters.trial_home import TrialHome
from appliance.clock import Clock
from appliance.computing import compute_alone
from appliance.errors import Busy, ConfigFailed
from appliance.files.file_checks import FILES_THREAD
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home_locale import Locale
from appliance.imports import import_ahead
from appliance.log_limit import IS_MUTED
from appliance.lua.files.folder import Folder
from appliance.lua.files.kind_files import KindFiles
from appliance.lua.kind_catalog import MAX_CALL_CPU_SECS, KindCatalog
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua.text.source import Source
from appliance.tasks import Tasks

MAX_TRIAL_SECS = 10.0
"""Seconds after which a trial without an answer fails."""

SETTLE_SECS = 0.5
"""Seconds to collect devices after the first answer."""

_OF_LUA = (LUA_KIND.adapter_module, "appliance.adapters.lua_kinds.section_recorder")

MAX_LINES, MAX_LINE_CHARS, MAX_DEVICES = 400, 1000, 500

MAX_RECORDED_BYTES = 4 << 20
"""Maximum total size of the recorded requests and responses, and also of the messages. The search for secrets takes
about 0.1 seconds per MiB."""

MAX_RECORDING_BYTES = 4 << 20
"""Maximum size of a recording in an answer. A larger recording is omitted."""


class Trial(Struct, frozen=True, kw_only=True):
    """The result of a trial. `error` is None if the device answered. For a Lua kind, `lines` contains the requests
    and responses, and `recording` can replay them. Neither contains secrets. `recording` is also None if it
    would be too large."""

    error: str | None
    devices: tuple[Device, ...]
    dropped: tuple[str, ...]
    lines: tuple[str, ...] = ()
    recording: Mapping[str, Any] | None = None


class SectionTrials:
    """Runs one trial at a time. `folder` contains the kinds of the home. `build_pool` starts a Lua worker."""

    def __init__(
        self,
        folder: Folder,
        clock: Clock,
        root: Path,
        locale: Locale,
        *,
        open_session: Callable[[], Any],
        secrets_of: Callable[[str], Secrets],
        build_pool: Callable[[float], AbstractAsyncContextManager[WorkerPool]],
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._root = root
        self._locale = locale
        self._open_session = open_session
        self._secrets_of = secrets_of
        self._build_pool = build_pool
        self._is_running = False

    async def run(self, name: str, settings: Any, *, kind: Source | None = None, replay: Any = None) -> Trial:
        """Start the section and return the result. If given, the text `kind` replaces the kind's file, and the
        recording `replay` replaces the device.

        Raise `Busy` during another trial, `Invalid` for an invalid recording, or `ConfigFailed` with the faults of
        file and settings.
        """
        if self._is_running:
            raise Busy("another trial is running; try again after it has ended")
        self._is_running = True
        try:
            async with Tasks() as tasks:
                return await tasks.finish(self._run(name, settings, kind, replay), f"trial of {name}")
        finally:
            self._is_running = False

    async def _run(self, name: str, settings: Any, kind: Source | None, replay: Any) -> Trial:
        # import here, because aiohttp takes 12 MB, and on a thread, because the import takes long
        await import_ahead([kind_of(settings).adapter_module, *_OF_LUA])
        from appliance.adapters.lua_kinds.access import read_access  # noqa: PLC0415
        from appliance.adapters.lua_kinds.adapter import LuaAdapter  # noqa: PLC0415
        from appliance.adapters.lua_kinds.kept_texts import KeptTexts  # noqa: PLC0415
        from appliance.adapters.lua_kinds.origins import Origins  # noqa: PLC0415
        from appliance.adapters.lua_kinds.section_recorder import SectionRecorder  # noqa: PLC0415

        IS_MUTED.set(True)  # do not log lines of a section that exists only during the trial
        home = TrialHome(name, self._clock, self._secrets_of(name))
        if not isinstance(settings, LuaSection):
            await self._attempt(home, partial(kind_of(settings).build, settings), self._context(home, None))
            return _result(home, Redaction(_secrets_in(settings), KeptTexts(home.secrets)))
        async with self._open_catalog(settings, kind) as catalog:
            loaded = catalog.find(settings)
            if isinstance(loaded, SectionFault):
                raise ConfigFailed(list(loaded.faults))
            context = self._context(home, catalog)
            access = read_access(loaded.settings, context.root)
            origins = Origins(loaded.settings, access.http, context)
            redact = Redaction(access.secrets, KeptTexts(home.secrets))
            recorder = SectionRecorder.for_trial(origins, replay, redact.in_value, MAX_RECORDED_BYTES)

            def build(given: AdapterContext) -> LuaAdapter:
                nonlocal redact
                adapter = LuaAdapter(given, catalog, loaded, recorder, recorder)
                redact = adapter.redact
                return adapter

            def read_result() -> Trial:
                recording = recorder.recording(settings, loaded.definition.settings, redact.in_value)
                is_kept = recorder.is_complete and len(orjson.dumps(recording)) <= MAX_RECORDING_BYTES
                return _result(home, redact, recorder.lines(), recording if is_kept else None)

            await self._attempt(home, build, context)
            return await compute_alone(FILES_THREAD, read_result)

    async def _attempt(self, home: TrialHome, build: Build, context: AdapterContext) -> None:
        """Run the adapter until it has reported its devices, has failed, or exceeds the time limit."""
        async with AdapterRunner(build, context):
            with suppress(TimeoutError):
                async with asyncio.timeout(MAX_TRIAL_SECS):
                    await context.publish.has_started.wait()
                    if not home.registry.list_devices() and home.error is None:
                        await self._clock.sleep(SETTLE_SECS)
        if not context.publish.has_started.is_set() and home.error is None:
            home.error = f"no answer within {MAX_TRIAL_SECS:g} s"

    @asynccontextmanager
    async def _open_catalog(self, section: LuaSection, kind: Source | None) -> AsyncIterator[KindCatalog]:
        async with self._build_pool(MAX_CALL_CPU_SECS) as pool:
            files = KindFiles(self._folder.with_unsaved(kind), pool.describe)
            catalog = KindCatalog(files, [section], Bus(), pool=pool)
            await catalog.load()
            yield catalog

    def _context(self, home: TrialHome, kinds: KindCatalog | None) -> AdapterContext:
        return home.context(self._open_session, self._root, locale=self._locale, lua_host=kinds)


def _result(
    home: TrialHome, redact: Redaction, lines: Iterable[str] = (), recording: Mapping[str, Any] | None = None
) -> Trial:
    return Trial(
        error=None if home.error is None else redact(home.error),
        devices=tuple(home.registry.list_devices()[:MAX_DEVICES]),
        dropped=tuple(redact(each)[:MAX_LINE_CHARS] for each in home.dropped[:MAX_LINES]),
        lines=tuple(redact(each)[:MAX_LINE_CHARS] for each in [*lines][:MAX_LINES]),
        recording=recording,
    )


def _secrets_in(settings: Any) -> list[str]:
    values = [getattr(settings, name, None) for name in settings.HIDDEN]
    return texts_in([each for each in values if each is not None])
