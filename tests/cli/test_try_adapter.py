"""`lares try-adapter`: a poll without a hub, a recording without secrets, and the replay of the recording without
the device."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web

from appliance.adapters.simulated_device import SimulatedDevice
from tests.adapters.lua_kinds.simulators import Tasmota
from tests.cli.homes import everything
from tests.fakes.lua import write
from tests.fakes.process import ROOT

PASSWORD = "pw-9f/3a"
ON = '{"capability": "power", "action": "on"}'


async def lares(folder: Path, *words: str) -> tuple[int, str]:
    """Run the command. Return the exit code and the output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "appliance",
        *words,
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


@pytest.mark.slow
async def test_a_poll_and_a_command_are_shown_recorded_and_replayed(tmp_path: Path) -> None:
    settings = ("--set", f"password={PASSWORD}")
    async with Tasmota(password=PASSWORD) as vendor:
        url = ("--set", f"base_url={vendor.url}")
        more = ("--command", "relay:1", ON, "--record", "it.json")
        code, output = await lares(tmp_path, "try-adapter", "tasmota_http", *url, *settings, *more)
    assert code == 0, output
    assert "request: GET /cm → 200" in output and 'power = "on"' in output and "done: power on" in output
    recording = (tmp_path / "it.json").read_text()
    for form in (PASSWORD, "pw-9f%2F3a"):
        assert form not in recording + output
    assert json.loads(recording)["settings"]["password"] == "***"
    assert (tmp_path / "it.json").stat().st_mode & 0o777 == 0o600

    code, output = await lares(tmp_path, "try-adapter", "tasmota_http", "--replay", "it.json")
    assert code == 0 and "tasmota_http:relay:1" in output, output
    async with Tasmota() as vendor:
        url = ("--set", f"base_url={vendor.url}")
        code, output = await lares(tmp_path, "try-adapter", "tasmota_http", *url, "--record", "it.json")
    assert code == 0 and (tmp_path / "it.json").read_text() != recording, "a recording can be replaced"


@pytest.mark.slow
async def test_a_recording_overwrites_no_other_file(tmp_path: Path) -> None:
    write(tmp_path, {"default.toml": "", "adapters/mine.lua": "return {}"})
    (tmp_path / "data").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    before = everything(tmp_path)
    for name in ("config/default.toml", "config/adapters/mine.lua", "pipe", "folder", "/dev/null", "data/x"):
        code, output = await lares(tmp_path, "try-adapter", "shelly", "--set", "base_url=http://x", "--record", name)
        assert code == os.EX_CANTCREAT and output.startswith(f"lares: {name} "), output
        reason = (
            "the data directory" if name == "data/x" else "exists already and is not a recording; choose another path"
        )
        assert reason in output
    assert everything(tmp_path) == before


SECRETS: dict[str, Any] = {"api_key": 'k"9/é &f3a', "token": "tok+77/=x1", "pin": 987654}
LEAKY = """return {
  name = "Leaky",
  settings = { api_key = { type = "string" }, pin = { type = "integer", secret = true, max = 999999 } },
  poll = function(ctx)
    local key, token, pin = ctx.settings.api_key, ctx.settings.token, ctx.settings.pin
    ctx:log("warn", "with " .. key .. token, { pin = pin .. "", deep = { json.encode({ key }) } })
    ctx:http { method = "POST", path = "/echo", query = { a = key, b = token }, json = { key = key, pin = pin } }
    ctx:http { method = "POST", path = "/echo", form = { key = key, pin = pin }, headers = { ["X-Key"] = token } }
    ctx:http { method = "POST", path = "/echo", body = "\\xff" .. crypto.base64.encode(token) .. key .. "\\0" }
    error("raised " .. key .. " and " .. token .. " and " .. pin .. " and " .. crypto.base64.encode(key))
  end,
}"""


class Echo(SimulatedDevice):
    """Echoes its requests, like a vendor that logs everything."""

    content_type = "text/plain"

    def _routes(self) -> Iterable[web.RouteDef]:
        return [web.post("/echo", self._echo)]

    def _note(self, request: web.Request, body: bytes) -> None: ...

    async def _echo(self, request: web.Request) -> web.Response:
        reported = {"path": str(request.rel_url), **request.headers}
        body = await request.read()
        return web.Response(body=json.dumps(reported).encode() + html.escape(SECRETS["api_key"]).encode() + body)


