"""`python -m benchmarks._peers NAME`: servers that are compared with the hub, or that simulate the hub's devices.

Each server prints its ports on one line, and runs until its process is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import aiohttp
import aiomqtt
import orjson
from msgspec import Struct
from msgspec.json import Decoder
from sanic import Request, Sanic
from sanic.response import HTTPResponse, raw

from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from tests.fakes.wled import WledSimulator


async def serve_fixed(_: list[str]) -> None:
    """With bare Sanic and without API keys, serve the bytes from standard input."""
    body = await asyncio.to_thread(sys.stdin.buffer.read)
    app: Sanic[Any, Any] = Sanic("fixed", configure_logging=False)

    @app.get("/")
    async def answer(request: Request) -> HTTPResponse:
        return raw(body, content_type="application/json")

    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.bind(("127.0.0.1", 0))
    server = await app.create_server(sock=bound, access_log=False, return_asyncio_server=True)
    assert server is not None
    await server.startup()
    _print_line(bound.getsockname()[1])
    await server.serve_forever()


async def serve_lamps(arguments: list[str]) -> None:
    """Serve lights, each at its own address. The arguments are the number of lights, and the number of lamps per
    light."""
    each = [SimulatedLight(temperature=213)] * int(arguments[1])
    lights = [LightSimulator(lights=each) for _ in range(int(arguments[0]))]
    for light in lights:
        await light.__aenter__()
    _print_line(*(light.port for light in lights))
    await asyncio.Event().wait()


async def serve_strip(_: list[str]) -> None:
    """Serve a WLED strip and two control ports. Each byte sent to a control port makes the strip push another
    brightness.

    A push through the second port takes a tenth of the time, because its frames are encoded in advance and sent at
    once.
    """
    strip = WledSimulator(segments=1)
    await strip.__aenter__()
    frames = list[bytes]()
    for brightness in range(5, 255, 5):
        text = orjson.dumps({"state": {**strip.state, "bri": brightness}, "info": strip.info})
        frames.append(b"\x81\x7e%b%b" % (len(text).to_bytes(2, "big"), text))
    due = itertools.cycle(frames)

    async def push(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while taken := await reader.read(1):
            strip.state["bri"] = strip.state["bri"] % 250 + 5 * len(taken)
            await strip.push()
        writer.close()

    async def push_many(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while taken := await reader.read(64):
            data = b"".join(itertools.islice(due, len(taken)))
            for each in strip._sockets:  # noqa: SLF001 - past what aiohttp would do for each message
                transport: Any = each._req.transport  # type: ignore[union-attr]  # noqa: SLF001
                transport.write(data)
        writer.close()

    servers = [await asyncio.start_server(each, "127.0.0.1", 0) for each in (push, push_many)]
    _print_line(strip.port, *(each.sockets[0].getsockname()[1] for each in servers))
    await asyncio.Event().wait()


async def serve_broadcast(arguments: list[str]) -> None:
    """Whenever the strip at the given port pushes, send the strip's state to each reader, as the hub's frame."""
    loop, readers = asyncio.get_running_loop(), set[asyncio.Transport]()
    server = await loop.create_server(lambda: _Reader(readers), "127.0.0.1", 0)
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"http://127.0.0.1:{arguments[0]}/ws") as pushes,
    ):
        await pushes.receive()  # the strip first sends its current state
        _print_line(server.sockets[0].getsockname()[1])
        async for push in pushes:
            frame = _frame_of(_PUSH.decode(push.data).state)
            for reader in readers:
                reader.write(frame)


class _StripState(Struct):
    on: bool
    bri: int


class _Push(Struct):
    state: _StripState


_PUSH = Decoder(_Push)


def _frame_of(strip: _StripState) -> bytes:
    """Return the WebSocket frame that the hub sends for this state of a strip."""
    state = {"power": "on" if strip.on else "off", "brightness": round(strip.bri * 100 / 255), "state": "online"}
    text = orjson.dumps({"type": "device.state_changed", "id": "strip:light", "state": state})
    return b"\x81%c%b" % (len(text), text)


async def serve_polls(arguments: list[str]) -> None:
    """At a fixed interval, read the state of the lamp at each port. Print the process id.

    The first argument is the interval in seconds. The second argument is the number of seconds for which connections
    are kept open.
    """
    poll_secs, keep_secs, *ports = map(int, arguments)
    connector = aiohttp.TCPConnector(keepalive_timeout=keep_secs, limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def poll(port: int) -> None:
            while True:
                async with session.get(f"http://127.0.0.1:{port}/elgato/lights") as answer:
                    json.loads(await answer.read())
                await asyncio.sleep(poll_secs)

        _print_line(os.getpid())
        await asyncio.gather(*map(poll, ports))


async def serve_states(arguments: list[str]) -> None:
    """With bare aiomqtt, read JSON below a broker's topic. Print the process id."""
    port, user, password, topic = arguments
    async with aiomqtt.Client("127.0.0.1", int(port), username=user, password=password) as client:
        await client.subscribe(topic)
        _print_line(os.getpid())
        async for message in client.messages:
            with contextlib.suppress(ValueError):  # skip the sender's own state, which is not JSON
                json.loads(message.payload)


