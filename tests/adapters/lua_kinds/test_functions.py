"""Arguments, results, and faults of the functions of a kind."""

from __future__ import annotations

import asyncio
import base64
import gc
import hashlib
import hmac
import logging
import re
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.base import HookRequest
from appliance.adapters.device_http.client import HttpResponse
from appliance.adapters.lua_kinds.adapter import LuaAdapter
from appliance.adapters.lua_kinds.crypto import compute
from appliance.adapters.lua_kinds.ctx import KindCtx
from appliance.adapters.lua_kinds.device_reader import MAX_DEVICES
from appliance.adapters.lua_kinds.json_and_xml import MAX_JSON_MARKS, compact_json
from appliance.adapters.lua_kinds.kept_texts import MAX_KEPT_WRITES
from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.errors import AdapterFailed, BadAnswer, ConfigFailed, Invalid, Unanswered, Unreachable, Unreadable
from appliance.home import events
from appliance.home.bus import Bus
from appliance.lua.kind_catalog import build_kind_catalog
from appliance.lua.running.run_limits import RunLimits
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua.text.undefined_names import find_undefined
from appliance.lua_worker.ctx_methods import KIND_METHODS
from tests.adapters.lua_kinds.bench import GONE, Vendor, start
from tests.lua.bench import open_pool

pytestmark = pytest.mark.asyncio(loop_scope="module")

SWITCH = '{ { capability = "power", actions = { "on", "off", "toggle" } } }'
DEVICE = f'{{ id = "a", kind = "Switch", attributes = {{ power = "off" }}, commands = {SWITCH} }}'


def kind(poll: str = f"return {{ {DEVICE} }}", more: str = "") -> str:
    return f'return {{ name = "Mine", {more} poll = function(ctx)\n{poll}\nend }}'


async def test_memory_is_kept_and_concurrent_changes_are_merged(pool: WorkerPool, tmp_path: Path) -> None:
    named = '{ { id = "a", kind = "Sensor", name = tostring(ctx.memory.n) } }'
    count = f"ctx.memory.n = (ctx.memory.n or 0) + 1 return {named}"
    it = await start(pool, tmp_path, kind(count), Vendor({}))
    await it.poll()
    assert (await it.poll())["a"].name == "2"
    it.adapter.functions.remember({"n": 2, "gone": 1}, {"n": 3})
    assert it.adapter.functions.memory == {"n": 3}
    it.adapter.functions.remember({}, {"token": "x"})
    assert it.adapter.functions.memory == {"n": 3, "token": "x"}


async def test_ctx_has_every_method_that_hints_name(pool: WorkerPool, tmp_path: Path) -> None:
    poll = """local names = {}
      for name, each in pairs(ctx) do if type(each) == "function" then names[#names + 1] = name end end
      return { { id = "a", kind = "Sensor", name = table.concat(names, " ") } }"""
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    assert set((await it.poll())["a"].name.split()) == KIND_METHODS


class SilentVendor(Vendor):
    """A device that never answers. `is_asked` is set by the first request."""

    is_asked = asyncio.Event()

    async def exchange(self, request: WebRequest) -> HttpResponse:
        self.is_asked.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_slow_hub_is_not_an_outage_of_the_device(pool: WorkerPool, tmp_path: Path) -> None:
    vendor = SilentVendor({})
    it = await start(pool, tmp_path, kind('ctx:http { path = "/" } return {}'), vendor)
    other = asyncio.create_task(it.adapter.poll())
    await vendor.is_asked.wait()
    publishing = asyncio.create_task(it.adapter.run_limited(asyncio.sleep(60), 0.1))
    await asyncio.sleep(0)
    other.cancel()  # while it waits for the device
    with pytest.raises(AdapterFailed, match=r"publishing took longer than 0\.1 s, excluding the wait") as failed:
        await publishing
    assert not isinstance(failed.value, Unreachable)
    with pytest.raises(Unreachable):
        await it.adapter.run_limited(it.adapter.poll(), 1)


async def test_after_a_request_a_function_no_longer_waits_for_the_device(pool: WorkerPool, tmp_path: Path) -> None:
    def cancel(asked: WebRequest) -> None:
        raise asyncio.CancelledError

    it = await start(pool, tmp_path, kind(), Vendor({"/": cancel}))
    ctx = KindCtx("it", it.vendor, it.adapter.functions.kept, it.adapter.functions.redact)
    with pytest.raises(asyncio.CancelledError):
        await ctx.call("http", [{"path": "/"}, None])
    assert ctx.was_asking
    await ctx.call("json", ["[]", None])
    assert not ctx.was_asking


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((429, ""), r"the device at this address is busy \(/x: status 429\)"),
        ((404, ""), r"the device at this address is not a Mine \(/x: status 404\)"),
        ({"other": 1}, r"the device at this address is not a Mine \(/x: status 200, without here\)"),
        (7, r"is not a Mine \(/x: status 200, no table\)"),
        ((200, '{"here": NaN}'), r"is not a Mine \(/x: status 200, without here\)"),
        ((200, '{"here": nano}'), r"is not a Mine \(/x: status 200, not JSON\)"),
        ((503, ""), r"the device at this address failed \(/x: status 503\)"),
        ((401, ""), "set the password"),
        (GONE, "does not answer"),
    ],
)
async def test_the_error_describes_the_answer(pool: WorkerPool, tmp_path: Path, answer: Any, sentence: str) -> None:
    poll = 'ctx:fetch("/x", "here", { [401] = "set the password" }) return {}'
    it = await start(pool, tmp_path, kind(poll), Vendor({"/x": answer}))
    with pytest.raises((AdapterFailed, BadAnswer), match=sentence) as failed:
        await it.poll()
    assert isinstance(failed.value, Unreachable) == (answer is GONE), "an outage is not an error of the file"


@pytest.mark.parametrize(
    ("poll", "sentence"),
    [
        ('ctx.memory.x = ("x"):rep(70000) return {}', r"mine.lua:\d+: ctx.memory is larger than 64 KiB$"),
        ("ctx.memory.x = print return {}", r"mine.lua:\d+: ctx.memory.x holds a function, which is not data$"),
        ("error({1})", r"^config/adapters/mine.lua:2: \[1\]$"),
        ("error()", "^config/adapters/mine.lua:2: the error is a nil value, not a message$"),
        ("error({ message = 'no weather' })", "^no weather$"),
        ("local x = nil\nreturn x.y", r"config/adapters/mine.lua:3: attempt to index a nil value \(local 'x'\)"),
        ("return 7", r"^config/adapters/mine.lua:\d+: the result of poll is invalid: poll must be a list, not 7$"),
        ("error('no weather today', 0)", "^no weather today$"),
        ("error('http://10.0.0.1:80: no weather', 0)", "^http://10.0.0.1:80: no weather$"),
        ("error('no weather today')", "^config/adapters/mine.lua:2: no weather today$"),
        ('ctx.http{path = "/"}', "mine.lua:2: call it with a colon"),
        ('ctx:http{pth = "/"}', "mine.lua:2: ctx:http: path is missing"),
        ('ctx:http "/"', "mine.lua:2: bad argument #1 to ctx:http"),
        ('crypto.hmac("md4", "k", "t")', "mine.lua:2: crypto.hmac: the algorithm must be one of md5, sha1, sha256"),
        ("ctx:send(nil)", r"mine.lua:2: bad argument #1 to ctx:send \(string or table expected, got nil\)"),
        (
            "return {{ id = ('x'):rep(200000) }, { id = ('y'):rep(200000) }}",
            r"mine.lua:\d+: the result of poll is larger than 256 KiB$",
        ),
        (
            "ctx:sleep(1)",
            r"\(ctx:sleep is available only in scenes and automations, not in the Lua file of an adapter kind\)",
        ),
        ('ctx:fetsh("/x")', r"attempt to call a nil value \(method 'fetsh'\) \(did you mean ctx:fetch\?\)"),
        ("ctx:getdevice(1)", r"\(method 'getdevice'\)$"),
    ],
)
async def test_an_error_names_file_and_line(pool: WorkerPool, tmp_path: Path, poll: str, sentence: str) -> None:
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    with pytest.raises((AdapterFailed, BadAnswer), match=sentence):
        await it.poll()


