"""`POST /simulate` and `GET /completions`: requests that an editor sends while a person types."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import socket
import struct
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from appliance.api.limits import ApiLimits
from appliance.api.simulation import SimulationRequest
from appliance.automations.conditions.kinds import CONDITION_KINDS
from appliance.automations.triggers.kinds import TRIGGER_KINDS
from appliance.cli.simulation.hub_simulations import HubSimulations
from appliance.cli.simulation.priority import NICE
from appliance.cli.simulation.process import MAX_OUTPUT_BYTES
from appliance.errors import Busy
from appliance.lua_worker.ctx_methods import CTX_METHODS
from tests.api.caller import KEY, call, request
from tests.fakes.app import LIGHT, App, open_app
from tests.fakes.lua import write
from tests.fakes.patience import until
from tests.lua import library

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAILY = """return {
  id = "daily", name = "Daily", trigger = { type = "wall_clock", time = "%s" },
  execute = function(ctx) ctx:command("elgato_lights:light:0", { capability = "power", action = "on" }) end,
}
"""
DAILY_FILE = "config/automations/daily.lua"
FROM = "2026-11-20T00:00:00Z"

CONFIG = '[adapters.elgato_lights]\nbase_url = "http://127.0.0.1:9"\n'
"""The configuration file that simulations read. The hub itself does not read it."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    root = tmp_path_factory.mktemp("home")
    for name in ("automations", "scenes", "scripts"):
        (root / "config" / name).mkdir(parents=True)
    (root / DAILY_FILE).write_text(DAILY % "12:00")
    (root / "config" / "scripts" / "tools.lua").write_text('return function(ctx) ctx:set("from_script", 1) end')
    (root / "config" / "test.toml").write_text(CONFIG)
    (root / "data").mkdir()
    async with open_app(root=root, data_dir=root / "data") as app:
        await app.post("/rooms", {"id": "hall", "name": "Hall"})
        await app.post("/groups", {"id": "all", "name": "All", "members": [LIGHT]})
        await app.post(f"/devices/{LIGHT}/room", {"room_id": "hall"})
        assert (await app.post(f"/devices/{LIGHT}/alias", {"alias": "desk"})).json["alias"] == "desk"
        await app.ask("PUT", "/variables/vacation", json={"value": True})
        yield app


async def simulated(app: App, **asked: Any) -> Any:
    answer = await app.post("/simulate", {"from": FROM, **asked})
    assert answer.status == 200, answer.json
    return answer.json


async def test_the_lines_match_lares_simulate(home: App) -> None:
    found = await simulated(home)
    assert found == {
        "lines": [{"at": "2026-11-20T12:00:00.000Z", "automation": "daily", "fired": True, "error": None}],
        "until": "2026-11-21T00:00:00.000Z",
        "is_complete": True,
    }
    assert (await simulated(home, hours=2))["lines"] == []


async def test_the_given_text_replaces_the_file(home: App) -> None:
    found = await simulated(home, path=DAILY_FILE, text=DAILY % "07:30")
    assert [line["at"] for line in found["lines"]] == ["2026-11-20T07:30:00.000Z"]
    assert home.hub.automations.catalog.get("daily").source.text == (DAILY % "12:00").encode()


async def test_lua_runs_if_asked_and_changes_nothing(home: App) -> None:
    before = (await home.device(LIGHT))["attributes"]
    lines = (await simulated(home, run=True))["lines"]
    assert lines[-1]["command"]["device_id"] == LIGHT and lines[-1]["command"]["status"] == "ok"
    assert (await home.device(LIGHT))["attributes"] == before


EVENT = """return {
  id = "moves", name = "Moves",
  trigger = { type = "device_state_change", device_id = "mqtt:hall", attribute = "motion", equals = "detected" },
  execute = function(ctx) end,
}
"""


COOLING = """return {
  id = "moves", name = "Moves", state = { cooldown_secs = 900 },
  trigger = { type = "device_state_change", device_id = "x:hall", attribute = "power", equals = "on" },
  execute = function(ctx) end,
}
"""


