"""Automations: a storm of changes on one core, how soon Lua runs after a change, and what a thousand others cost."""

from __future__ import annotations

import asyncio
import logging
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from appliance.automations.automation_setup import Parts, open_automations
from appliance.automations.definition import automation_parser
from appliance.automations.environment import Environment
from appliance.clock import Clock, ClockTrust
from appliance.history.execution_history import ExecutionHistory, ExecutionStatus
from appliance.home.bus import Bus
from appliance.home.model import DeviceKind, Observation, Report
from appliance.home.registry import Registry
from appliance.home_locale import Locale
from appliance.lua.context import Context
from appliance.lua.execution_limits import ExecutionLimits
from appliance.lua.executor import Executor
from appliance.lua.folder import Folder
from appliance.lua.lua_catalog import Catalog
from appliance.lua.worker_pool import WorkerPool
from appliance.store.records import Storage
from appliance.version import MADE_AT
from benchmarks._client import percentile
from benchmarks._frame import Row, Sample
from benchmarks._lag import watched_here

DEVICES = AUTOMATIONS = 200
CHANGES_A_SECOND = 500
SECONDS = 20
FEW, MANY = 10, 1_000
ROUNDS = 200
STORM = f"{CHANGES_A_SECOND} changes a second of {DEVICES} devices, {AUTOMATIONS} automations, one core"

FIRED = Row(label=f"{STORM}: fired", unit="% of them", at_least=100)
ENDED_WELL = Row(label=f"{STORM}: ended well", unit="% of them", at_least=100)
LATENCY = Row(label=f"{STORM}: change → first Lua instruction, p50", unit="ms")
LATENCY_P99 = Row(label=f"{STORM}: change → first Lua instruction, p99", unit="ms")
BUSY = Row(label=f"{STORM}: processor of the hub", unit="% of the core")
HEARD = Row(label=f"a change is heard beside {MANY:,} automations", unit="µs", beside=f"beside {FEW}", at_most=1.2)
FIRST = Row(
    label=f"change → first Lua instruction beside {MANY:,} automations",
    unit="ms",
    beside=f"beside {FEW}",
    at_most=1.2,
)
UTC = ZoneInfo("UTC")

AUTOMATION = """
return {{
  id = "a{number}",
  name = "Automation {number}",
  trigger = {{ type = "device_state_change", device_id = "{device}", attribute = "brightness" }},
  execute = function(ctx, event)
    ctx:log("info", event.device_id, {{ value = event.value }})
  end,
}}
"""


@dataclass(slots=True, kw_only=True)
class Stage:
    """A home with devices and automations; `began` is when each change was followed by what Lua does first."""

    registry: Registry
    parts: Parts
    runner: WorkerPool
    changed: dict[tuple[str, int], float] = field(default_factory=dict)
    began: dict[tuple[str, int], float] = field(default_factory=dict)

    def change(self, device: str, value: int) -> None:
        """Let the device show the value."""
        self.changed[device, value] = time.perf_counter()
        seen = Observation(device_id=device, kind=DeviceKind.LIGHT, attributes=_shown(value), vendor_specific={})
        self.registry.apply(Report(adapter=device, present=frozenset([device]), observations=(seen,)))

    def latencies(self) -> list[float]:
        """Milliseconds from each change to the first instruction that it caused."""
        return [1000 * (self.began[key] - at) for key, at in self.changed.items() if key in self.began]

    async def rest(self) -> None:
        """Wait until nothing runs any more."""
        while self.runner.running:
            await Clock().sleep(0.002)


class _Context(Context):
    """A context that notes when it was called; each automation does one thing, it logs or commands."""

    stage: Stage

    async def call(self, operation: str, arguments: Sequence[Any]) -> Any:
        """Note the time."""
        self.stage.began[arguments[0], arguments[1]["value"]] = time.perf_counter()

    def log(self, level: str, message: str, fields: Any) -> None:
        """Note the time."""
        self.stage.began[message, fields["value"]] = time.perf_counter()


