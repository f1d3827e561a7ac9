"""A device whose adapter kind is written in Lua sends floods, compression bombs, and endless answers.

The hub logs one line, and the other device keeps working.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

import pytest

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.elgato_lights.kind import ELGATO_LIGHTS, ElgatoLights
from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.kinds import LUA_KIND
from appliance.clock import Clock
from appliance.home import events
from appliance.home.bus import Bus
from tests.adapters.lua_kinds.bench import open_kinds, section
from tests.attacks.hostile_vendor import BODIES, SOCKETS, STREAMS
from tests.fakes.context import context_of
from tests.fakes.patience import until
from tests.fakes.process import ROOT

pytestmark = pytest.mark.slow

LISTENING = """return {{ name = "Attacked", poll = function() return {{ {{ id = "lamp", kind = "Light" }} }} end,
  listen = {{ path = "{path}", kind = "{kind}", max_message_kb = 64, receive = function(ctx, message)
    return {{ devices = {{ {{ id = "lamp", kind = "Light", attributes = {{ brightness = 7 }} }} }} }} end }} }}"""
POLLED = """return {{ name = "Attacked", poll = function(ctx)
    local answer = ctx:http {{ path = "{path}", timeout_secs = 1 }}
    return {{ {{ id = "lamp", kind = "Light", name = #answer.body .. "" }} }}, 1 end }}"""


@contextmanager
def hostile_vendor(messages: int) -> Iterator[str]:
    """Start the vendor in its own process, and yield its address. `messages` is the number of messages of a flood."""
    command = [sys.executable, "-m", "tests.attacks.hostile_vendor"]
    environment = {**os.environ, "HOSTILE_MESSAGES": str(messages)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as vendor:
        try:
            assert vendor.stdout is not None
            yield f"http://127.0.0.1:{int(vendor.stdout.readline())}"
        finally:
            vendor.kill()


class Neighbours(NamedTuple):
    """A running lamp adapter that sets `answered` at each poll, and an adapter in Lua that the test starts."""

    lamp: AdapterRunner
    answered: asyncio.Event
    victim: AdapterRunner


@asynccontextmanager
async def neighbours(url: str, path: str, lamp_url: str) -> AsyncIterator[Neighbours]:
    """Start a lamp adapter, and an adapter that requests this path or listens at it."""
    is_listening = path in SOCKETS or path in STREAMS
    kind = "websocket" if path in SOCKETS else "sse"
    text = (LISTENING if is_listening else POLLED).format(path=path, kind=kind)
    stated = section("attacked", {"base_url": url, "poll_interval_secs": 1})
    answered, bus = asyncio.Event(), Bus()
    bus.listen(lambda _: answered.set(), events.AdapterAnswered)
    async with DeviceSession() as session, open_kinds(stated, text) as kinds:
        settings = ElgatoLights(base_url=lamp_url, poll_interval_secs=1)
        lamp = AdapterRunner(
            lambda given: ELGATO_LIGHTS.build(settings, given), context_of("lamp", session, Clock(), bus=bus)
        )
        victim = AdapterRunner(
            lambda given: LUA_KIND.build(stated, given), context_of("it", session, Clock(), kinds=kinds)
        )
        async with lamp:
            await until(answered.is_set)
            yield Neighbours(lamp, answered, victim)


@pytest.mark.parametrize("path", [*BODIES, *STREAMS, *SOCKETS])
async def test_an_attack_is_one_line_without_effect_on_neighbours(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with hostile_vendor(20_000) as url:
        async with LightSimulator() as lamp, neighbours(url, path, lamp.url) as (_, answered, victim), victim:
            await asyncio.sleep(1.5)
            answered.clear()
            await until(answered.is_set)
    sentence = [each.getMessage() for each in caplog.records if each.levelname in ("WARNING", "ERROR")]
    assert len(sentence) <= 1 and all(each.startswith("it: ") and "\n" not in each for each in sentence), sentence