@pytest.mark.parametrize(
    ("start", "begin", "fires"),
    [(None, "", False), ("2026-11-20", "", True), (None, "2026-11-20T00:00 x:hall power off\n", True)],
)
async def test_stored_cooldowns_apply_only_from_the_present_time(
    start: str | None, begin: str, *, fires: bool, tmp_path: Path
) -> None:
    write(tmp_path, {"automations/moves.lua": COOLING, "test.toml": ""})
    stored = {"automation/moves": b'{"policy":{"ended_at":%d}}' % (time.time_ns() // 1_000_000)}
    asked = SimulationRequest(start=start, events=f"{begin}+1 x:hall power off\n+1 x:hall power on")
    result = await HubSimulations(tmp_path / "config" / "test.toml").simulate(asked, stored)
    assert [orjson.loads(line)["fired"] for line in result.lines] == [fires]


HOLDS_MEMORY = """return {
  id = "holds", name = "Holds", mode = { type = "parallel", max = 1000 },
  trigger = { type = "interval", every_secs = 100 },
  execute = function(ctx)
    local text = string.rep("a", 8 * 1024 * 1024)
    ctx:sleep(3000)
    return text
  end,
}
"""


async def test_the_lua_worker_of_a_simulation_has_less_memory_than_the_worker_of_the_hub(tmp_path: Path) -> None:
    """Thirty executions sleep at the same time, and hold 240 MiB."""
    write(tmp_path, {"automations/holds.lua": HOLDS_MEMORY, "test.toml": ""})
    asked = SimulationRequest(start=FROM, hours=1, runs_lua=True)
    result = await HubSimulations(tmp_path / "config" / "test.toml").simulate(asked, {})
    errors = [str(orjson.loads(line).get("error")) for line in result.lines]
    assert any("use half of the memory for Lua" in each for each in errors), errors[-3:]
    assert result.is_complete


def list_children() -> set[str]:
    found = (each.read_text().split() for each in Path("/proc/self/task").glob("*/children"))
    return {pid for pids in found for pid in pids}


@asynccontextmanager
async def endless_simulation(root: Path) -> AsyncIterator[set[str]]:
    """Simulate an endless loop within the context, and yield the new processes. Then cancel the simulation."""
    write(root, {"automations/busy.lua": "while true do end", "test.toml": ""})
    before = list_children()
    asked = HubSimulations(root / "config" / "test.toml").simulate(SimulationRequest(), {})
    simulating = asyncio.ensure_future(asked)
    await until(lambda: list_children() > before)
    yield list_children() - before
    simulating.cancel()
    await asyncio.wait({simulating})
    assert simulating.cancelled()


async def test_a_cancelled_simulation_leaves_no_process(tmp_path: Path) -> None:
    before = list_children()
    async with endless_simulation(tmp_path):
        pass
    assert list_children() <= before


async def test_a_simulation_has_a_lower_priority_than_the_hub(tmp_path: Path) -> None:
    niceness = max(NICE, os.getpriority(os.PRIO_PROCESS, 0))
    async with endless_simulation(tmp_path) as processes:
        [process] = map(int, processes)
        await until(lambda: os.getpriority(os.PRIO_PROCESS, process) == niceness)


async def test_a_simulation_writes_no_file_and_skips_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"automations/daily.lua": DAILY % "12:00", "test.toml": ""})
    config, temporary = tmp_path / "config", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in ("z", "automations/z.lua", "scripts.lua"):
        (config / name).symlink_to("/dev/zero")
    (config / "loop").symlink_to(".")
    os.mkfifo(config / "pipe")
    os.mkfifo(config / "automations" / "pipe.lua")
    with (config / "huge.bin").open("wb") as stream:
        stream.truncate(20 << 30)
    asked = SimulationRequest(
        start=FROM, path="config/automations/new.lua", text=DAILY.replace("daily", "new") % "13:00"
    )
    with socket.socket(socket.AF_UNIX) as special:
        monkeypatch.chdir(config)
        special.bind("socket")
        before = list_present(tmp_path)
        writes: list[set[Path]] = []
        simulating = asyncio.ensure_future(HubSimulations(config / "test.toml").simulate(asked, {}))
        while not simulating.done():
            writes.append(list_present(tmp_path) - before)
            await asyncio.wait({simulating}, timeout=0.01)
    lines = [orjson.loads(line) for line in (await simulating).lines]
    assert [line["automation"] for line in lines if line["fired"]] == ["daily", "new"]
    assert not set().union(*writes) and list_present(tmp_path) == before


def list_present(folder: Path) -> set[Path]:
    return {*folder.rglob("*")}


CALLS_SCRIPT = """return {
  id = "calls", name = "Calls", trigger = { type = "wall_clock", time = "12:00" },
  execute = function(ctx) ctx:log("info", require("words.of").text) ctx:run_scene("evening") end,
}
"""
SCENE = 'return { id = "evening", name = "Evening", execute = function(ctx) ctx:log("info", "%s") end }'