async def test_a_poll_without_result_that_removes_devices_is_logged(
    pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    once = "if ctx.memory.n == 2 then return { { id = 'a', kind = 'Switch' } } end"
    poll = f"ctx.memory.n = (ctx.memory.n or 0) + 1 {once}"
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    for _ in range(4):
        await it.adapter.poll_once()
    [line] = [each for each in caplog.messages if "returned nil" in each]
    assert re.fullmatch(
        r"\w+: config/adapters/mine.lua:\d+: poll returned nil, which removes all devices; return a list", line
    )


async def test_tables_for_bytes_and_texts(pool: WorkerPool, tmp_path: Path) -> None:
    poll = """
      local parts = {}
      local function put(x) parts[#parts + 1] = tostring(x) end
      put(crypto.md5("abc")) put(crypto.sha1("")) put(crypto.sha256("\\xff\\0é"))
      put(crypto.hmac("sha256", "key", "text"))
      put(crypto.pbkdf2("sha256", "secret", crypto.hex.decode("00ff"), 2, 16))
      put(crypto.base64.encode("\\xfe\\xff")) put(crypto.base64.decode("/v8=") == "\\xfe\\xff")
      put(#crypto.random(8)) put(json.decode('{"a":[1,{"b":null}]}').a[1]) put(select(2, json.decode("{")))
      put(json.encode({ 1, 2 })) put(json.decode("7")) put(select(2, json.decode("\\xff")))
      local page = xml.decode('<a x="1"><n:b xmlns:n="u">t</n:b></a>')
      put(page.name .. page.attributes.x .. page.children[1].name .. page.children[1].text)
      put(select(2, xml.decode('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')))
      return { { id = "a", kind = "Sensor", name = table.concat(parts, "|") } }
    """
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    assert (await it.poll())["a"].name.split("|") == [
        "900150983cd24fb0d6963f7d28e17f72",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        hashlib.sha256(b"\xff\0" + "é".encode()).hexdigest(),
        hmac.new(b"key", b"text", "sha256").hexdigest(),
        hashlib.pbkdf2_hmac("sha256", b"secret", b"\0\xff", 2, 16).hex(),
        "/v8=",
        "true",
        "16",
        "1",
        "is not JSON",
        "[1,2]",
        "7",
        "is not UTF-8",
        "a1bt",
        "is not XML",
    ]


async def test_json_of_any_depth_size_and_number_crosses_to_lua(pool: WorkerPool, tmp_path: Path) -> None:
    poll = """
      local stated = ctx:http({ path = "/" }).json
      local deep, depth = stated.deep, 0
      while deep do deep, depth = deep[1], depth + 1 end
      local texts = { depth, stated.pair, tostring(stated.huge), (stated.text:gsub("%c", "!")), #stated.empty,
        tostring(json.decode("1e999")) }
      return { { id = "a", kind = "Sensor", name = table.concat(texts, "|") } }
    """
    reported = (
        b'{ "deep" : '
        + b"[" * 900
        + b"]" * 900
        + rb""", "pair": "\ud83d\uDE00\\ud83d\u00e9",
      "huge": 1e999, "text": "\"\/\n", "empty": [ ] }"""
    )
    it = await start(pool, tmp_path, kind(poll), Vendor({"/": (200, reported)}))
    assert (await it.poll())["a"].name == '900|\U0001f600\\ud83dé|nil|"/!|0|nil'
    with pytest.raises(Invalid, match=f"has more than {MAX_JSON_MARKS} values"):
        compact_json(b"[" + b"1," * MAX_JSON_MARKS + b"1]")
    tables = "local found = {} for n = 1, 20000 do found[n] = {} end return found"
    it = await start(
        pool, tmp_path, kind("return {}", f"operations = {{ it = function() {tables} end }},"), Vendor({})
    )
    with pytest.raises(AdapterFailed, match="holds more than 20000 tables"):
        await it.adapter.operations["it"]({})


@pytest.mark.slow
async def test_thousands_of_devices_do_not_block_the_loop(pool: WorkerPool, tmp_path: Path) -> None:
    poll = """local all = {}
      for n = 1, 1000 do all[n] = { id = "d" .. n, kind = "Light", attributes = { brightness = 1 } } end
      return all"""
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            before = len(it.registry.list_devices())
            await asyncio.sleep(0)
            most = max(most, len(it.registry.list_devices()) - before)

    watching = asyncio.create_task(watch())
    await it.adapter.poll_once()
    watching.cancel()
    assert len(it.registry.list_devices()) == 1000 and most <= 500


async def test_a_missing_field_is_a_missing_attribute_and_not_an_error(pool: WorkerPool, tmp_path: Path) -> None:
    poll = """
      local stated, names = { tmp = { tC = 20.5 }, hum = "broken", ["a:1"] = { n = 1 }, { n = 2 } }, ""
      for name, each in parts(stated) do names = names .. name .. (each.n or "") .. " " end
      for _ in parts(stated, "none") do error("there is none") end
      return { { id = "a", kind = "Sensor", attributes = {
        temperature = measure(part(stated, "tmp").tC, "°C"), humidity = measure(part(stated, "hum").value, "%"),
        pressure = measure(" -7.5", "hPa"), wind_gust = measure("7 m/s", "m/s"),
        visibility = measure("0x10", "km"), voltage = measure(part(stated, "x", "y").z, "V"), current = measure(nil),
        energy_total = measure(2000, "kWh", "total", 1000), co2 = measure(part(false, "x")[1], "ppm"),
        brightness = round(41.6), illuminance = round("7"),
        uv_index = #rows({ a = { {}, 7, {} } }, "a") + #rows(stated, nil), media_title = text({}, 7, "", "b", "c"),
        media_source = text(nil, {}), media_app = names } } }
    """
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    assert (await it.poll())["a"].attributes == {
        "state": "online",
        "temperature": {"value": 20.5, "unit": "°C"},
        "pressure": {"value": -7.5, "unit": "hPa"},
        "brightness": 42,
        "illuminance": 7,
        "uv_index": 2,
        "media_title": "b",
        "media_app": "a:11 hum tmp ",
        "energy_total": {"value": 2, "unit": "kWh", "period": "total"},
    }


async def test_bodies_are_bytes_in_both_directions(pool: WorkerPool, tmp_path: Path) -> None:
    picture = bytes(range(256)) * 4 + b"\xc3\xa9\xc3\r\n\0"
    poll = """
      local answer = ctx:http { path = "/picture" }
      ctx:http { method = "PUT", path = "/picture", body = answer.body }
      local texts = { #answer.body, answer.body:byte(200), crypto.sha256(answer.body), tostring(answer.json),
        select(2, json.decode(answer.body)) }
      return { { id = "a", kind = "Sensor", name = table.concat(texts, "|") } }
    """
    hook = """hook = function(ctx, request)
      return { devices = { { id = "a", name = crypto.hex.encode(request.body) .. request.method } } }
    end,"""
    it = await start(pool, tmp_path, kind(poll, hook), Vendor({"/picture": (200, picture)}))
    shown = [str(len(picture)), "199", hashlib.sha256(picture).hexdigest(), "nil", "is not UTF-8"]
    assert (await it.poll())["a"].name.split("|") == shown
    assert it.vendor.asked[1].body == picture
    await it.adapter.hook(HookRequest(hook="it", method="POST", query={}, headers={}, data=None, body=b"\xff\0\xc3"))
    assert it.registry.get_device("it:a").name == "ff00c3POST"


async def test_kept_values_survive_and_are_hidden(
    pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    poll = """
      ctx:keep("session", "kept-9f3a")
      ctx:log("info", "with " .. ctx:kept("session") .. " and " .. ctx.settings.token, { x = ctx.settings.api_key })
      error("raised " .. ctx:kept("session") .. ctx.settings.token)
    """
    settings = 'settings = { api_key = { type = "string", required = true } },'
    it = await start(pool, tmp_path, kind(poll, settings), Vendor({}), token="tok en/1", api_key="abc-def")
    with caplog.at_level(logging.INFO), pytest.raises(AdapterFailed) as failed:
        await it.poll()
    shown = str(failed.value) + caplog.text + repr(it.adapter._loaded)
    assert "raised ******" in shown and "with *** and ***" in caplog.text
    for secret in ("kept-9f3a", "tok en/1", "abc-def"):
        assert secret not in shown
    assert it.adapter.redact("/a?token=tok%20en%2F1&b=tok+en%2F1") == "/a?token=***&b=***"
    for name in ("a", "me", "admin"):
        message = base64.b64encode(f"{name}:tok en/1".encode()).decode()
        assert message not in it.adapter.redact(f"Basic {message}") and "***" in it.adapter.redact(f"Basic {message}")
    await it.adapter.functions.kept.put("pairing", '{"session": ["inner-77f1"], "mode": "eco"}')
    assert it.adapter.redact("eco: inner-77f1") == "eco: ***"
    with pytest.raises(Invalid, match="16 texts"):
        for number in range(17):
            await it.adapter.functions.kept.put(f"k{number}", "x")


async def test_changes_of_kept_texts_are_limited(pool: WorkerPool, tmp_path: Path) -> None:
    """Each change is a write to storage."""
    it = await start(pool, tmp_path, kind('ctx:keep("n", crypto.random(8)) return {}'), Vendor({}))
    for _ in range(MAX_KEPT_WRITES):
        await it.poll()
    with pytest.raises(AdapterFailed, match=r"mine\.lua:2: ctx:keep: too many changes"):
        for _ in range(30):
            await it.poll()
    await it.adapter.functions.kept.put("n", it.adapter.functions.kept.get("n"))
    it.adapter.functions.kept._counted_at -= 3600
    await it.poll()


async def test_no_device_shows_a_secret(pool: WorkerPool, tmp_path: Path) -> None:
    poll = """
      local token, path = ctx.settings.token, "/x?key=" .. crypto.hex.encode(ctx.settings.token)
      ctx:keep("session", "session-0123456789") ctx:keep("mode", "fan_only")
      return { { id = "a", kind = "Sensor", name = "with " .. token, info = { serial = token },
        commands = { { capability = "custom.it.x", actions = { "set" }, values = { token } } },
        events = { { event = "press", data = { by = token } } },
        attributes = { hvac_mode = ctx:kept("mode"), brightness = ctx.settings.pin,
          ["custom.it.pin"] = ctx.settings.number, ["custom.it.x"] = { { path }, [2] = ctx:kept("session") } } } }
    """
    settings = (
        "settings = { pin = { type = 'integer', secret = true }, number = { type = 'integer', secret = true } },"
    )
    it = await start(pool, tmp_path, kind(poll, settings), Vendor({}), token="tok en/1", pin=50, number=12345678)
    await it.poll()
    device = (await it.poll())["a"]
    assert device.attributes == {
        "state": "online",
        "hvac_mode": "fan_only",
        "brightness": 50,
        "custom.it.pin": "***",
        "custom.it.x": [["/x?key=***"], "***"],
    }
    assert (device.name, device.info.serial) == ("with ***", "***")
    assert [each.values for each in device.commands or ()] == [("***",)]
    assert {str(each.data["by"]) for each in it.happened} == {"***"}


async def test_invalid_devices_are_dropped_and_reported_once(pool: WorkerPool, tmp_path: Path) -> None:
    poll = """return {
      { id = "good", kind = "Sensor" }, { id = "bad", kind = "Lamp" }, { kind = "Sensor" },
      { id = "nearly", kind = "Sensor", atributes = {} },
      { id = "odd", kind = "Sensor", attributes = { power = "maybe", uv_index = 2 } },
      { id = "endless", kind = "Sensor", attributes = { temperature = measure(1 / 0, "°C") } },
      { id = "latin", kind = "Sensor", name = "K\\xfcche" }, { id = print, kind = "Sensor" },
      { id = "good", kind = "Light", name = "again" },
      { id = "stated", kind = "Light", info = { model = 5 }, commands = { { capability = "hue", actions = {} },
        { capability = "brightness", actions = { "set" }, min = 9, max = 1, step = 0 }, "power", "power" } },
    }"""
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    for _ in range(2):
        assert set(await it.poll()) == {"good", "odd", "endless", "latin", "stated"}
    assert it.list_drops() == [
        ("it:bad", "kind", "must be one of Sensor, Light, Switch, Virtual, not 'Lamp'"),
        ("device 3 of poll", "id", "is missing"),
        ("it:nearly", "atributes", "is not a field of a device; did you mean attributes?"),
        ("it:endless", "temperature", "value holds a number that is not finite"),
        ("it:latin", "name", "holds text that is not valid UTF-8"),
        ("device 8 of poll", "id", "id holds a function, which is not data"),
        ("it:good", "id", "is listed more than once; the rows of this id apply in order"),
        ("it:stated", "info.model", "must be a string, not 5"),
        ("it:stated", "commands[1].actions", "must name at least one action"),
        ("it:stated", "commands[2].step", "must be a number above 0, not 0"),
        ("it:stated", "commands[2].min", "is greater than max: 9, 1"),
        ("it:stated", "commands[4].capability", "is listed twice: 'power'"),
        ("it:odd", "power", "must be one of on, off, not 'maybe'"),
    ]


BAD_PARTS: dict[str, tuple[str, str, str]] = {
    "attributes = { smoke = smoke, ['custom.it.load'] = 0 / 0 }": ("custom.it.load", "holds a number", "load"),
    "attributes = { smoke = smoke, ['custom.it.load'] = 1 / 0 }": ("custom.it.load", "holds a number", "load"),
    "attributes = { smoke = smoke, ['custom.it.load'] = '\\xff' }": ("custom.it.load", "holds text", "load"),
    "attributes = { smoke = smoke, ['custom.it.load'] = { { print } } }": ("custom.it.load", "[1][1] holds", "load"),
    "attributes = { smoke = smoke, temperature = measure(1 / 0, '°C') }": ("temperature", "value holds a number", ""),
    "attributes = { smoke = smoke, ['custom.\\xff'] = 1 }": ("attributes", "holds text", ""),
    "attributes = { smoke = smoke }, name = 'K\\xfcche'": ("name", "holds text that is not valid UTF-8", ""),
    "attributes = { smoke = smoke }, name = 5": ("name", "must be a string", ""),
    "attributes = { smoke = smoke }, name = 0 / 0": ("name", "holds a number", ""),
    "attributes = { smoke = smoke }, class = '\\xff'": ("class", "holds text", ""),
    "attributes = { smoke = smoke }, class = 5": ("class", "must be a string", ""),
    "attributes = { smoke = smoke }, info = { serial = '\\xff' }": ("info.serial", "holds text", ""),
    "attributes = { smoke = smoke }, info = { serial = 7 }": ("info.serial", "must be a string", ""),
    "attributes = { smoke = smoke }, info = { colour = 'red' }": ("info.colour", "is not a field", ""),
    "attributes = { smoke = smoke }, kind = 'Lamp'": ("kind", "must be one of", ""),
    "attributes = { smoke = smoke }, state = 'gone'": ("state", "must be one of", ""),
    "attributes = { smoke = smoke }, events = 7": ("events", "must be a list", ""),
    "attributes = { smoke = smoke }, events = { '\\xff' }": ("events[1]", "holds text", ""),
    "attributes = { smoke = smoke }, commands = { { capability = 'hue', actions = { '\\xff' } } }": (
        "commands[1]",
        "actions[1] holds text",
        "",
    ),
}
"""The device's fields after a good poll, with one bad part. The bad part, the reason, and the custom attribute that
becomes unknown."""


@pytest.mark.parametrize("function", ["poll", "hook"])
@pytest.mark.parametrize("fields", BAD_PARTS)
async def test_a_bad_part_of_a_device_drops_only_itself(
    pool: WorkerPool, tmp_path: Path, fields: str, function: str
) -> None:
    part, reason, unknown = BAD_PARTS[fields]
    good = """{ id = "a", kind = "Sensor", name = "A", class = "smoke", info = { model = "M" },
        attributes = { smoke = false, ["custom.it.load"] = 1, ["custom.it.other"] = 2 } }"""
    kind_field = "" if "kind =" in fields else 'kind = "Sensor", '
    bad = f'{{ id = "a", {kind_field}{fields.replace("smoke = smoke", "smoke = true")} }}'
    poll = f"ctx.memory.n = (ctx.memory.n or 0) + 1 return {{ ctx.memory.n == 1 and {good} or {bad} }}"
    it = await start(
        pool, tmp_path, kind(poll, f"hook = function(ctx) return {{ devices = {{ {bad} }} }} end,"), Vendor({})
    )
    await it.poll()
    for _ in range(2):
        await (it.poll() if function == "poll" else it.adapter.hook(HookRequest(hook="it", method="POST")))
    device = it.registry.get_device("it:a")
    assert device.attributes["smoke"] is True and device.attributes["state"] == "online"
    is_kept = function == "hook" and not unknown
    assert device.attributes.get("custom.it.load") == (1 if is_kept else None)
    assert device.attributes.get("custom.it.other") == (2 if function == "hook" else None)
    assert (device.name, device.info.device_class, device.info.model) == ("A", "smoke", "M")
    [(device_id, dropped, sentence)] = it.list_drops()
    assert (device_id, dropped) == ("it:a", part) and reason in sentence


async def test_a_bad_attribute_of_an_update_drops_only_itself(pool: WorkerPool, tmp_path: Path) -> None:
    hook = """hook = function() return { devices = {
      { id = "a", attributes = { smoke = true, brightness = 0 / 0, ["custom.it.x"] = 1 / 0 } } } } end,"""
    it = await start(pool, tmp_path, kind(more=hook), Vendor({}))
    await it.poll()
    await it.adapter.hook(HookRequest(hook="it", method="POST"))
    assert it.registry.get_device("it:a").attributes == {"power": "off", "smoke": True, "state": "online"}
    assert sorted(attribute for _, attribute, _ in it.list_drops()) == ["brightness", "custom.it.x"]


@pytest.mark.parametrize("function", ["poll", "hook"])
@pytest.mark.parametrize(
    ("attributes", "smoke", "part"),
    [
        ("{ 1, 0 / 0 }", False, "attributes"),
        ("{ smoke = true, 0 / 0 }", True, "1"),
        ("{ smoke = true, [5] = 0 / 0 }", True, "5"),
    ],
)
async def test_unreadable_entries_of_a_list_of_attributes_stop_no_other_device(
    pool: WorkerPool, tmp_path: Path, attributes: str, smoke: bool, part: str, function: str
) -> None:
    good = '{ id = "a", kind = "Sensor", attributes = { smoke = false } }'
    bad = f'{{ id = "a", kind = "Sensor", attributes = {attributes} }}'
    other = '{ id = "b", kind = "Sensor", attributes = { smoke = true } }'
    poll = f"ctx.memory.n = (ctx.memory.n or 0) + 1 return {{ ctx.memory.n == 1 and {good} or {bad}, {other} }}"
    hook = f"hook = function() return {{ devices = {{ {bad}, {other} }} }} end,"
    it = await start(pool, tmp_path, kind(poll, hook), Vendor({}))
    await it.poll()
    await (it.poll() if function == "poll" else it.adapter.hook(HookRequest(hook="it", method="POST")))
    assert it.registry.get_device("it:b").attributes["smoke"] is True
    assert it.registry.get_device("it:a").attributes["smoke"] is smoke
    assert ("it:a", part) in [(device_id, dropped) for device_id, dropped, _ in it.list_drops()]


async def test_a_device_with_an_unreadable_state_keeps_its_availability(pool: WorkerPool, tmp_path: Path) -> None:
    poll = """ctx.memory.n = (ctx.memory.n or 0) + 1
      return { { id = "a", kind = "Sensor", state = ({ "unavailable", "gone", "online", "gone" })[ctx.memory.n] } }"""
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    states = [(await it.poll())["a"].attributes["state"] for _ in range(4)]
    assert states == ["unavailable", "unavailable", "online", "online"]


async def test_an_invalid_command_is_dropped_without_its_device(pool: WorkerPool, tmp_path: Path) -> None:
    poll = """return {
      { id = "lamp", kind = "Light", attributes = { power = "on" }, commands = { "power", "nope",
        { capability = "brightness", actions = { "explode" } }, 5, { capability = "color_temp", min = 2 } } },
      { id = "fan", kind = "Switch", commands = "power" },
    }"""
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    for _ in range(2):
        devices = await it.poll()
        assert set(devices) == {"lamp", "fan"} and devices["lamp"].attributes["power"] == "on"
        assert [each.capability for each in devices["lamp"].commands or ()] == ["power"]
    assert it.list_drops() == [
        ("it:lamp", "commands[2]", "must be a capability, such as 'power', or a table, not 'nope'"),
        ("it:lamp", "commands[4]", "must be a capability, such as 'power', or a table, not 5"),
        ("it:lamp", "commands[3].actions", "must be one of set, increase, decrease, not 'explode'"),
        ("it:lamp", "commands[5].actions", "is missing"),
        ("it:fan", "commands", "must be a list of tables, not 'power'"),
    ]


@pytest.mark.parametrize(
    ("field", "entry", "most"), [("attributes", "x", 1000), ("commands", '"power"', 250), ("events", '"press"', 100)]
)
async def test_parts_of_a_device_are_bounded(
    pool: WorkerPool, tmp_path: Path, field: str, entry: str, most: int
) -> None:
    poll = f"""
      local parts = {{}}
      for n = 1, {most + 1} do parts[{'"custom.it.a" .. n' if field == "attributes" else "n"}] = {entry or 1} end
      return {{ {{ id = "a", kind = "Sensor", {field} = parts }} }}"""
    it = await start(pool, tmp_path, kind(poll.replace("= x", "= 1")), Vendor({}))
    assert set(await it.poll()) == (set() if field == "attributes" else {"a"})
    [drop] = it.dropped
    assert (drop.attribute, drop.reason) == (field, f"has more than {most} entries")


@pytest.mark.parametrize(("rounds", "length"), [(500_000, None), (500_000, 32), (250_000, 33)])
async def test_the_work_of_pbkdf2_is_bounded(rounds: int, length: int | None) -> None:
    given: dict[str, Any] = {"algorithm": "sha256", "key": "k", "text": "t", "length": length}
    with pytest.raises(Invalid, match="rounds must be"):
        compute("pbkdf2", {**given, "rounds": rounds + 1})
    with pytest.raises(Invalid, match=f"rounds must be at most {500_000 // 64} for a result of 1024 bytes"):
        compute("pbkdf2", {"algorithm": "md5", "key": "k", "text": "t", "length": 1024, "rounds": 500_000})
    assert len(compute("pbkdf2", {**given, "rounds": 2})) == 2 * (length or 32)


async def test_each_error_in_the_result_of_a_hook_is_reported(pool: WorkerPool, tmp_path: Path) -> None:
    hook = """hook = function() return { devices = { {} }, events = {
      7, { event = "a" }, { id = "a", dat = {} }, { id = "gone", event = "a" }, { id = "a", event = "good" },
    } } end,"""
    it = await start(pool, tmp_path, kind(more=hook), Vendor({}))
    await it.poll()
    for _ in range(2):
        await it.adapter.hook(HookRequest(hook="it", method="POST"))
    assert it.list_drops() == [
        ("device 1 of devices of hook", "id", "is missing"),
        ("event 1 of hook", "event", "must be a table with named fields, not 7"),
        ("event 2 of hook", "id", "is missing"),
        ("event 3 of hook", "event", "is missing"),
        ("event 3 of hook", "dat", "is not a field of an event; did you mean data?"),
        ("it:gone", "event a", "names an unknown device"),
    ]
    assert [each.event for each in it.happened] == ["good", "good"]


async def test_the_events_of_a_poll_follow_its_attributes(pool: WorkerPool, tmp_path: Path) -> None:
    poll = 'return { { id = "new", kind = "Sensor", attributes = { battery = 7 }, events = { "press" } } }'
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    shown: list[Any] = []
    it.bus.listen(lambda event: shown.append(it.registry.get_device("it:new")), events.DeviceEvent)
    await it.adapter.poll_once()
    assert [(each.id, each.attributes["battery"]) for each in shown] == [("it:new", 7)]


async def test_a_silent_kind_without_poll_is_offline_after_its_limit(pool: WorkerPool, tmp_path: Path) -> None:
    text = """return { name = "Sleeper", hook = function(ctx, request)
      return { devices = { { id = "door", kind = "Sensor" } } } end }"""
    it = await start(pool, tmp_path, text, Vendor({}), max_silence_secs=1)
    it.adapter.max_silence_secs = 86_400  # a stuck execution never ends by itself, even on a busy machine
    states = []
    for days, is_heard in ((0, True), (0, False), (1, False), (0, True)):
        if is_heard:
            await it.adapter.hook(HookRequest(hook="it", method="POST"))
        assert it.adapter._contact_at is not None
        it.adapter._contact_at -= days * 86_400
        await it.adapter.poll_once()
        states.append(it.registry.get_device("it:door").attributes["state"])
    assert states == ["online", "online", "offline", "online"]


async def test_a_row_with_only_an_id_keeps_the_attributes(pool: WorkerPool, tmp_path: Path) -> None:
    poll = f"""
      ctx.memory.n = (ctx.memory.n or 0) + 1
      if ctx.memory.n == 1 then return {{ {DEVICE}, {{ id = "b", kind = "Sensor" }} }} end
      return {{ {{ id = "a" }} }}, 42
    """
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    assert set(await it.poll()) == {"a", "b"}
    found = await it.poll()
    assert set(found) == {"a"} and found["a"].attributes["power"] == "off" and it.adapter.poll_interval == 42


@pytest.mark.parametrize("pause", ["'soon'", "0 / 0", "print", "'\\xff'", "{}"])
async def test_an_invalid_pause_of_a_poll_drops_no_device(pool: WorkerPool, tmp_path: Path, pause: str) -> None:
    poll = f"""ctx.memory.n = (ctx.memory.n or 0) + 1
      return {{ {DEVICE} }}, ({{ 42, {pause} }})[ctx.memory.n]"""
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    interval = it.adapter.poll_interval
    await it.poll()
    assert it.adapter.poll_interval == 42
    assert set(await it.poll()) == {"a"} and it.adapter.poll_interval == interval
    [(where, part, reason)] = it.list_drops()
    assert (where, part) == ("poll", "its second value") and reason.startswith("must be a number of seconds, not ")


KEPT_ROWS = (
    '{ id = "a" }',
    '{ id = "a", state = "unavailable" }',
    '{ id = "a", name = "B" }',
    '{ id = "a", class = "plug" }',
)


@pytest.mark.parametrize("row", KEPT_ROWS)
async def test_a_row_without_attributes_keeps_them(pool: WorkerPool, tmp_path: Path, row: str) -> None:
    poll = f"""
      ctx.memory.n = (ctx.memory.n or 0) + 1
      if ctx.memory.n == 2 then return {{ {row} }} end
      return {{ {DEVICE} }}
    """
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    changes: list[Any] = []
    it.bus.listen(changes.append, events.DeviceStateChanged)
    await it.poll()
    device = (await it.poll())["a"]
    is_available = "unavailable" not in row
    assert device.attributes == {"power": "off", "state": "online" if is_available else "unavailable"}
    assert device.commands and it.dropped == []
    assert (await it.poll())["a"].attributes == {"power": "off", "state": "online"}
    assert all("power" in each.device.attributes for each in changes)


async def test_an_empty_table_of_attributes_removes_them(pool: WorkerPool, tmp_path: Path) -> None:
    poll = f"""
      ctx.memory.n = (ctx.memory.n or 0) + 1
      return {{ ctx.memory.n == 1 and {DEVICE} or {{ id = "a", attributes = {{}} }} }}
    """
    it = await start(pool, tmp_path, kind(poll), Vendor({}))
    await it.poll()
    assert (await it.poll())["a"].attributes == {"state": "online"}


def powers(changes: list[Any]) -> list[Any]:
    return [each.device.attributes.get("power") for each in changes]


async def test_each_row_of_a_list_is_a_change_of_its_own(pool: WorkerPool, tmp_path: Path) -> None:
    poll = f"""
      ctx.memory.n = (ctx.memory.n or 0) + 1
      if ctx.memory.n == 1 then return {{ {DEVICE} }} end
      return {{ {{ id = "a", attributes = {{ power = "on" }} }}, {{ id = "a", attributes = {{ power = "off" }} }} }}
    """
    hook = """hook = function(ctx, request)
      return { devices = { { id = "a", attributes = { power = "on" } },
        { id = "a", name = "B", attributes = { brightness = 5 } }, { id = "a", attributes = { power = "off" } },
        { id = "a", name = "C", attributes = { power = "on" } }, { id = "a", attributes = { power = "off" } } } }
    end,"""
    it = await start(pool, tmp_path, kind(poll, hook), Vendor({}))
    changes: list[Any] = []
    await it.poll()
    it.bus.listen(changes.append, events.DeviceStateChanged)
    await it.adapter.hook(HookRequest(hook="it", method="POST"))
    assert powers(changes) == ["on", "on", "off", "on", "off"]
    assert changes[-1].device.attributes == {"power": "off", "brightness": 5, "state": "online"}
    changes.clear()
    await it.poll()
    assert powers(changes) == ["on", "off"], "the brightness is gone with the first"
    changes.clear()
    await it.adapter.poll_once()
    await it.adapter.hook(HookRequest(hook="it", method="POST"))
    assert powers(changes) == ["on", "off", "on", "on", "off", "on", "off"]


TOGGLED: tuple[tuple[str, str | None, list[str], str | None], ...] = (
    ('{ "power" }', "off", ["on"], None),
    ('{ "power" }', "on", ["off"], None),
    ('{ { capability = "power", actions = { "on", "off", "toggle" } } }', "off", ["toggle"], None),
    ('{ "power" }', None, [], "it:a does not report whether it is on; instead of `toggle`, send `on` or `off`"),
)


@pytest.mark.parametrize(("commands", "power", "sent", "error"), TOGGLED)
async def test_a_file_that_does_not_list_toggle_gets_on_or_off(
    pool: WorkerPool, tmp_path: Path, commands: str, power: str | None, sent: list[str], error: str | None
) -> None:
    shown = "nil" if power is None else f'"{power}"'
    text = f"""
      return {{ {{ id = "a", kind = "Switch", commands = {commands},
        attributes = {{ power = ctx.memory.power or {shown} }} }} }}"""
    more = """command = function(ctx, device, command)
      local action = command.action
      ctx:http { method = "POST", path = "/set", json = { action = action } }
      ctx.memory.power = action == "toggle" and "on" or action
    end,"""
    it = await start(pool, tmp_path, kind(text, more), Vendor({"/set": {}}))
    await it.poll()
    try:
        message = await it.command("a", "power", "toggle")
    except BadAnswer as refused:
        message = str(refused)
    assert message == error and [each.json["action"] for each in it.vendor.asked] == sent


@pytest.mark.parametrize("works", [True, False])
async def test_an_unreadable_answer_to_a_write_is_followed_by_a_poll(
    pool: WorkerPool, tmp_path: Path, works: bool
) -> None:
    poll = f'local device = {DEVICE} device.attributes.power = ctx:fetch("/state").power return {{ device }}'
    state = {"power": "off"}

    def take(asked: Any) -> Any:
        state.update({"power": "on"} if works else {})
        return Unanswered("http://10.0.0.1 closed the connection during its answer")

    more = 'command = function(ctx) ctx:http { method = "POST", path = "/set" } end,'
    it = await start(pool, tmp_path, kind(poll, more), Vendor({"/state": state, "/set": take}))
    await it.poll()
    message = await it.command("a", "power", "on")
    assert message == (None if works else "it:a was sent power on but shows 'off'")
    assert it.registry.get_device("it:a").attributes["power"] == state["power"]


async def test_a_row_without_attributes_confirms_no_command(pool: WorkerPool, tmp_path: Path) -> None:
    """The device already reports `off`. The poll after the command omits the attribute."""
    poll = f"""
      ctx.memory.n = (ctx.memory.n or 0) + 1
      if ctx.memory.n > 1 then return {{ {{ id = "a", name = "B" }} }} end
      return {{ {DEVICE} }}
    """
    it = await start(pool, tmp_path, kind(poll, "command = function() end,"), Vendor({}))
    await it.poll()
    assert await it.command("a", "power", "off") == "it:a was sent power off but shows nothing"


@pytest.mark.parametrize(("action", "repeat"), [("on", True), ("toggle", False), ("next", False)])
async def test_a_request_of_a_command_is_repeated_unless_its_effect_would_be_too(
    pool: WorkerPool, tmp_path: Path, action: str, repeat: bool
) -> None:
    commands = SWITCH.replace("} } }", '} }, { capability = "media_playback", actions = { "next" } } }')
    device = DEVICE.replace(SWITCH, commands)
    more = 'command = function(ctx) ctx:http { path = "/press" } return true end,'
    it = await start(pool, tmp_path, kind(f"return {{ {device} }}", more), Vendor({"/press": {}}))
    await it.poll()
    assert await it.command("a", "media_playback" if action == "next" else "power", action) is None
    assert [each.repeat for each in it.vendor.asked] == [repeat]


EMPTY: tuple[tuple[Any, str], ...] = (
    ({"cct:0": {}, "sys": {}}, "cct:0, sys"),
    ({}, "no fields"),
    ([1, 2], "a list of 2"),
    ((200, ""), "nothing"),
    ((200, "<html>"), "6 bytes that are not a JSON object"),
    ({f"f{n}": n for n in range(41)}, ", ".join(f"f{n}" for n in range(40)) + ", and 1 more"),
)


@pytest.mark.parametrize(("answer", "contained"), EMPTY)
async def test_a_good_poll_without_a_device_is_logged_once_with_the_fields_of_the_answer(
    pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture, answer: Any, contained: str
) -> None:
    it = await start(pool, tmp_path, kind('ctx:http { path = "/x" } return {}'), Vendor({"/x": answer}))
    for _ in range(2):
        await it.adapter.poll_once()
    assert [each.getMessage() for each in caplog.records] == [
        f"it: the answer contains no device; it contains /x: {contained}"
    ]
    caplog.clear()
    it = await start(pool, tmp_path, kind('ctx:http { path = "/x" }'), Vendor({"/x": answer}))
    await it.adapter.poll_once()
    assert caplog.records == [], "a kind without devices returns nothing"


async def test_pushed_values_are_marked_as_pushed(pool: WorkerPool, tmp_path: Path) -> None:
    """After a restart, triggers compare a pushed value with the stored value. A polled value only sets the
    baseline."""
    hook = """hook = function() return { devices = {
      { id = "a", name = "B", attributes = { brightness = 5 } },
      { id = "a", attributes = { brightness = 6 } } } } end,"""
    it = await start(pool, tmp_path, kind(more=hook), Vendor({}))
    [seen] = (await it.adapter.poll()).observations
    assert (seen.pushed, seen.kept) == (frozenset(), frozenset())
    await it.poll()
    it.registry.restore(it.registry.layout, it.registry.list_devices())
    changes: list[Any] = []
    it.bus.listen(changes.append, events.DeviceStateChanged)
    await it.adapter.hook(HookRequest(hook="it", method="POST"))
    assert [(each.changed - {"state"}, each.baseline) for each in changes] == [({"brightness"}, frozenset())] * 2
    await it.poll()
    assert changes[-1].baseline == frozenset(), "the power is the same; the brightness has been seen"


COMMANDED: tuple[tuple[str, str | None, Any], ...] = (
    ("ctx.memory.power = command.action", None, "on"),
    ("return true", None, "off"),
    ('return { attributes = { power = "on" } }', None, "on"),
    ('return { attributes = { power = "off" } }', "it:a was sent power on but shows 'off'", "off"),
    (
        'return { attributes = { power = "on" }, state = "unavailable" }',
        "it:a is unavailable; the result of power on is unknown",
        "on",
    ),
    ('return { name = "B" }', "it:a was sent power on but shows nothing", "off"),
    ('return nil, "the fuse is out"', "the fuse is out", "off"),
    ("local sent = true", "it:a was sent power on but shows 'off'", "off"),
    ("return 7", "`command` returned 7, which is not a device", "off"),
)


@pytest.mark.parametrize(("body", "error", "shown"), COMMANDED)
async def test_command_results(pool: WorkerPool, tmp_path: Path, body: str, error: str | None, shown: Any) -> None:
    poll = f'local device = {DEVICE} device.attributes.power = ctx.memory.power or "off" return {{ device }}'
    it = await start(pool, tmp_path, kind(poll, f"command = function(ctx, device, command) {body} end,"), Vendor({}))
    await it.poll()
    assert await it.command("a", "power", "on") == error
    assert it.registry.get_device("it:a").attributes["power"] == shown


async def test_a_command_that_raises_is_an_error_of_the_file(pool: WorkerPool, tmp_path: Path) -> None:
    it = await start(
        pool, tmp_path, kind(more="command = function(ctx, device) local x = device.no.such end,"), Vendor({})
    )
    await it.poll()
    with pytest.raises(AdapterFailed, match=r"mine.lua:1: attempt to index a nil value \(field 'no'\)"):
        await it.command("a", "power", "on")


async def test_operations_are_functions_with_their_own_timeout(pool: WorkerPool, tmp_path: Path) -> None:
    add = "add = function(ctx, given) return given.a + 1 end"
    slow = "slow = { timeout_secs = 60, run = function() return nil, 'no' end }"
    endless = "endless = function() return { 1 / 0, 1 } end"
    operations = f"operations = {{ {add}, {slow}, {endless} }},"
    it = await start(pool, tmp_path, kind(more=operations), Vendor({}))
    assert it.adapter.operation_secs == {"add": 5.0, "slow": 60.0, "endless": 5.0}
    assert await it.adapter.operations["add"]({"a": 2}) == 3
    with pytest.raises(
        AdapterFailed, match=r"the result of operations.endless\[1\] holds a number that is not finite"
    ):
        await it.adapter.operations["endless"]({})
    with pytest.raises(BadAnswer, match="no"):
        await it.adapter.operations["slow"]({})


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("return 7", ["config/adapters/mine.lua:1: must return a table, not a number"]),
        ("return { nam = 'x' }", ["name is missing", "nam is not a field of a kind; did you mean name?"]),
        ("return { name = 'x', pol = 1 }", ["pol is not a field of a kind; did you mean poll?"]),
        ("return { name = 'x', poll = 1 }", ["poll must be a function, not 1"]),
        (
            "return { name = 'x', settings = { a = { type = 'strin' } } }",
            [
                "settings.a.type must be one of string, integer, number, boolean, duration, list, not 'strin'; "
                "did you mean string?"
            ],
        ),
        (
            "return { name = 'x', settings = { a = { type = 'integer', default = 'x' } } }",
            ["settings.a.default must be a whole number"],
        ),
        (
            "return { name = 'x', settings = { a = { type = 'number', min = 9, max = 1 } } }",
            ["settings.a.type is number, but min (9) is greater than max (1)"],
        ),
        (
            "return { name = 'x', listen = { path = '/', kind = 'sse', receive = print, hello = print } }",
            ["listen.kind is sse, which is receive-only; remove hello and reply"],
        ),
        (
            "local x = json.decode('1') return {}",
            ["json is available only in a kind's functions, not while the kind's file"],
        ),
        ("ctx:now() return {}", ["ctx is the first parameter of `execute` and of each function of a kind"]),
        ("return { name = 'x', origins = { api = 'ftp://x' } }", ["origins.api must be an address"]),
        (
            "return { name = 'x', origins = { api = { setting = 'nowhere' } } }",
            ["names an unknown setting: 'nowhere'"],
        ),
        ("return { name = 'x', operations = { chat = {} } }", ["operations.chat.run is missing"]),
        ("return {\n name = 'x',\n poll = function() end\n base = 1 }", ["mine.lua:4: '}' expected"]),
    ],
)
async def test_errors_have_their_lines(pool: WorkerPool, tmp_path: Path, text: str, faults: list[str]) -> None:
    with pytest.raises(ConfigFailed) as failed:
        await start(pool, tmp_path, text, Vendor({}))
    for fault in faults:
        assert fault in str(failed.value)
    assert str(failed.value).startswith("config/adapters/mine.lua:")


