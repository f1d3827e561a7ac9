"""Timers of a hub that is killed again and again: each fires, and what its run does is done at most once."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path

import pytest

from tests.fakes.lua import write
from tests.fakes.process import Process, configure, running

TIMERS = 90
SPREAD_SECS = 3.0

STARTER = f"""return {{ id = "starter", name = "starter", trigger = {{ type = "timer", name = "never" }},
  execute = function(ctx, event)
    for number = 1, {TIMERS} do
      ctx:start_timer("t" .. number, 0.2 + {SPREAD_SECS} * number / {TIMERS}, {{ number = number }})
    end
  end }}"""

FIRED = f"""local triggers = {{}}
for number = 1, {TIMERS} do triggers[number] = {{ type = "timer", name = "t" .. number }} end
return {{ id = "fired", name = "fired", triggers = triggers, mode = {{ type = "parallel", max = {TIMERS} }},
  execute = function(ctx, event)
    local name = "done." .. event.payload.number
    ctx:set(name, (ctx:get(name) or 0) + 1, {{ durable = true }})
  end }}"""


async def until_fired(hub: Process, count: int) -> None:
    """Wait until so many timers have fired in this life of the hub, or all."""
    async with asyncio.timeout(30):
        while len(fired(hub.log)) < count and await hub.get("/timers"):
            pass


def fired(log: Path) -> list[int]:
    """The timers that have fired in this life; the log tells so before their ends are on the card."""
    return [int(number) for number in re.findall(r"timer 't(\d+)' is over", log.read_text())]


async def rest(hub: Process) -> None:
    """Wait until nothing runs."""
    async with asyncio.timeout(30):
        while (await hub.get("/diagnostics"))["automations"]["running"]:
            pass


async def done(hub: Process) -> dict[int, int]:
    """How often each timer's run did what it does."""
    reported = {each["name"]: each["value"] for each in await hub.get("/variables")}
    return {int(name.removeprefix("done.")): count for name, count in reported.items()}


@pytest.mark.slow
@pytest.mark.parametrize("kills", [100])
async def test_no_timer_acts_twice_or_never_fires_over_kills_at_any_moment(kills: int, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    configure(tmp_path, '[logging]\nlevel = "debug"\n')
    write(tmp_path, {"automations/starter.lua": STARTER, "automations/fired.lua": FIRED})
    seen: set[int] = set()
    lives = 0
    for number in range(kills):
        async with running(tmp_path) as hub:
            await hub.post("/automations/reload")  # it may have crashed too often to run any
            if not await hub.get("/timers"):
                if seen:
                    await rest(hub)
                    await check(hub, seen | set(fired(hub.log)), lives)
                seen, lives = set(), 0
                hub.log.write_text("")
                status, answer = await hub.ask("POST", "/automations/starter/execute")
                assert (status, answer["status"]) == (200, "ok"), answer
            await until_fired(hub, moments.randrange(1, TIMERS // 8))
            await asyncio.sleep(moments.uniform(0, 0.01))
            await hub.kill()
            seen |= set(fired(hub.log))
            lives += 1
            print(f"kill {number}: {len(fired(hub.log))} had fired")
    async with running(tmp_path) as hub:
        await hub.post("/automations/reload")
        await until_fired(hub, TIMERS)
        await rest(hub)
        last = set(fired(hub.log))
        assert last <= (await done(hub)).keys(), "what was not killed did what it does"
        await check(hub, seen | last, lives)


async def check(hub: Process, seen: set[int], lives: int) -> None:
    """All timers are over: each has fired, and none has acted twice; then forget what they did."""
    counts = await done(hub)
    assert set(counts.values()) <= {1}, {name: count for name, count in counts.items() if count != 1}
    assert seen == set(range(1, TIMERS + 1)), set(range(1, TIMERS + 1)) - seen
    print(f"all {TIMERS} fired in {lives} lives, {TIMERS - len(counts)} were killed before they acted")
    for number in counts:
        assert (await hub.ask("DELETE", f"/variables/done.{number}"))[0] == 204
