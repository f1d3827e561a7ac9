"""Scenes: Lua files that people or automations start. The module parses, lists, and executes scenes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from appliance import settings
from appliance.errors import Invalid
from appliance.history.execution_history import ExecutionEntry
from appliance.home.texts import MAX_ID_CHARS, MAX_NAME_CHARS, text
from appliance.lua.executable_files import ExecutableFiles
from appliance.lua.files.catalog import Catalog, Dependencies, Inspect, hint_of_field
from appliance.lua.files.folder import folder_of
from appliance.lua.running.context import Context
from appliance.lua.running.executor import CANCELLED, Execution, ExecutionRequest, Executor
from appliance.lua.running.modes import Decision, Mode, ModeType, mode_check
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua.text.source import Source
from appliance.tables.checks import function, string
from appliance.tables.fields import Field, Fields, Table

MAX_NESTED_EXECUTIONS = 16
"""Maximum number of executions that run each other in a chain. Each needs memory until the last one ends."""


class Scene(Struct, frozen=True, kw_only=True):
    """A scene's definition without the scene's function."""

    id: str
    name: str
    description: str
    mode: Mode


def scene_parser(default_max: int) -> Callable[[Table], Scene]:
    """Return the parser of scenes. A mode without a maximum gets `default_max`."""
    fields: Fields = {
        "id": Field(text(MAX_ID_CHARS)),
        "name": Field(text(MAX_NAME_CHARS)),
        "description": Field(string, ""),
        "execute": Field(function),
        "mode": Field(mode_check(default_max), Mode(type=ModeType.PARALLEL, max=default_max)),
    }

    def parse(table: Table) -> Scene:
        found = table.read(fields)
        table.refuse_others("a field", hint_of_field)
        return Scene(**{name: found[name] for name in ("id", "name", "description", "mode")})

    return parse


def build_scene_catalog(
    section: settings.ScenesSettings,
    root: Path,
    pool: WorkerPool,
    default_max: int,
    inspect: Inspect | None = None,
    dependencies: Dependencies | None = None,
    unsaved: Source | None = None,
) -> Catalog[Scene]:
    """Return the catalog of the scene folder. The catalog is empty until it is loaded. `inspect` returns warnings
    about a file. `unsaved` replaces a file of the folder."""
    folder, parse = folder_of(section, root, unsaved), scene_parser(default_max)
    return Catalog("scene", folder, pool.describe, parse, inspect, dependencies=dependencies)


class Scenes(ExecutableFiles[Scene]):
    """The loaded scenes, their executions, and the history of executions."""

    def __init__(self, catalog: Catalog[Scene], executor: Executor) -> None:
        super().__init__(catalog, executor)
        self._waits: list[tuple[str, str]] = []
        """Pairs of labels: an execution that is waiting for a scene, and that scene."""

    async def __aenter__(self) -> Scenes:
        await self.catalog.load()
        await self.executor.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.executor.__aexit__()

    def execute(self, id_: str, caller: Context | None = None, client: str = "") -> Execution:
        """Start, queue, or drop the scene according to its mode. Return at once.

        `caller` is the context of the execution that caused this execution. `client` is the key or the broker whose
        client started it.
        """
        file = self.catalog.get(id_)
        mode = file.definition.mode
        return self.executor.submit(
            ExecutionRequest(
                kind="scene",
                id=id_,
                name=file.definition.name,
                source=file.source,
                mode=mode,
                is_waited_for=True,
                is_alarm=caller is not None and caller.is_alarm,
                chain=() if caller is None else caller.chain,
                client=client if caller is None else caller.client,
            )
        )

    async def run(self, id_: str, caller: Context) -> ExecutionEntry:
        """Start the scene and wait until it ends. Cancel the execution if the waiting task is cancelled.

        Raise `Invalid` if the scene would run itself, even indirectly, or if the chain of executions would be too
        long. Also raise `Invalid` if the scenes would wait for each other forever, because the scene is queued after
        an execution that is waiting for a member of the chain.
        """
        chain, wait = caller.chain, (caller.source, f"scene:{id_}")
        if wait[1] in chain:
            raise Invalid(f"ctx:run_scene: {self._describe_circle(chain, wait[1])}")
        if len(chain) >= MAX_NESTED_EXECUTIONS:
            limit = f"at most {MAX_NESTED_EXECUTIONS} scenes and automations can run each other in a chain"
            raise Invalid(f"ctx:run_scene: scene '{id_}' did not start, because {limit}")
        execution = self.execute(id_, caller)
        if execution.decision is Decision.QUEUE and (because := self._describe_circle(chain, wait[1])):
            self.executor.cancel(execution, because)
            raise Invalid(f"ctx:run_scene: {because}")
        self._waits.append(wait)
        try:
            return await execution.result()
        except asyncio.CancelledError:
            self.executor.cancel(execution, CANCELLED)
            raise
        finally:
            self._waits.remove(wait)

    def _describe_circle(self, chain: tuple[str, ...], label: str) -> str:
        """Find scenes that would wait for each other in a circle. The circle contains this scene and the end of the
        chain. Return a sentence with the labels of these scenes, or an empty text if there is no circle."""
        paths: list[tuple[str, ...]] = [(label,)]
        for path in paths:
            if path[-1] in chain:
                circle = (*chain[chain.index(path[-1]) :], *path)
                return f"scenes run each other in a circle: {' → '.join(circle)}"
            known = {each[-1] for each in paths}
            following = {scene for who, scene in self._waits if who == path[-1]}
            paths += [(*path, scene) for scene in sorted(following - known)]
        return ""