async def test_a_section_is_checked_by_its_kind(pool: WorkerPool, tmp_path: Path) -> None:
    settings = (
        'settings = { host = { type = "string", required = true, description = "which machine" },'
        ' every = { type = "duration", default = "5m", min = 60 },'
        ' mode = { type = "string", values = { "eco", "warm" } }, zone = { type = "integer", values = { 1, 2 } },'
        ' days = { type = "list", values = { "mon", "tue" } },'
        ' poll_interval_secs = { type = "integer", min = 60, max = 90 },'
        ' pin = { type = "string", secret = true, values = { "one", "two" } },'
        ' api_key = { type = "string" } },'
    )
    with pytest.raises(ConfigFailed) as failed:
        await start(
            pool,
            tmp_path,
            kind(more=settings),
            Vendor({}),
            every="5s",
            mode="ecco",
            hst="x",
            api_key=7,
            zone=3,
            days=["mon", "tu"],
            poll_interval_secs=5,
            pin="three",
        )
    assert failed.value.lines == [
        "config/default.toml:7: adapters.it.api_key must be a non-empty string without line breaks or other control "
        "characters",
        "config/default.toml:7: adapters.it.days must be one of mon, tue, not 'tu'; did you mean tue?",
        "config/default.toml:7: adapters.it.every must be from 60 to 34560000 seconds, not '5s'",
        "config/default.toml:7: adapters.it.host is missing: which machine",
        "config/default.toml:7: adapters.it.hst is not a setting of the kind mine; did you mean adapters.it.host?",
        "config/default.toml:7: adapters.it.mode must be one of eco, warm, not 'ecco'; did you mean eco?",
        "config/default.toml:7: adapters.it.pin must be of type string, and within the setting's limits",
        "config/default.toml:7: adapters.it.poll_interval_secs must be a whole number from 60 to 90, not 5",
        "config/default.toml:7: adapters.it.zone must be one of 1, 2, not 3",
    ]
    it = await start(pool, tmp_path, kind(more=settings), Vendor({}), host="x", zone=2, days=["tue"], pin="two")
    assert isinstance(it.adapter, LuaAdapter) and it.adapter.functions.settings["every"] == 300.0


