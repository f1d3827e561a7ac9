"""History on the card: one month of a home with 200 devices, read in the same way as by a real hub."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from appliance.history.card_lines import encode_hours
from appliance.history.hours import Hour
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