def measure(rounds: int) -> Iterator[Sample]:
    """All of a storm, and what others that idle cost, by turns; on one core."""
    logging.disable(logging.CRITICAL)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield from asyncio.run(_storm(SECONDS))
        for _ in range(rounds):
            few, many = (asyncio.run(_idle(count, ROUNDS)) for count in (FEW, MANY))
            yield HEARD.sample(many[0], few[0])
            yield FIRST.sample(statistics.median(many[1]), statistics.median(few[1]))
    finally:
        os.sched_setaffinity(0, cores)
        logging.disable(logging.NOTSET)


async def _storm(seconds: int) -> list[Sample]:
    async with open_stage([device_id(number) for number in range(AUTOMATIONS)]) as stage:
        total, began, busy = seconds * CHANGES_A_SECOND, time.perf_counter(), time.process_time()
        async with watched_here() as lags:
            for number in range(total):
                ahead = began + number / CHANGES_A_SECOND - time.perf_counter()
                await Clock().sleep(max(0.0, ahead))
                stage.change(device_id(number % DEVICES), 1 + number // DEVICES)
            await stage.rest()
        busy = (time.process_time() - busy) / (time.perf_counter() - began)
        ended = stage.parts.automations.figures()["ended"]
        lost = total - ended[ExecutionStatus.OK]
        latencies = stage.latencies()
    values = (
        (FIRED, 100 * len(latencies) / total),
        (ENDED_WELL, 100 * (total - lost) / total),
        (LATENCY, statistics.median(latencies)),
        (LATENCY_P99, percentile(latencies, 99)),
        (BUSY, 100 * busy),
    )
    return [*(row.sample(value) for row, value in values), *lags.samples(STORM)]


async def _idle(others: int, rounds: int) -> tuple[float, list[float]]:
    """Microseconds that a change takes to be heard, and milliseconds until Lua runs, beside others that idle."""
    heard, device = [], device_id(0)
    async with open_stage([device, *[device_id(1 + number % (DEVICES - 1)) for number in range(others)]]) as stage:
        for number in range(rounds):
            began = time.perf_counter()
            stage.change(device, 1 + number)
            heard.append(1e6 * (time.perf_counter() - began))
            await stage.rest()
        return statistics.median(heard), stage.latencies()


@asynccontextmanager
async def open_stage(listening: Sequence[str], text: str = AUTOMATION) -> AsyncIterator[Stage]:
    """A home with its devices, and for each of those that are named an automation that listens to it."""
    clock, bus = Clock(), Bus()
    registry = Registry(bus, clock)
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
        for number, device in enumerate(listening):
            (Path(folder) / f"{number:04}.lua").write_text(text.format(number=number, device=device))
        async with WorkerPool(limits=ExecutionLimits(), scripts=None, timezone=UTC, clock=clock) as runner:
            locale = Locale(timezone=UTC)
            files = Folder(path=Path(folder), name="config/automations")
            catalog = Catalog("automation", files, runner.describe, automation_parser(locale, clock, 8))

            def new_context(label: str) -> _Context:
                context = _Context(registry, None, clock, label)  # type: ignore[arg-type]
                context.stage = stage
                return context

            new_executor = partial(Executor, runner, new_context, clock)
            trust = ClockTrust(clock, MADE_AT)
            environment = Environment(registry, bus, clock, trust, _storage())
            async with open_automations(catalog, environment, ExecutionHistory(), new_executor) as parts:
                stage = Stage(registry=registry, parts=parts, runner=runner)
                for number in range(DEVICES):
                    stage.change(device_id(number), 0)
                stage.changed.clear()
                yield stage


def device_id(number: int) -> str:
    return f"lamp{number}:light:0"


def _storage() -> Storage:
    class Nothing:
        """A card with nothing on it."""

        def items(self, prefix: str) -> list[tuple[str, Any]]:
            """Nothing."""
            return []

    async def put(values: Mapping[str, Any]) -> None:
        return None

    return Storage(stored=Nothing(), remember=lambda key, value: None, put=put)


def _shown(value: int) -> dict[str, Any]:
    return {"power": "on", "brightness": value, "color_temperature": {"value": 4000, "unit": "kelvin"}}