async def test_an_endless_function_is_stopped_and_its_line_named(pool: WorkerPool, tmp_path: Path) -> None:
    async with open_pool(RunLimits(max_cpu_secs=0.1)) as short:
        it = await start(short, tmp_path, kind("while true do end"), Vendor({}))
        with pytest.raises(
            AdapterFailed, match=r"mine.lua:2: (used 0.1 s of processor time|ran for 1 s) without waiting"
        ):
            await it.poll()


async def test_a_replaced_kind_is_one_log_line(
    pool: WorkerPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "config" / "adapters"
    folder.mkdir(parents=True)
    catalog = build_kind_catalog(tmp_path / "config" / "default.toml", [], pool.describe, Bus())
    await catalog.load()
    for name in ("shelly", "mine", "shelly"):
        (folder / f"{name}.lua").write_text(kind())
        with caplog.at_level(logging.INFO):
            await catalog.reload()
    message = "adapters/shelly.lua replaces the bundled kind with this name"
    assert [each.getMessage().removeprefix("config/") for each in caplog.records] == [message]


@pytest.mark.slow
async def test_check_lists_names_without_a_value(pool: WorkerPool, tmp_path: Path) -> None:
    (tmp_path / "config" / "adapters").mkdir(parents=True)
    (tmp_path / "config" / "adapters" / "mine.lua").write_text(kind("local x = jsn.decode('7')\nreturn {}"))
    catalog = build_kind_catalog(tmp_path / "config" / "default.toml", [], pool.describe, Bus())
    found = (await catalog.files.read([])).check()
    assert (found.faults, found.warnings) == ([], [])
    sources, describe = [each.source for each in found.valid], partial(pool.describe, is_kind=True)
    [fault] = await find_undefined(sources, describe, is_kind=True)
    assert str(fault) == "config/adapters/mine.lua:2: jsn has no value in any file, so it is nil; did you mean json?"


class Received:
    """An answer that a weak reference can refer to."""


@pytest.mark.parametrize("error", [Unreachable, Unanswered, Unreadable, BadAnswer])
async def test_an_unusable_answer_is_freed_without_a_garbage_collection(
    pool: WorkerPool, tmp_path: Path, error: type[AdapterFailed]
) -> None:
    answers: list[weakref.ref[Received]] = []

    def refuse(_: Any) -> Any:
        answer = Received()
        answers.append(weakref.ref(answer))
        raise error("no")

    it = await start(pool, tmp_path, kind("ctx:http({ path = '/' }) return {}"), Vendor(refuse))
    gc.disable()
    try:
        for _ in range(3):
            with suppress(AdapterFailed):
                await it.poll()
        await asyncio.sleep(0)
        assert [each() for each in answers] == [None] * 3
    finally:
        gc.enable()


async def test_removed_devices_leave_no_objects(pool: WorkerPool, tmp_path: Path) -> None:
    """A vendor may report new ids all the time."""
    device = DEVICE.replace('"a"', 'ctx.memory.n .. "." .. i')
    poll = f"""ctx.memory.n = (ctx.memory.n or 0) + 1
    local found = {{}}
    for i = 1, 100 do found[i] = {device} end
    return found"""
    it = await start(pool, tmp_path, kind(poll), Vendor({}))

    async def count_after(polls: int) -> int:
        for _ in range(polls):
            await it.poll()
        gc.collect()
        return len(gc.get_objects())

    before = await count_after(polls=2)
    assert len(it.registry.list_devices()) == 100
    assert await count_after(polls=3) < before + 100


async def test_pushed_devices_are_limited(pool: WorkerPool, tmp_path: Path) -> None:
    """Without a limit, a vendor that reports new ids all the time could fill the memory."""
    hook = f"""hook = function(ctx, request)
      local found, n = {{}}, request.data.n
      for i = 1, request.data.count do found[i] = {DEVICE.replace('"a"', 'n .. "." .. i')} end
      return {{ devices = found, complete = request.data.complete }}
    end,"""
    it = await start(pool, tmp_path, kind(more=hook), Vendor({}))
    await it.poll()

    async def report(n: int, count: int, *, is_complete: bool = False) -> list[str]:
        data = {"n": n, "count": count, "complete": is_complete}
        await it.adapter.hook(HookRequest(hook="it", method="POST", data=data))
        return [each.id for each in it.registry.list_devices()]

    assert len(await report(1, 1000)) == 1001
    assert len(await report(2, 1000)) == len(await report(3, 2)) == MAX_DEVICES
    assert [(each.device_id, each.attribute) for each in it.dropped] == [("it", "devices")]
    assert await report(4, 2, is_complete=True) == ["it:4.1", "it:4.2"]
    assert len(await report(5, 1)) == 3
