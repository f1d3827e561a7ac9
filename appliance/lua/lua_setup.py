"""Setting up: the workers and folders from the sections of the configuration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

from appliance.clock import Clock
from appliance.errors import Fault
from appliance.lua.folder import Folder
from appliance.lua.process import ExecutionLimits
from appliance.lua.worker_pool import WorkerPool
from appliance.settings import AutomationRunner, LuaFolder, ScriptsSettings
from appliance.watch import Target


def build_pool(
    scripts: ScriptsSettings,
    runner: AutomationRunner,
    timezone: ZoneInfo,
    root: Path,
    clock: Clock,
    on_kill: Callable[[str], None] = lambda _: None,
    user_ids: tuple[int, ...] = (),
) -> WorkerPool:
    """The workers of every execution; paths start at `root`, `on_kill` gets a sentence for each worker lost.

    `user_ids` are those that a worker becomes which root starts: a user and its groups."""
    limits = ExecutionLimits(
        max_memory_mb=scripts.max_memory_mb,
        max_cpu_secs=scripts.max_cpu_secs,
        max_cpu_total_secs=scripts.max_cpu_total_secs,
        backstop_secs=runner.backstop_timeout_secs,
        user_ids=user_ids,
    )
    folder = folder_of(scripts, root, is_deep=True)
    return WorkerPool(limits=limits, scripts=folder, timezone=timezone, clock=clock, on_kill=on_kill)


def folder_of(section: LuaFolder, root: Path, *, is_deep: bool = False) -> Folder | None:
    """The folder that the section names, None where it is not enabled."""
    if not section.enabled:
        return None
    return Folder(path=root / section.directory, name=section.directory.rstrip("/"), is_deep=is_deep)


def refusal_of(target: str, section: LuaFolder) -> Fault | None:
    """What a reload of a target that is not enabled answers with."""
    return None if section.enabled else Fault(section.directory, 0, f"{target}.enabled is false in the configuration")


def targets_of(
    sections: Mapping[str, LuaFolder],
    root: Path,
    reloads: Mapping[str, Callable[[], Awaitable[object]]],
    kinds: Path | None,
) -> list[Target]:
    """What is to be watched of these folders and of that of `kinds`, and what to do then, by target."""
    targets = [
        Target(folder=root / section.directory, is_deep=target == "scripts", on_change=reloads[target])
        for target, section in sections.items()
        if section.watch and section.enabled
    ]
    if kinds is not None:
        targets.append(Target(folder=kinds, is_deep=False, on_change=reloads["adapters"]))
    return targets