@pytest.mark.slow
async def test_a_secret_of_toml_and_of_a_file_is_in_no_line_and_no_recording(tmp_path: Path) -> None:
    write(tmp_path, {"adapters/mine.lua": LEAKY, "token": SECRETS["token"] + "\n"})
    async with Echo() as vendor:
        stated = f"api_key = {json.dumps(SECRETS['api_key'])}\npin = {SECRETS['pin']}\ntoken_file = 'config/token'\n"
        section = f"[adapters.it]\ntype = 'mine'\nbase_url = '{vendor.url}'\n{stated}"
        (tmp_path / "config" / "default.toml").write_text(section)
        code, output = await lares(tmp_path, "try-adapter", "it", "--record", "it.json")
        assert code == os.EX_UNAVAILABLE and "raised *** and *** and *** and ***" in output, output
        assert len(vendor.requests) == 3
    recording = json.loads((tmp_path / "it.json").read_text())
    raw = [base64.b64decode(each["request"]["body"]["base64"]) for each in recording["exchanges"][2:]]
    shown = output + (tmp_path / "it.json").read_text() + str(raw)
    shown += str([base64.b64decode(recording["exchanges"][2]["response"]["body"]["base64"])])
    for secret in map(str, SECRETS.values()):
        packed = base64.b64encode(secret.encode()).decode()
        for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], html.escape(secret), packed):
            assert form not in shown, form
    (tmp_path / "config" / "default.toml").write_text(section.replace("987654", "9876543"))
    code, output = await lares(tmp_path, "check")
    assert (
        code == os.EX_CONFIG
        and "default.toml:5: adapters.it.pin must be of type integer" in output
        and "987" not in output
    )


CHATTY = """return {
  name = "Chatty", settings = { pin = { type = "integer", secret = true, min = 1000 }, flag = { type = "boolean" } },
  listen = { path = "/ws", reply = "id", receive = function() end },
  poll = function(ctx)
    local path = "/" .. ctx.settings.pin .. "/"
    local answer = ctx:http { path = path, query = { a = ctx.settings.pin } }.status
    local level = ctx.settings.flag and ctx:ask({ n = 1 }).n
    return { { id = "a", kind = "Sensor", attributes = { battery = level or nil, ["custom.it.status"] = answer } } }
  end,
}"""


@pytest.mark.slow
async def test_a_kind_that_listens_is_connected_and_a_secret_number_replays(tmp_path: Path) -> None:
    write(tmp_path, {"adapters/mine.lua": CHATTY})
    async with Chatty() as vendor:
        stated = ("--set", f"base_url={vendor.url}", "pin=54321", "flag=true")
        code, output = await lares(tmp_path, "try-adapter", *stated, "mine", "--record", "it.json")
    assert code == 0 and "battery = 71" in output and "request: GET /***/ → 201" in output, output
    assert '    query: {"a":"***"}' in output and '    response: {"answer": "***"}' in output
    assert "54321" not in output + (tmp_path / "it.json").read_text()
    went = ('sent over the connection: {"n":1,"id":1}', 'received over the connection: {"id": 1, "n": 71}')
    assert all(each in output for each in went), output
    for flag in ("true", "false"):
        code, output = await lares(tmp_path, "try-adapter", "mine", "--replay", "it.json", "--set", f"flag={flag}")
        assert code == 0 and "custom.it.status = 201" in output, output
        assert ("battery = 71" in output) is (flag == "true"), output


SSE_KIND = """return { name = "Told", listen = { path = "/events", kind = "sse", receive = function(ctx, message)
  local shown = { battery = message.data.n }
  return { devices = { { id = "a", kind = "Sensor", name = message.event, attributes = shown } } }
end } }"""


@pytest.mark.slow
async def test_pushed_values_are_shown_recorded_and_replayed(tmp_path: Path) -> None:
    write(tmp_path, {"adapters/mine.lua": SSE_KIND})
    async with Chatty() as vendor:
        stated = ("--set", f"base_url={vendor.url}", "token=wonderful", "--record", "it.json")
        shown = [await lares(tmp_path, "try-adapter", "mine", *stated)]
    shown.append(await lares(tmp_path, "try-adapter", "mine", "--replay", "it.json"))
    for code, output in shown:
        assert code == 0 and "mine:a  level" in output and "battery = 71" in output, output
    assert "wonderful" not in (tmp_path / "it.json").read_text() + shown[0][1]


