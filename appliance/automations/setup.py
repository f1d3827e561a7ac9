"""Setting up: the parts of the automations, as the hub and the rehearsal put them together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from appliance.automations.automations import Automations
from appliance.automations.definition import Definition, automation_parser
from appliance.automations.engine import Engine
from appliance.automations.homes import Home
from appliance.automations.runs import Keeps, MakesExecutions, Runs
from appliance.automations.scheduler import Scheduler
from appliance.automations.states import States
from appliance.clock import Clock
from appliance.locale import Locale
from appliance.lua.catalog import Catalog, Describe
from appliance.lua.setup import folder_of
from appliance.settings import Automations as Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What of the automations others use."""

    automations: Automations
    engine: Engine
    scheduler: Scheduler


def catalog_of(
    settings: Settings, root: Path, describe: Describe, locale: Locale, clock: Clock
) -> Catalog[Definition]:
    """The catalog of the automations that the section names, not loaded yet."""
    parse = automation_parser(locale, clock, settings.runner.default_max_concurrent)
    return Catalog("automation", folder_of(settings, root), describe, parse)


@asynccontextmanager
async def open_automations(
    catalog: Catalog[Definition],
    home: Home,
    states: States,
    history: Keeps,
    executes: MakesExecutions,
) -> AsyncIterator[Parts]:
    """The automations of a catalog, loaded and armed until the context is left."""
    await catalog.load()
    runs = Runs(home, states, history, executes)
    async with states, runs, Scheduler(home.clock, home.trust) as scheduler:
        async with Engine(catalog, runs, states, scheduler, home) as engine:
            yield Parts(
                automations=Automations(catalog, engine, runs, states), engine=engine, scheduler=scheduler
            )