async def serve_reporting_lamp(_: list[str]) -> None:
    """Serve a lamp, and a second port whose clients receive a byte for each write to the lamp."""
    watchers = set[asyncio.Transport]()
    lamp = _ReportingLamp(watchers)
    await lamp.__aenter__()
    server = await asyncio.get_running_loop().create_server(lambda: _Reader(watchers, b""), "127.0.0.1", 0)
    _print_line(lamp.port, server.sockets[0].getsockname()[1])
    await asyncio.Event().wait()


async def serve_rule(arguments: list[str]) -> None:
    """Whenever the strip pushes, request a command from a Lua worker, read the lamp, and write its changed state.

    The worker is a process with bare lupa, connected by a pipe. Like the hub's worker, it receives the event and
    sends the command as JSON. Print the process id.
    """
    strip, lamp = map(int, arguments)
    url = f"http://127.0.0.1:{lamp}/elgato/lights"
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", RULE_WORKER, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert worker.stdin is not None and worker.stdout is not None
    async with aiohttp.ClientSession() as session, session.ws_connect(f"http://127.0.0.1:{strip}/ws") as pushes:
        await pushes.receive()
        _print_line(os.getpid())
        async for push in pushes:
            event = {
                "device_id": "strip:light",
                "attribute": "brightness",
                "value": _PUSH.decode(push.data).state.bri,
            }
            worker.stdin.write(orjson.dumps(event) + b"\n")
            command = orjson.loads(await worker.stdout.readline())
            async with session.get(url) as answer:
                state = orjson.loads(await answer.read())
            state["lights"][0][command["capability"]] = command["value"]
            async with session.put(url, json=state) as answer:
                orjson.loads(await answer.read())


RULE_WORKER = '''
import orjson, sys
from lupa.lua54 import LuaRuntime
lua = LuaRuntime()
rule = lua.eval("""function(command, event)
  command("lamp:light", { capability = "brightness", action = "set", value = event.value * 100 // 255 })
end""")
def command(device_id, arguments):
    print(orjson.dumps({"device_id": device_id, **arguments}).decode(), flush=True)
for line in sys.stdin:
    rule(command, lua.table_from(orjson.loads(line)))
'''


class _ReportingLamp(LightSimulator):
    def __init__(self, watchers: set[asyncio.Transport]) -> None:
        super().__init__(lights=[SimulatedLight(temperature=213)])
        self._watchers = watchers

    def _merge(self, changes: list[dict[str, float]]) -> None:
        super()._merge(changes)
        for each in self._watchers:
            each.write(b".")


class _Reader(asyncio.Protocol):
    """A reader that first receives a greeting. By default, the greeting is a hub's confirmation of the
    subscription."""

    def __init__(self, readers: set[asyncio.Transport], greeting: bytes = b"HTTP/1.1 101 \r\n\r\n") -> None:
        self._readers, self._greeting = readers, greeting

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._readers.add(transport)
        transport.write(self._greeting)

    def connection_lost(self, error: Exception | None) -> None:
        self._readers.discard(self._transport)


PEERS: Mapping[str, Callable[[list[str]], Coroutine[None, None, None]]] = {
    "broadcast": serve_broadcast,
    "fixed": serve_fixed,
    "lamps": serve_lamps,
    "polls": serve_polls,
    "rule": serve_rule,
    "states": serve_states,
    "strip": serve_strip,
    "reporting_lamp": serve_reporting_lamp,
}


def _print_line(*ports: int) -> None:
    print(*ports, flush=True)


if __name__ == "__main__":
    asyncio.run(PEERS[sys.argv[1]](sys.argv[2:]))
