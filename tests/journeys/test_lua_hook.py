"""A kind in Lua that is called: what `POST /hooks/<section>` brings goes to the file's `hook`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.lua_kinds.bench import section
from tests.fakes.house import open_house
from tests.fakes.lua import write
from tests.fakes.patience import until_async

pytestmark = pytest.mark.slow

KIND = """return {
  name = "Bell",
  hook = function(ctx, request)
    if request.query.bad then local x = nil return x.y end
    ctx.memory.rings = (ctx.memory.rings or 0) + 1
    return {
      devices = { { id = "bell", kind = "Sensor", name = request.method .. " " .. ctx.memory.rings,
        attributes = { battery = request.data and request.data.battery } } },
      events = { { id = "bell", event = "ring" } },
    }
  end,
}"""


async def test_what_a_hook_brings_shows_and_a_fault_of_the_file_is_a_sentence(tmp_path: Path) -> None:
    write(tmp_path, {"adapters/bell.lua": KIND})
    adapters = {"door": section("bell", {}, "door")}
    async with open_house(adapters=adapters, root=tmp_path) as house:
        made = (await house.post("/auth/keys", {"label": "bell", "role": "hook", "hook": "door"})).json
        assert "warning" not in made, made
        async with house.stream() as frames:
            answer = await house.post("/hooks/door", {"battery": 71}, token=made["key"])
            assert answer.status == 200, answer
            assert (await frames.until("device.event"))[-1]["event"] == "ring"
        shown = await house.device("door:bell")
        assert (shown["name"], shown["attributes"]["battery"]) == ("POST 1", 71)
        assert (await house.get("/hooks/door", token=made["key"])).status == 200
        assert (await house.device("door:bell"))["name"] == "GET 2"
        refused = await house.post("/hooks/door?bad=1", {}, token=made["key"])
        assert refused.status == 400 and "bell.lua:4: attempt to index a nil value" in refused.json["error"]

        write(tmp_path, {"adapters/bell.lua": KIND.replace("hook = function", "poll = function")})
        await house.post("/adapters/reload")

        async def gone() -> bool:
            return bool((await house.post("/hooks/door", {}, token=made["key"])).status == 404)

        await until_async(gone)