@pytest.mark.parametrize("folder", ["config", pytest.param("lua", marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_saved", [True, False])
@pytest.mark.parametrize(
    ("path", "text", "printed"),
    [
        ("scripts/words/of.lua", 'return { text = "new script" }', "new script"),
        ("scenes/evening.lua", SCENE % "new scene", "new scene"),
        (
            "automations/calls.lua",
            CALLS_SCRIPT.replace('require("words.of").text', '"new automation"'),
            "new automation",
        ),
    ],
)
async def test_the_given_text_replaces_a_file_of_any_folder(
    tmp_path: Path, folder: str, path: str, text: str, printed: str, *, is_saved: bool
) -> None:
    root = tmp_path / "home"
    texts = {
        "scripts/words/of.lua": 'return { text = "old" }',
        "scenes/evening.lua": SCENE % "old",
        "automations/calls.lua": CALLS_SCRIPT,
    }
    if not is_saved:
        del texts[path]
    for name, old in texts.items():
        (root / folder / name).parent.mkdir(parents=True, exist_ok=True)
        (root / folder / name).write_text(old)
    names = ("scripts", "scenes", "automations")
    write(root, {"test.toml": "".join(f'[{name}]\ndirectory = "{folder}/{name}"\n' for name in names)})
    before = list_present(tmp_path)
    asked = SimulationRequest(start=FROM, path=f"{folder}/{path}", text=text, runs_lua=True)
    result = await HubSimulations(root / "config" / "test.toml").simulate(asked, {})
    assert printed in str(result.lines), result
    assert list_present(tmp_path) == before
    assert {name: (root / folder / name).read_text() for name in texts} == texts


KIND = 'return { name = "Mine", operations = { %s = { run = function() end } }, poll = function() return {} end }'
INVOKES = DAILY % "12:00"
INVOKES = INVOKES[: INVOKES.index("ctx:command")] + 'ctx:invoke("mine:new", {}) end,\n}\n'


@pytest.mark.parametrize("is_saved", [True, False])
async def test_the_given_text_replaces_an_adapter_kind(tmp_path: Path, *, is_saved: bool) -> None:
    write(tmp_path, {"automations/daily.lua": INVOKES, "test.toml": "[adapters.mine]\n"})
    write(tmp_path, {"adapters/mine.lua": KIND % "old"} if is_saved else {})
    simulations = HubSimulations(tmp_path / "config" / "test.toml")
    for text, is_known in ((KIND % "new", True), (KIND % "other", False)):
        asked = SimulationRequest(start=FROM, path="config/adapters/mine.lua", text=text, runs_lua=True)
        lines = (await simulations.simulate(asked, {})).lines
        assert lines and (b"'mine:new' is not supported" not in lines[-1]) is is_known, lines


async def test_the_given_text_replaces_the_configuration(tmp_path: Path) -> None:
    write(tmp_path, {"automations/daily.lua": DAILY % "12:00", "test.toml": "[locale"})
    text = '[locale]\ntimezone = "Asia/Tokyo"\n'
    asked = SimulationRequest(start=FROM, path="config/test.toml", text=text)
    result = await HubSimulations(tmp_path / "config" / "test.toml").simulate(asked, {})
    assert [orjson.loads(line)["at"] for line in result.lines] == ["2026-11-20T03:00:00.000Z"]


async def test_without_free_descriptors_a_simulation_is_refused_for_now(tmp_path: Path) -> None:
    write(tmp_path, {"test.toml": ""})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(Busy, match=r"^the simulation cannot start now: Too many open files; try again later$"):
            await HubSimulations(tmp_path / "config" / "test.toml").simulate(SimulationRequest(), {})
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("form", ["text", "list"])
async def test_events_take_effect(home: App, form: str) -> None:
    events = ["00:10 mqtt:hall motion clear", "+90 mqtt:hall motion detected"]
    path = "config/automations/moves.lua"
    stated = events if form == "list" else "\n".join(events)
    found = await simulated(home, path=path, text=EVENT, events=stated, hours=1)
    assert [(line["automation"], line["at"]) for line in found["lines"]] == [("moves", "2026-11-20T00:11:30.000Z")]
    assert not (home.hub._config.root / path).exists()


async def test_a_device_can_have_hook_as_its_alias(home: App) -> None:
    events = [f"00:10 {LIGHT} power off", "00:11 hook power on", "00:12 hook power", "00:13 hook bell power on"]
    path, text = "config/automations/moves.lua", EVENT.replace("mqtt:hall", LIGHT).replace("motion", "power")
    text = text.replace("detected", "on")
    await home.post(f"/devices/{LIGHT}/alias", {"alias": "hook"})
    found = await simulated(home, path=path, text=text, events=events, hours=1)
    assert [line["at"] for line in found["lines"]] == ["2026-11-20T00:11:00.000Z"]
    await home.post(f"/devices/{LIGHT}/alias", {"alias": "desk"})
    assert (await simulated(home, path=path, text=text, events=events, hours=1))["lines"] == []


def keep(app: App, text: str | None) -> None:
    """Replace the configuration, or delete it."""
    file = Path(app.hub._config.file)
    file.unlink() if text is None else file.write_text(text)


async def test_a_home_without_a_configuration_is_simulated_and_a_faulty_one_reported(home: App) -> None:
    keep(home, None)
    assert (await simulated(home))["lines"]
    keep(home, "[api\n")
    try:
        refused = await home.post("/simulate", {"from": FROM})
        assert (refused.status, refused.json["code"]) == (400, "invalid_file"), refused.json
        assert refused.json["errors"][0]["line"] == 1
    finally:
        keep(home, CONFIG)


ENDLESS = """return {
  id = "busy", name = "Busy", trigger = { type = "interval", every_secs = 0.01 },
  execute = function(ctx) end,
}
"""


@pytest.mark.slow
async def test_a_simulation_is_bounded(home: App) -> None:
    found = await simulated(home, path="config/automations/busy.lua", text=ENDLESS, hours=8000)
    assert not found["is_complete"] and found["until"] < "2026-11-21" and len(found["lines"]) <= 10_000


def list_simulations() -> list[str]:
    """Return the ids of the simulations' processes."""
    found = []
    for pid in list_children():
        with suppress(OSError):  # the process has ended
            found += [pid] if b"simulation" in Path(f"/proc/{pid}/cmdline").read_bytes() else []
    return found


SIMULATE_ENDLESS = request(
    *("POST", "/simulate", KEY),
    body=orjson.dumps({"path": "config/automations/busy.lua", "text": ENDLESS, "hours": 8000}),
)


@pytest.mark.parametrize("is_reset", [False, True], ids=["closed", "reset"])
async def test_a_simulation_ends_with_its_client(home: App, *, is_reset: bool) -> None:
    async with call(home.url) as caller:
        await caller.send(SIMULATE_ENDLESS)
        await until(list_simulations)
        if is_reset:
            caller.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            await caller.send_last(b"")
            reply = await caller.reply()
            assert (reply.status, reply.json["code"]) == (408, "request_timeout")
    await until(lambda: not list_simulations())


async def test_a_simulation_ends_when_the_hub_stops(tmp_path: Path) -> None:
    write(tmp_path, {"test.toml": CONFIG})
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(open_app(root=tmp_path, limits=ApiLimits(stop_secs=3600)))
        async with call(app.url) as caller:
            await caller.send(SIMULATE_ENDLESS)
            await until(list_simulations)
            async with asyncio.timeout(20):
                await stack.aclose()
            reply = await caller.reply()
    assert (reply.status, reply.json["code"]) == (400, "stopping")


WORDY = """return {
  id = "wordy", name = "Wordy", trigger = { type = "interval", every_secs = 60 },
  execute = function(ctx)
    for i = 1, 30 do ctx:log("info", string.rep("x", 8000), { large = string.rep("\\1", 1000) }) end
  end,
}
"""


async def test_the_lines_of_a_simulation_are_bounded_in_bytes(home: App) -> None:
    answer = await home.post("/simulate", {"path": "config/automations/wordy.lua", "text": WORDY, "run": True})
    assert answer.status == 200 and not answer.json["is_complete"]
    sizes = [len(json.dumps(line)) for line in answer.json["lines"]]
    assert MAX_OUTPUT_BYTES - 20_000 < sum(sizes) <= MAX_OUTPUT_BYTES


async def test_a_simulation_logs_nothing(home: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    text = DAILY.replace("ctx:command(", 'error("boo") ctx:command(') % "07:30"
    assert "boo" in (await simulated(home, path=DAILY_FILE, text=text, run=True))["lines"][-1]["error"]
    assert "boo" not in str((await home.get("/diagnostics/log")).json)


async def test_completions_list_the_names_for_a_file(home: App) -> None:
    found = (await home.get("/completions")).json
    light = next(each for each in found["devices"] if each["id"] == LIGHT)
    assert light["alias"] == "desk" and light["room"] == "hall"
    assert {"power", "brightness"} <= {*light["attributes"]} and light["events"] == []
    assert {"power", "brightness"} <= {each["capability"] for each in light["commands"]}
    assert found["rooms"] == [{"id": "hall", "name": "Hall"}] and found["groups"] == [{"id": "all", "name": "All"}]
    assert found["variables"] == ["from_script", "vacation"] and found["timers"] == []
    assert "elgato_lights:identify" in found["operations"]
    methods = {each["name"]: each for each in found["ctx"]}
    assert methods.keys() == {*CTX_METHODS, "log"}
    assert methods["notify"]["arguments"] == ["message", "fields?"]
    assert all(each["description"] for each in found["ctx"])
    declared = library.read().classes
    assert found["automation"] == [*declared["Automation"]]
    assert found["types"].keys() == {*TRIGGER_KINDS, *CONDITION_KINDS}
    assert found["types"]["wall_clock"] == [name for name in declared["WallClock"] if name != "type"]
