"""Wrong requests: each request gets the correct status, code, and error message, and changes nothing.

`test_errors` covers malformed HTTP. `test_roles` covers keys, roles, methods, and the order of the checks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from appliance.api.limits import MAX_PREFERENCES_BYTES
from appliance.home.events import HookCalled
from tests.fakes.app import LARGE, LIGHT, TV, App, open_app
from tests.fakes.lua import automation, scene, write

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECOND = "elgato_lights:light:1"
EVENING = "config/scenes/evening.lua"
CONFIG = """
[adapters.plug]
type = "tasmota_http"
base_url = "http://127.0.0.1:9"
[adapters.lamp]
type = "elgato_lights"
enabled = false
base_url = "http://127.0.0.1:9"
"""
FILES = {
    "automations/bell.lua": automation("bell", "{ type = 'webhook', hook = 'bell' }"),
    "scenes/evening.lua": scene("evening"),
    "test.toml": CONFIG,
}

Row = tuple[str, str, Any, int, str, str]
"""Method, path, body (JSON or bytes), status, code, and a part of the error message."""

INVALID, REQUEST, TOO_LARGE = (400, "invalid_value"), (400, "invalid_request"), (413, "body_too_large")
LARGER = "the body is larger than 65536 bytes, the limit of this path"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    root = write(tmp_path_factory.mktemp("home"), FILES)
    (root / "data").mkdir()
    async with open_app(root=root, data_dir=root / "data") as app:
        await app.post("/rooms", {"id": "den", "name": "Den"})
        await app.post("/groups", {"id": "all", "name": "All", "members": [LIGHT, TV]})
        await app.post(f"/devices/{LIGHT}/room", {"room_id": "den"})
        await app.post(f"/devices/{LIGHT}/alias", {"alias": "desk"})
        await app.ask("PUT", "/preferences", json={"a": 1})
        yield app


BODIES: list[tuple[Any, str]] = [
    (b"", "the body cannot be read as JSON: it is empty"),
    (b"{", "the body cannot be read as JSON"),
    (b'{"id": "\xff"}', "the body cannot be read as JSON: byte 9 is not UTF-8"),
    (b'{"id": "\\ud800", "name": "x"}', "the body cannot be read as JSON"),
    (b"NaN", "the body cannot be read as JSON"),
    (b"1e400", "the body cannot be read as JSON: number is infinity"),
    (b"[" * 60_000, "the body cannot be read as JSON: depth limit exceeded, line 1 column "),
    ([], "the body must be a JSON object, not an array"),
    ("den", "the body must be a JSON object, not 'den'"),
    (b"null", "the body must be a JSON object, not null"),
]
ALL_WITH_BODY = ("/rooms", "/groups", "/groups/all/members", "/auth/keys", f"/devices/{LIGHT}/room",
                 f"/devices/{LIGHT}/name")  # fmt: skip


def bodies() -> Iterator[Row]:
    """Yield bodies that are too large, or that are not JSON objects."""
    for path in ALL_WITH_BODY:
        yield from (("POST", path, body, *REQUEST, message) for body, message in BODIES)
        yield "POST", path, LARGE, *TOO_LARGE, LARGER
    for body, message in BODIES[-3:]:
        yield "POST", "/adapters/elgato_lights/operations/x", body, *REQUEST, message
    yield "POST", "/rooms", b"\xef\xbb\xbf{}", *REQUEST, "id is missing"
    yield "POST", "/rooms", b'{"id": 1' + b"0" * 60_000 + b"}", 400, "", ""


NO_IDS: list[tuple[Any, str]] = [
    ("", "{} must have 1 to 256 characters, not 0"),
    (" ", "{} must have 1 to 256 characters, not 0"),
    ("i" * 257, "{} must have 1 to 256 characters, not 257"),
    ("d\ne", "{} must not contain control characters"),
    ("a\0b", "{} must not contain control characters"),
    ("a\u202eb", "{} must not contain the invisible character U+202E"),
    (7, "{} must be a string, not 7"),
    (False, "{} must be a string, not false"),
    (["den"], "{} must be a string, not an array"),
]


def rooms_and_groups() -> Iterator[Row]:
    """Yield wrong ids, names, and members."""
    for path in ("/rooms", "/groups"):
        yield "POST", path, {"id": "den"}, *REQUEST, "name is missing"
        yield "POST", path, {"name": "Den"}, *REQUEST, "id is missing"
        for wrong, message in NO_IDS:
            yield "POST", path, {"id": wrong, "name": "Den"}, *INVALID, message.format("id")
        for wrong, message in NO_IDS[:2]:
            named = message.format("name").replace("256", "1000")
            yield "POST", path, {"id": "den", "name": wrong}, *INVALID, named
        long = "name must have 1 to 1000 characters, not 1001"
        yield "POST", path, {"id": "den", "name": "n" * 1001}, *INVALID, long
        yield "POST", path, {"id": "den", "name": None}, *INVALID, "name must be a string, not null"
    for wrong, message in (
        (None, "members must be an array, not null"),
        ({}, "members must be an array, not an object"),
        (LIGHT, f"members must be an array, not '{LIGHT}'"),
        ([7], "members at index 0 must be a string, not 7"),
        ([[LIGHT]], "members at index 0 must be a string, not an array"),
        ([""], "members at index 0 must have 1 to 256 characters, not 0"),
        (["nothing"], "device 'nothing' not found"),
        ([LIGHT, SECOND, TV], f"device '{SECOND}' not found"),
        ([LIGHT.upper()], f"device '{LIGHT.upper()}' not found"),
    ):
        yield "POST", "/groups/all/members", {"members": wrong}, *INVALID, message
        for group_id in ("all", "new"):
            yield "POST", "/groups", {"id": group_id, "name": "Other", "members": wrong}, *INVALID, message
    yield "POST", "/groups/all/members", {}, *REQUEST, "members is missing"


def devices() -> Iterator[Row]:
    """Yield wrong rooms, names, and aliases of a device."""
    room, name, alias = (f"/devices/{LIGHT}/{each}" for each in ("room", "name", "alias"))
    for wrong, message in NO_IDS:
        yield "POST", room, {"room_id": wrong}, *INVALID, message.format("room_id")
    for wrong in ("attic", "DEN"):
        yield "POST", room, {"room_id": wrong}, *INVALID, f"room '{wrong}' not found"
    yield "POST", room, {"room": "den"}, *REQUEST, "room_id is missing"
    for wrong, message in NO_IDS[:2]:
        yield "POST", name, {"name": wrong}, *INVALID, message.format("name").replace("256", "1000")
    yield "POST", name, {"name": 5}, *INVALID, "name must be a string, not 5"
    yield "POST", name, {}, *REQUEST, "name is missing"
    rule = "alias must begin with a letter a-z and contain only a-z, 0-9 and _, at most 64 characters"
    for wrong in ("", "Lamp", "1lamp", "hall-lamp", " ", "a" * 65, "a" * 1001, "küche", "a\nb", "a\u202eb"):
        yield "POST", alias, {"alias": wrong}, *INVALID, rule
    yield "POST", alias, {"alias": 7}, *INVALID, "alias must be a string, not 7"
    yield "POST", alias, {}, *REQUEST, "alias is missing"
    yield "POST", f"/devices/{TV}/alias", {"alias": "desk"}, 409, "alias_taken", f"belongs to device '{LIGHT}'"
    yield "GET", f"/devices/{LIGHT}/picture?attribute=", None, *INVALID, "attribute"


COMMANDS: list[tuple[Any, str, str]] = [
    ([], "invalid_request", "a command must be an object with capability and action"),
    ({"capability": "power"}, "invalid_request", "action must be a non-empty string"),
    ({"action": "on"}, "invalid_request", "capability must be a non-empty string"),
    ({"capability": "warp", "action": "on"}, "", "unknown capability 'warp'; GET /capabilities lists them"),
    ({"capability": "power", "action": "go"}, "", "power has no action 'go'; its actions are: on, off, toggle"),
    ({"capability": "power", "action": "on", "value": True}, "", "power: the action 'on' takes no value"),
    ({"capability": "brightness", "action": "set"}, "", "brightness: the action 'set' needs a value"),
    ({"capability": "power", "action": "on", "transition_secs": -1}, "",
     "transition_secs must be 0 or more seconds, not -1"),
    ({"capability": "target_temperature", "action": "set", "value": 21}, "",
     'the value of target_temperature needs a unit; write { value = 21, unit = "…" }'),
]  # fmt: skip
"""Wrong values of a command. `tests/home/test_commands.py` has all errors."""

NOT_OFFERED: list[tuple[str, str, str, Any]] = [
    (LIGHT, "brightness", "increase", 10),
    (LIGHT, "brightness", "decrease", 10),
    (LIGHT, "color_temperature", "increase", {"value": 3000, "unit": "kelvin"}),
    (LIGHT, "color_hex", "set", "#ffa500"),
    (LIGHT, "effect", "stop", None),
    (LIGHT, "state", "get", None),
    (LIGHT, "lock", "unlock", None),
    (TV, "brightness", "set", 50),
    (TV, "volume", "set", 50),
    (TV, "muted", "mute", None),
    (TV, "state", "get", None),
    (TV, "media_playback", "play", None),
]


def commands() -> Iterator[Row]:
    """Yield malformed commands, and commands that a device does not offer."""
    hot = {"capability": "color_temperature", "action": "set", "value": {"value": 7001, "unit": "kelvin"}}
    for path in (f"/devices/{LIGHT}", f"/devices/{TV}", "/rooms/den", "/groups/all"):
        for body, code, message in COMMANDS:
            yield "POST", f"{path}/command", body, 400, code or "invalid_value", message
        own = "color_temperature must be from 2900 to 7000 kelvin for this device, not 7001"
        every = "value of color_temperature: value must be an integer from 2200 to 7000, not 7001"
        yield "POST", f"{path}/command", hot, *INVALID, own if LIGHT in path else every
    for device_id, capability, action, value in NOT_OFFERED:
        body = {"capability": capability, "action": action} | ({} if value is None else {"value": value})
        hint = (
            "; its actions are: set" if device_id == LIGHT and capability in ("brightness", hot["capability"]) else ""
        )
        message = f"device '{device_id}' does not offer {capability} {action}{hint}"
        yield "POST", f"/devices/{device_id}/command", body, 501, "unsupported", message


def keys() -> Iterator[Row]:
    """Yield keys that cannot be created."""
    label, role = "label must have 1 to 100 characters, not", "role must be one of"
    for stated, code, message in (
        ({"label": "x"}, REQUEST, "role is missing"),
        ({"role": "read"}, REQUEST, "label is missing"),
        ({"label": " \t ", "role": "read"}, INVALID, f"{label} 0"),
        ({"label": "x" * 101, "role": "read"}, INVALID, f"{label} 101"),
        ({"label": "a\x7f", "role": "read"}, INVALID, "label must not contain control characters"),
        ({"label": None, "role": "read"}, INVALID, "label must be a string, not null"),
        *(
            ({"label": "x", "role": wrong}, INVALID, f"{role} read, write, admin, automation, hook, not {shown}")
            for wrong, shown in (
                ("owner", "'owner'"), ("Read", "'Read'; did you mean read?"), ("", "''"), (None, "null"),
            )
        ),
        ({"label": "x", "role": "hook"}, (400, ""), "hook is missing; a key with the role 'hook'"),
        ({"label": "x", "role": "hook", "hook": None}, (400, ""), "hook is missing"),
        ({"label": "x", "role": "read", "hook": "bell"}, INVALID, "hook is only allowed with the role 'hook'"),
        ({"label": "x", "role": "hook", "hook": "a\nb"}, INVALID, "hook must not contain control characters"),
        ({"label": "x", "role": "hook", "hook": ""}, INVALID, "hook must have 1 to 263 characters, not 0"),
        ({"label": "x", "role": "hook", "hook": 5}, INVALID, "hook must be a string, not 5"),
    ):  # fmt: skip
        yield "POST", "/auth/keys", stated, *code, message
    yield "DELETE", "/auth/keys/x", None, 404, "key_not_found", "key 'x' not found"


def hooks() -> Iterator[Row]:
    """Yield hook calls that do not fire a trigger."""
    for body, code, message in (
        (b"x" * (16 << 10), REQUEST, "the body cannot be read as JSON: unexpected character, "),
        (b'"' + b"x" * (16 << 10) + b'"', TOO_LARGE, "the body is larger than 16384 bytes, the limit of this path"),
        (b"[" * 40 + b"]" * 40, (400, ""), "the body must not be nested more than 32 levels deep"),
        (b'{"a":', REQUEST, "the body cannot be read as JSON: unexpected end of data, line 1 column 6"),
        (b"\xff\xfe", REQUEST, "the body cannot be read as JSON: byte 1 is not UTF-8"),
    ):
        yield "POST", "/hooks/bell", body, *code, message
        yield "POST", "/hooks/nobody", body, 404, "hook_not_found", "hook 'nobody' not found"


def values() -> Iterator[Row]:
    """Yield wrong preferences and variables."""
    room = MAX_PREFERENCES_BYTES - len('{"a":""}')
    for body, status, message in (
        (b'{"a":"' + b"x" * (room + 1) + b'"}', 413, "at most 16384 bytes, not 16385"),
        (b"[]", 400, "must be a JSON object"),
        (b"null", 400, "must be a JSON object"),
        (b"", 400, "it is empty"),
        (b'{"a"', 400, "cannot be read as JSON"),
        (b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", 400, "nested"),
    ):
        yield "PUT", "/preferences", body, status, "", message
    for name in ("A", "a%20b", "x" * 65):
        yield "PUT", f"/variables/{name}", {"value": 1}, 400, "", "name"
    yield "PUT", "/variables/a", {}, *REQUEST, "value is missing"
    null = "value must not be null; to remove a variable, use DELETE"
    yield "PUT", "/variables/a", {"value": None}, *INVALID, null
    large = "variable 'a': the value has 16386 bytes as JSON; at most 16384 are allowed"
    yield "PUT", "/variables/a", {"value": "x" * (16 << 10)}, *INVALID, large
    yield "PUT", "/variables/a", LARGE, *TOO_LARGE, LARGER
    yield "GET", "/variables/A", None, 404, "variable_not_found", "variable 'A' not found"


def nested(depth: int) -> bytes:
    """Return a body with a payload of this depth."""
    return b'{"trigger_payload": {"x": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}}"


def automations() -> Iterator[Row]:
    """Yield wrong manual runs and simulations."""
    for body in (b"not JSON", b"[]", b'{"trigger_payload": 7}', b'{"trigger_payload": []}', nested(33), nested(900)):
        yield "POST", "/automations/bell/execute", body, 400, "", ""
    for asked, code, message in (
        ({"path": EVENING, "text": "return {"}, "invalid_file", "line 1"),
        ({"text": "return {}"}, "invalid_value", "path and text"),
        ({"path": "x", "text": ""}, "invalid_value", "neither a file"),
        ({"from": "yesterday"}, "invalid_value", "from must be a time"),
        ({"hours": 0}, "invalid_value", "hours must be"),
        ({"hours": "2"}, "invalid_value", "hours must be"),
        ({"events": "what"}, "invalid_file", "line 1"),
        ({"events": [7]}, "invalid_value", "events must be"),
    ):
        yield "POST", "/simulate", {"from": "2026-11-20T00:00:00Z", **asked}, 400, code, message


NO_FILES = (
    "config/../secret.lua",
    "config/scenes/../../x.lua",
    "config/scenes/%2e%2e/x.lua",
    "config/scenes/..%2F..%2Fx.lua",
    "config/scenes/sub/x.lua",
    "config/scenes/x.txt",
    "config/scenes/.x.lua",
    "config/scenes/x.lua%00",
    "config/scenes/x%0A.lua",
    "config/other.toml",
    "config/recipes/x.lua",
    "etc/passwd",
    "%2Fetc%2Fpasswd",
    "config/scenes/" + "x" * 300 + ".lua",
)


def files() -> Iterator[Row]:
    """Yield unknown files, wrong bodies, and wrong sections of the configuration."""
    for path in NO_FILES:
        yield "PUT", f"/files/{path}", {"text": scene("x")}, *INVALID, ""
        yield "GET", f"/files/{path}", None, 404, "", ""
        yield "DELETE", f"/files/{path}", None, 404, "", ""
    wrong_bodies: tuple[Any, ...] = ({}, {"text": 7}, {"text": "", "version": 7}, [])
    yield from (("PUT", f"/files/{EVENING}", body, 400, "", "") for body in wrong_bodies)
    yield "DELETE", "/files/config/test.toml", None, 405, "", ""
    for name, asked, status, code, message in (
        ("plug", {"kind": "tasmota_http", "values": {"base_url": "x"}}, 400, "invalid_file", "base_url"),
        ("plug", {"kind": "tasmota_http", "values": {"adress": "x"}}, 400, "invalid_file", "adress"),
        ("lamp", {"kind": "tasmota_http", "values": {"token": "***"}}, 400, "invalid_file", "***"),
        ("plug", {"kind": "wled", "is_new": True}, 409, "file_exists", "adapters.plug"),
        ("plug", {"kind": "tasmota_http", "version": "old"}, 409, "file_changed", "has changed"),
        ("plug", {}, 400, "invalid_request", "kind"),
        ("new", {"kind": "wlde"}, 400, "invalid_file", "did you mean wled?"),
        ("new", {"kind": "wled"}, 400, "invalid_file", "base_url is missing"),
        ("New!", {"kind": "wled"}, 400, "invalid_file", "not a valid adapter name"),
    ):
        yield "PUT", f"/files/sections/{name}", asked, status, code, message


BEYOND_UTC = "9999-12-31T23:59:59-14:00"


def queries() -> Iterator[Row]:
    """Yield invalid queries."""
    for path in (
        f"/devices/{LIGHT}/history",
        f"/devices/{LIGHT}/history/power",
        "/audit/commands",
        "/diagnostics/log",
    ):
        most = 2000 if "log" in path else 1000
        wrong = {
            f"limit={each}": f"limit must be a whole number from 1 to {most}, not '{each}'"
            for each in ("0", most + 1, "-1", "", "2.0", "x")
        }
        if "log" in path:
            wrong |= {"level=loud": "level", "level=": "level"}
        else:
            dates = ("yesterday", "", "2026-01-01", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z", BEYOND_UTC)
            wrong |= {
                f"{end}={each}": f"{end} must be a time like 2026-11-20T08:00:00Z, not '{each}'"
                for end in ("start", "end")
                for each in dates
            }
            wrong |= {"device_id=": "device_id"} if "audit" in path else {"resolution=second": "resolution"}
        yield from (("GET", f"{path}?{query}", None, 400, "", message) for query, message in wrong.items())
    for path in (
        *(f"/devices/{LIGHT}/history", f"/devices/{LIGHT}/history/power", "/audit/commands"),
        *("/automations/bell/history", "/scenes/evening/history"),
    ):
        reversed_period = "start=2026-11-20T08:00:00Z&end=2026-11-20T08:59:59%2B01:00"
        yield "GET", f"{path}?{reversed_period}", None, *INVALID, "end must not be before start"
    for path in ("/devices?include=x", f"/devices/{LIGHT}?include=", f"/devices/{LIGHT}?include=commands&include=y"):
        yield "GET", path, None, 400, "", ""
    for wrong_secs in ("0", "31", "1.5", "", "x"):
        yield "GET", f"/discovery?seconds={wrong_secs}", None, 400, "", "seconds"


IDS = {
    "room": ("nothing", "a/b"),
    "group": ("nothing", "a/b"),
    "device": (*("nothing", SECOND, LIGHT.upper(), "a/b", "käse x", "%", "%65lgato", "x" * 256), "x" * 300),
}
BELOW = {
    "room": ("/devices", "/command"),
    "group": ("/devices", "/members", "/command"),
    "device": ("/room", "/name", "/alias", "/command"),
}
ANY_BODY = (b"not JSON", b"", b'{"capability":"power","action":"on"}', LARGE)


def missing() -> Iterator[Row]:
    """Yield unknown paths and ids. The error contains the unknown name, whatever the body is."""
    for kind, ids in IDS.items():
        for id_ in ids:
            path = f"/{kind}s/{quote(id_, safe='')}"
            named = id_ if len(id_) <= 256 else f"{id_[:255]}…"
            found = (404, f"{kind}_not_found", f"{kind} '{named}' not found")
            yield "GET", path, None, *found
            if kind != "device":
                yield "DELETE", path, b"", *found
            for below in BELOW[kind]:
                if below == "/devices":
                    yield "GET", path + below, None, *found
                else:
                    for body in ANY_BODY if id_ == "nothing" else ANY_BODY[:1]:
                        yield "POST", path + below, body, *found
    for path in ("/rooms/", "/rooms/den/", "/rooms/den/members", "/groups/all/members/", "/groups/all/rooms"):
        yield "GET", path, None, 404, "path_not_found", "this path does not exist"
    for kind in ("scene", "automation"):
        yield "POST", f"/{kind}s/x/cancel", None, 404, f"{kind}_not_found", f"{kind} 'x' not found"
        yield "GET", f"/{kind}s/x/history?limit=0", None, 404, f"{kind}_not_found", f"{kind} 'x' not found"
    for path in ("", "/next"):
        yield "GET", f"/automations/x{path}", None, 404, "automation_not_found", "automation 'x' not found"
    yield "GET", "/adapters/x", None, 404, "adapter_not_found", "adapter 'x' not found"
    yield "GET", "/devices/x/uses", None, 404, "device_not_found", "device 'x' not found"
    yield "GET", f"/devices/{LIGHT}/picture", None, 404, "picture_not_found", ""
    yield "GET", "/events", None, 426, "upgrade_required", ""
    yield "PUT", "/rooms", {}, 405, "method_not_allowed", "this path does not support PUT"


def missing_first() -> Iterator[Row]:
    """Yield unknown ids with a wrong query and a huge body. The error names the id."""
    huge = b"x" * (2 << 20)
    for below in ("?include=nonsense", "/history?limit=x", "/history/power?resolution=x"):
        yield "GET", f"/devices/x{below}", huge, 404, "device_not_found", "device 'x' not found"
    for kind in ("room", "group", "timer", "variable"):
        yield "DELETE", f"/{kind}s/x", huge, 404, f"{kind}_not_found", f"{kind} 'x' not found"


SUBJECTS = (
    bodies,
    rooms_and_groups,
    devices,
    commands,
    keys,
    hooks,
    values,
    automations,
    files,
    queries,
    missing,
    missing_first,
)
LISTS = ("rooms", "groups", "devices", "auth/keys", "variables", "preferences", "files", "automations", "timers")


@pytest.mark.parametrize("rows", SUBJECTS, ids=lambda rows: rows.__name__)
async def test_a_wrong_request_is_refused_and_changes_nothing(home: App, rows: Any) -> None:
    root, wrong = home.hub._config.root, []

    async def state() -> Any:
        shown = [(await home.get(f"/{path}")).json for path in LISTS]
        shown[2] = [{**each, "last_seen": None} for each in shown[2]]
        return shown, sorted((root / "config").rglob("*")), sorted(root.glob("*"))

    before = await state()
    async with home.stream() as frames:
        for method, path, body, status, code, message in rows():
            sent = {"data": body} if isinstance(body, bytes) else {"json": body}
            answer = await home.ask(method, path, **sent)
            given = (answer.status, code and answer.json.get("code"))
            if given != (status, code) or message not in answer.json.get("error", ""):
                wrong.append((method, path, str(body)[:100], answer.status, answer.json))
        assert wrong == []
        assert await home.received(frames) == []
    assert await state() == before
    assert home.light.writes == [] and home.tv.keys == []
    assert not [each for each in home.events if isinstance(each, HookCalled)]
    assert home.hub.automations.figures()["ended"]["ok"] == 0


async def test_the_largest_values_and_unknown_parameters_are_accepted(home: App) -> None:
    always = "&start=0001-01-01T00:00:00Z&end=9999-12-31T23:59:59.999999Z"
    for path in (f"/devices/{LIGHT}/history", f"/devices/{LIGHT}/history/power", "/audit/commands"):
        assert (await home.get(f"{path}?limit=1000&whatever=1{always}")).status == 200, path
    assert (await home.get("/diagnostics/log?limit=2000&whatever=1")).status == 200
    largest = b'{"a":"' + b"x" * (MAX_PREFERENCES_BYTES - len('{"a":""}')) + b'"}'
    for stated in (largest, b'{"a":' + b" " * 20_000 + b"1}"):
        assert (await home.ask("PUT", "/preferences", data=stated)).status == 200
