"""History on the card: one month of a home with 200 devices, and one month of many commands and changes."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from appliance.clock import from_millis
from appliance.history.card_lines import encode_changes, encode_command, encode_hours, encode_written
from appliance.history.day_budget import PERIOD_MS
from appliance.history.hours import Hour
from appliance.home.commands import Command
from appliance.home.events import CommandEnded
from appliance.store.disk import Disk
from appliance.store.month_files import MonthFiles
from benchmarks._client import ask, percentile, wait_until_ready
from benchmarks._frame import Row, Sample
from benchmarks._processes import hub

SENSORS, METERS, SWITCHES = 150, 30, 20
MONTH = datetime(2026, 10, 1, tzinfo=UTC)
QUERY = "resolution={}&limit=1000&start=2026-10-01T00:00:00Z&end=2026-10-31T23:59:59Z"

READ = {
    resolution: Row(
        label=f"GET a month of one attribute, {resolution}, p50", unit="ms", at_most=100, is_felt=resolution == "hour"
    )
    for resolution in ("hour", "raw")
}
MEMORY = Row(label="200 devices, months read: memory of hub and worker (PSS)", unit="MB", at_most=60)

BUSY = "a month of 5,000 commands and 30,000 changes per day, read by 12 clients"
LONGEST = Row(label=f"{BUSY}: longest GET /health meanwhile", unit="ms", at_most=50)
PEAK = Row(label=f"{BUSY}: peak memory of the hub (RSS)", unit="MB", at_most=80)

BUSY_START = "start=2026-10-01T00:00:00Z"
BUSY_PATHS = (
    f"/audit/commands?limit=10&{BUSY_START}",
    f"/devices/virtual:d0/history/power?limit=10&{BUSY_START}",
    f"/devices/virtual:d0/history/power?limit=1000&resolution=hour&{BUSY_START}",
)

VIRTUAL = """
[[adapters.virtual.devices]]
id = "d{number}"
attributes = {attributes}
"""


def measure(rounds: int) -> Iterator[Sample]:
    """Write a month once, and read it in each round."""
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as place:
        (Path(place) / "data").mkdir(mode=0o700)
        _write_month(MonthFiles(Disk(Path(place) / "data")))
        with hub("[adapters.virtual]\n" + "".join(map(_section, range(200))), folder=Path(place)) as home:
            wait_until_ready(home.port)
            for resolution, row in READ.items():
                for number in range(max(rounds, 3)):
                    yield row.sample(
                        percentile([_read(home.port, each, resolution) for each in (5, 150 + number)], 50)
                    )
            yield MEMORY.sample(home.pss_mb())
    for _ in range(max(rounds, 3)):
        yield from _measure_busy_month()


def _measure_busy_month() -> Iterator[Sample]:
    """Read a month with many entries over several connections. Meanwhile, request `/health`."""
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as place:
        (Path(place) / "data").mkdir(mode=0o700)
        _write_busy_month(MonthFiles(Disk(Path(place) / "data")))
        section = VIRTUAL.format(number=0, attributes='{ power = "on" }')
        with hub(f"[adapters.virtual]\n{section}", folder=Path(place)) as home:
            wait_until_ready(home.port)
            with ThreadPoolExecutor(12) as clients:
                reads = [clients.submit(ask, home.port, "GET", path) for path in BUSY_PATHS * 8]
                waits = []
                while not all(read.done() for read in reads):
                    began = time.perf_counter()
                    ask(home.port, "GET", "/health")
                    waits.append(1000 * (time.perf_counter() - began))
                assert all(read.result() for read in reads)
            yield LONGEST.sample(max(waits))
            yield PEAK.sample(home.resident_mb("VmHWM"))


def _write_busy_month(months: MonthFiles) -> None:
    """Write a month of commands and of changes of one attribute, with four writes per day."""
    first = int(MONTH.timestamp()) * 1000
    sent = Command(capability="power", action="on")
    for quarter in range(31 * 4):
        start = first + quarter * PERIOD_MS
        changes = ((start + number * 2_800, ("on", "off")[number % 2]) for number in range(7_500))
        lines = [line for _, line in encode_changes("virtual:d0", "power", changes)]
        for number in range(1_250):
            at = start + number * 17_000
            event = CommandEnded(
                at=from_millis(at),
                source="room",
                room_id="hall",
                device_id="virtual:d0",
                command=sent,
                status="ok",
                message=None,
            )
            lines.append(encode_command(event, at))
        months.append(f"{MONTH:%Y-%m}", [*lines, encode_written(start + PERIOD_MS, 0, quarter // 4)])


def _write_month(months: MonthFiles) -> None:
    """Write a month of hourly values of all sensors and meters, with four writes per day."""
    first = int(MONTH.timestamp())
    for quarter in range(31 * 4):
        starts = (first + 3600 * (6 * quarter + hour) for hour in range(6))
        hours = [Hour(start=start, secs=3600, low=18.5, value=20.1234, high=22.5) for start in starts]
        lines = []
        for number in range(SENSORS + METERS):
            attribute, unit = _attribute(number)
            lines += [line for _, line in encode_hours(f"virtual:d{number}", attribute, {"unit": unit}, hours)]
        months.append(f"{MONTH:%Y-%m}", lines)


def _attribute(number: int) -> tuple[str, str]:
    return ("temperature", "celsius") if number < SENSORS else ("power_consumption", "W")


def _section(number: int) -> str:
    name, unit = _attribute(number)
    measured = f'{{ {name} = {{ value = 20.0, unit = "{unit}" }} }}'
    return VIRTUAL.format(number=number, attributes=measured if number < SENSORS + METERS else '{ power = "on" }')


def _read(port: int, number: int, resolution: str) -> float:
    """Read a month of this device's history, and return the duration in milliseconds."""
    began = time.perf_counter()
    body = ask(port, "GET", f"/devices/virtual:d{number}/history/{_attribute(number)[0]}?{QUERY.format(resolution)}")
    took = 1000 * (time.perf_counter() - began)
    assert len(json.loads(body)["entries"]) == 31 * 24
    return took
