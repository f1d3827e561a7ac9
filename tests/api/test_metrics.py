"""`GET /metrics` is readable by Prometheus, correct, and cheap."""

from __future__ import annotations

import re
import subprocess
import time

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from appliance.api.metrics import Family, expose, labels
from appliance.api.request_counts import RequestCounts
from appliance.home.model import DeviceKind, Observation, Report
from tests.fakes.app import LIGHT, READER, App
from tests.fakes.programs import need


def sample(text: str, name: str) -> float:
    [value] = re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(value)


async def scrape(app: App) -> str:
    answer = await app.get("/metrics", token=READER.text)
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return str(answer.json)


async def test_requests_are_timed_and_counted_by_method_route_and_status(app: App) -> None:
    await app.get(f"/devices/{LIGHT}")
    await app.get("/devices/nope")
    await app.get("/nowhere")
    await app.get("/devices", token=None)
    text = await scrape(app)
    row = 'lares_http_requests_total{method="GET",route='
    assert sample(text, row + '"/devices/<device_id>",status="200"}') == 1
    assert sample(text, row + '"/devices/<device_id>",status="404"}') == 1
    assert sample(text, row + '"/devices",status="401"}') == 1
    assert sample(text, row + '"unmatched",status="404"}') == 1
    times = 'lares_http_request_duration_seconds_{}{{method="GET",route="/devices/<device_id>"{}}}'
    assert sample(text, times.format("count", "")) == sample(text, times.format("bucket", ',le="+Inf"')) == 2
    assert sample(text, times.format("sum", "")) > 0


def test_a_thread_gets_counts_that_do_not_change() -> None:
    counts = RequestCounts()
    counts.add("GET", "/a", 200, 0.1)
    copied = counts.copy()
    counts.add("GET", "/a", 200, 0.1)
    counts.add("GET", "/b", 200, 0.1)
    assert copied.counts == {("GET", "/a", 200): 1} and copied.seconds == {("GET", "/a"): 0.1}
    assert [sum(each) for each in copied.times.values()] == [1]


async def test_the_metrics_cover_the_home_and_its_parts(app: App) -> None:
    await app.command(LIGHT, "power", "on")
    async with app.stream() as frames:
        await app.command(LIGHT, "brightness", "set", 33)
        await frames.until("device.state_changed")
        text = await scrape(app)
    assert sample(text, 'lares_devices{state="online"}') == 2
    assert sample(text, "lares_commands_total") == 2
    assert sample(text, 'lares_adapter_up{adapter="elgato_lights"}') == 1
    assert sample(text, 'lares_adapter_answers_total{adapter="roku_tv"}') >= 1
    assert sample(text, "lares_stream_readers") == 1 and sample(text, "lares_stream_frames_total") >= 1
    for name in ("lares_ready", "lares_clock_trusted"):
        assert sample(text, name) == 1
    for name in ("lares_safe_mode", "lares_store_failing", "lares_stream_lag_frames", "lares_alarms_late_total"):
        assert sample(text, name) == 0
    for name in ("lares_store_syncs_total", "process_resident_memory_bytes", "process_open_fds", "process_threads"):
        assert sample(text, name) > 0, name


async def test_a_strict_parser_accepts_each_metric_family(app: App) -> None:
    await app.get("/nowhere")
    empty, *families = re.split(r"^(?=# HELP )", await scrape(app), flags=re.MULTILINE)
    names = [family.split()[2] for family in families]
    assert not empty and len(set(names)) == len(names)
    for name, family in zip(names, families, strict=True):
        # The strict parser reads the successor of this format. There, the family name of a counter has no `_total`.
        successor = re.sub(r"^(# \w+ \w+?)_total ", r"\1 ", family, flags=re.MULTILINE)
        [read] = text_string_to_metric_families(f"{successor}# EOF\n")
        assert read.documentation and read.samples and read.type != "unknown", name
        assert (read.type == "counter") == name.endswith("_total"), name


@pytest.mark.slow
async def test_promtool_accepts_the_metrics(app: App) -> None:
    promtool = need("promtool")
    await app.get("/nowhere")
    text = await scrape(app)
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)  # noqa: ASYNC221
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.slow
async def test_a_scrape_per_second_is_cheap(app: App, capsys: pytest.CaptureFixture[str]) -> None:
    seen = tuple(
        Observation(
            device_id=f"many:{n}",
            kind=DeviceKind.LIGHT,
            attributes={"power": "on", "brightness": n % 100},
            vendor_specific={},
        )
        for n in range(200)
    )
    app.hub.registry.apply(
        Report(adapter="many", present=frozenset(each.device_id for each in seen), observations=seen)
    )
    await scrape(app)
    began, scrapes = time.process_time(), 50
    for _ in range(scrapes):
        await scrape(app)
    cost = (time.process_time() - began) / scrapes
    with capsys.disabled():
        print(f"\n  a scrape of 200 devices: {cost * 1000:.2f} ms of processor time, client included")
    assert cost < 0.01


def test_labels_are_escaped_and_empty_families_omitted() -> None:
    assert labels({"a": 'x"\\\n'}) == '{a="x\\"\\\\\\n"}'
    empty = Family(name="none", type="gauge", help="None.", samples=[])
    one = Family(name="one", type="gauge", help="One.", samples=[("", 1.5), (labels({"a": "b"}), 2.0)])
    assert expose([empty, one]) == b'# HELP one One.\n# TYPE one gauge\none 1.5\none{a="b"} 2\n'