class Chatty(SimulatedDevice):
    """A WebSocket that answers each question, and a page."""

    content_type = "application/json"

    def _routes(self) -> Iterable[web.RouteDef]:
        routes = [web.get("/ws", self._talk), web.get("/events", self._push)]
        return [*routes, web.get("/{path:.*}", self._page)]

    def _note(self, request: web.Request, body: bytes) -> None: ...

    async def _page(self, request: web.Request) -> web.Response:
        return web.json_response({"answer": request.query["a"]}, status=201)

    async def _push(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'event: level\ndata: {"n": 71, "by": "wonderful"}\n\n')
        await asyncio.Event().wait()
        return response

    async def _talk(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_json({"id": message.json()["id"], "n": 71})
        return socket


@pytest.mark.slow
async def test_an_error_is_a_sentence_and_an_exit_code(tmp_path: Path) -> None:
    unreachable = await lares(tmp_path, "try-adapter", "shelly", "--set", "base_url=http://127.0.0.1:1")
    assert unreachable[0] == os.EX_UNAVAILABLE and "does not answer (connection refused)" in unreachable[1]
    code, output = await lares(tmp_path, "try-adapter", "shelly", "--set", "bse_url=http://127.0.0.1:1")
    assert code == os.EX_CONFIG and "bse_url is not a setting of the kind shelly; did you mean" in output
    for text in ("{", "7", '{"capability": "power", "action": "explode"}'):
        code, output = await lares(tmp_path, "try-adapter", "shelly", "--command", "a", text)
        assert code == os.EX_USAGE and "lares: --command" in output, (text, output)
    code, output = await lares(tmp_path, "try-adapter", "mqtt")
    assert code == os.EX_USAGE and "mqtt is neither a Lua kind" in output
    rows = ('{"exchanges": [7]}', '{"exchanges": [], "messages": [{"sent": true}]}')
    for text in ("[]", "5", '{"settings": null, "exchanges": []}', '{"settings": [5]}', "{", *rows):
        (tmp_path / "odd.json").write_text(text)
        code, output = await lares(
            tmp_path, "try-adapter", "shelly", "--set", "base_url=http://x", "--replay", "odd.json"
        )
        assert code == os.EX_DATAERR and "not a recording of lares try-adapter" in output, (text, output)
    (tmp_path / "odd.json").write_text("{}")
    code, output = await lares(tmp_path, "try-adapter", "shelly", "--replay", "odd.json")  # base_url is also missing
    assert code == os.EX_DATAERR and "odd.json is not a recording of lares try-adapter" in output, output
    (tmp_path / "config" / "adapters").mkdir(parents=True)
    (tmp_path / "config" / "default.toml").touch()
    (tmp_path / "config" / "adapters" / "mine.lua").write_text("return {\n  name = 'x',\n  poll = 7,\n}\n")
    code, output = await lares(tmp_path, "try-adapter", "mine")
    assert code == os.EX_CONFIG and "config/adapters/mine.lua:3: poll must be a function, not 7" in output
    quiet = {
        '{ name = "x", hook = print }': (os.EX_OK, "the kind has neither the function `poll` nor the field `listen`"),
        '{ name = "x", listen = { path = "/", receive = print }, poll = function() return {} end }': (
            os.EX_OK,
            "the device did not accept the connection within 3 s",
        ),
        '{ name = "x", listen = { path = "/", receive = print } }': (
            os.EX_UNAVAILABLE,
            "mine: the device did not accept the connection within 3 s",
        ),
    }
    for text, expected in quiet.items():
        (tmp_path / "config" / "adapters" / "mine.lua").write_text(f"return {text}")
        code, output = await lares(tmp_path, "try-adapter", "mine", "--set", "base_url=http://127.0.0.1:1")
        assert (code, expected[1] in output) == (expected[0], True), output
    endless = "return {\n  name = 'x',\n  poll = function() while true do end end,\n}\n"
    (tmp_path / "config" / "adapters" / "mine.lua").write_text(endless)
    code, output = await lares(tmp_path, "try-adapter", "mine")
    # on a busy machine, the poll's limit ends before the limit of the processor time
    stopped = r":3: used 2 s of processor time without waiting and was stopped \(the limit of a kind in Lua\)"
    sentence = rf"mine\.lua({stopped}|(:3)?: poll took longer than 5 s)"
    assert code == os.EX_UNAVAILABLE and re.search(sentence, output), output
