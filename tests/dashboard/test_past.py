"""The history on a device's page: the hours of a month and of a year, energy by day and by month, and several
lines in one chart."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from appliance.history.card_lines import encode_hours, encode_written
from appliance.history.hours import Hour
from appliance.store.disk import Disk
from appliance.store.month_files import MonthFiles
from tests.dashboard.conftest import visiting
from tests.dashboard.npm import AXE, script
from tests.fakes.app import open_app
from tests.fakes.household import JumpingClock

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

HOME = """
[adapters.virtual]
[[adapters.virtual.devices]]
id = "meter"
name = "Meter"
[adapters.virtual.devices.attributes]
temperature = { value = 20.5, unit = "celsius" }
energy_total = { value = 900.0, unit = "kWh", period = "total" }
power = "on"
"""

DAYS = 370


def values(count: str) -> re.Pattern[str]:
    """Return the label of the chart with this number of values."""
    return re.compile(f"^Temperature, values: {count}$")


def write_past(folder: Path) -> None:
    """Write hourly records for the last year, each with half a kilowatt-hour, and lines of other devices between
    them."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    months = MonthFiles(Disk(folder))
    hours = [int((now - timedelta(hours=number)).timestamp()) for number in range(DAYS * 24, 0, -1)]
    total = {"unit": "kWh", "period": "total"}
    lines: dict[str, list[bytes]] = {}
    for at in range(0, len(hours), 6):
        part = hours[at : at + 6]
        degrees = [Hour(start=s, secs=3600, low=18.5, value=19 + s % 86_400 / 43_200, high=22.5) for s in part]
        counted = [Hour(start=s, secs=3600, low=400, value=900, high=900, gain=0.5) for s in part]
        for device in ("virtual:meter", *(f"virtual:other{number}" for number in range(20))):
            for month, line in encode_hours(device, "temperature", {"unit": "celsius"}, degrees):
                lines.setdefault(month, []).append(line)
        for month, line in encode_hours("virtual:meter", "energy_total", total, counted):
            lines.setdefault(month, []).append(line)
    for day, (month, bodies) in enumerate(lines.items()):
        months.append(month, [*bodies, encode_written(hours[-1] * 1000, 1000, day + 1)])


async def test_a_month_and_a_year_are_drawn(browser: Browser, tmp_path: Path) -> None:
    write_past(tmp_path)
    async with open_app(adapters=HOME, data_dir=tmp_path) as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open("#/device/virtual%3Ameter")
        await page.get_by_role("button", name="Temperature", exact=True).click()
        await page.get_by_role("button", name="Month", exact=True).click()
        chart = page.locator("figure.chart")
        await expect(chart.get_by_role("img")).to_have_attribute("aria-label", values("7[12][0-9]"))
        await expect(chart.locator("path.line")).to_have_count(1)
        assert (await chart.locator("path.area").get_attribute("d") or "").count("H") > 1400, "a band of hours"
        await expect(chart.locator(".edges")).to_have_text("22.5°C18.5°C")
        await page.get_by_text("As a table").click()
        await expect(page.locator("details", has_text="As a table")).to_contain_text("(18.5°C – 22.5°C)")
        await page.get_by_role("button", name="Year", exact=True).click()
        await expect(chart.get_by_role("img")).to_have_attribute("aria-label", values("36[4-6]"))
        await page.get_by_role("button", name="Hour", exact=True).click()
        await expect(chart.get_by_role("img")).to_have_attribute("aria-label", values("[12]"))


async def test_energy_has_bars_by_day_and_by_month(browser: Browser, tmp_path: Path) -> None:
    write_past(tmp_path)
    async with open_app(adapters=HOME, data_dir=tmp_path) as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open("#/device/virtual%3Ameter")
        await page.get_by_role("button", name="Energy", exact=True).click()
        await page.get_by_role("button", name="Month", exact=True).click()
        chart = page.locator("figure.chart")
        await expect(chart.get_by_role("img")).to_have_attribute("aria-label", "Energy by day")
        assert await chart.locator("path.bar").count() in (30, 31)
        await page.get_by_text("As a table").click()
        await expect(page.locator("details li, details tr, details .line").nth(3)).to_contain_text("12 kWh")
        await page.get_by_role("button", name="Year", exact=True).click()
        await expect(chart.get_by_role("img")).to_have_attribute("aria-label", "Energy by month")
        assert await chart.locator("path.bar").count() in (12, 13)
        await page.evaluate(script(AXE))
        found = await page.evaluate("async () => (await axe.run()).violations.map((each) => each.id)")
        assert found == []


async def test_a_day_keeps_its_date_in_other_time_zones(browser: Browser, tmp_path: Path) -> None:
    write_past(tmp_path)
    today = datetime.now(UTC)
    for zone in ("America/Los_Angeles", "Asia/Tokyo"):
        options = {"timezone_id": zone, "locale": "en-US"}
        async with open_app(adapters=HOME, data_dir=tmp_path) as app, visiting(browser, app, **options) as visit:
            page = visit.page
            await visit.open("#/device/virtual%3Ameter")
            await page.get_by_role("button", name="Energy", exact=True).click()
            await page.get_by_role("button", name="Month", exact=True).click()
            last = page.locator(".axis span").last
            days = [f"{each:%b} {each.day}, {each.year}" for each in (today, datetime.now(UTC))]
            await expect(last).to_have_text(re.compile("|".join(days)))


async def test_a_day_with_more_values_than_one_answer_is_drawn_completely(browser: Browser) -> None:
    clock = JumpingClock(datetime.now(UTC) - timedelta(hours=20))
    async with open_app(adapters=HOME, clock=clock) as app, visiting(browser, app) as visit:
        for count in range(1500):
            measured = {"value": 20 + count % 5, "unit": "celsius"}
            app.hub.registry.update_attributes("virtual", "virtual:meter", {"temperature": measured})
            clock.jump(48)
        await visit.open("#/device/virtual%3Ameter")
        await visit.page.get_by_role("button", name="Temperature", exact=True).click()
        chart = visit.page.locator("figure.chart")
        await expect(chart.get_by_role("img")).to_have_attribute("aria-label", values("1[12][0-9][0-9]"))
        begin = re.match(r"M([\d.]+) ", await chart.locator("path.line").get_attribute("d") or "")
        assert begin is not None and float(begin[1]) < 120, "some four hours of 24 have no values"


async def test_several_attributes_are_compared_in_one_chart(browser: Browser, tmp_path: Path) -> None:
    write_past(tmp_path)
    async with open_app(adapters=HOME, data_dir=tmp_path) as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open("#/device/virtual%3Ameter")
        await page.get_by_role("button", name="Week", exact=True).click()
        await page.get_by_role("button", name="Compare", exact=True).click()
        await page.get_by_role("button", name="Energy", exact=True).click()
        await page.get_by_role("button", name="Power", exact=True).click()
        chart = page.locator("figure.chart")
        await expect(chart.locator(".legend li")).to_have_text(["Temperature20.5°C", "Energy900 kWh", "PowerOn"])
        await expect(chart.locator("path.line")).to_have_count(3)
        await page.get_by_role("button", name="Power", exact=True).click()
        await expect(chart.locator("path.line")).to_have_count(2)
        await page.get_by_role("button", name="Compare", exact=True).click()
        await expect(chart.get_by_role("img")).to_have_attribute("aria-label", "Energy by day")
