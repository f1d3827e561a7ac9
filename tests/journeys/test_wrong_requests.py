"""Requests that cannot be: refused with a sentence, told to nobody, and they change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tests.fakes.app import LARGE, LIGHT, READER, TV, App

SECOND = "elgato_lights:light:1"
ON = {"capability": "power", "action": "on"}

NO_OBJECTS: list[tuple[Any, str]] = [
    ([], "the body must be a JSON object, not an array"),
    ("den", "the body must be a JSON object, not 'den'"),
    (None, "the body must be a JSON object, not null"),
]
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
NO_MEMBERS: list[tuple[Any, str]] = [
    (None, "members must be an array, not null"),
    ({}, "members must be an array, not an object"),
    (LIGHT, f"members must be an array, not '{LIGHT}'"),
    ([7], "members at index 0 must be a string, not 7"),
    ([[LIGHT]], "members at index 0 must be a string, not an array"),
    ([""], "members at index 0 must have 1 to 256 characters, not 0"),
    (["nothing"], "device 'nothing' not found"),
    ([LIGHT, SECOND, TV], f"device '{SECOND}' not found"),
    ([LIGHT.upper()], f"device '{LIGHT.upper()}' not found"),
]
NO_KEYS: list[tuple[Any, str]] = [
    ({"label": "x"}, "role is missing"),
    ({"role": "read"}, "label is missing"),
    ({"label": " \t ", "role": "read"}, "label must have 1 to 100 characters, not 0"),
    ({"label": "x" * 101, "role": "read"}, "label must have 1 to 100 characters, not 101"),
    ({"label": "a\x7f", "role": "read"}, "label must not contain control characters"),
    ({"label": None, "role": "read"}, "label must be a string, not null"),
    *(
        ({"label": "x", "role": role}, f"role must be one of read, write, admin, automation, hook, not {shown}")
        for role, shown in (("owner", "'owner'"), ("Read", "'Read'; did you mean read"), ("", "''"), (None, "null"))
    ),
]


def wrong_bodies() -> Iterator[tuple[str, Any, str]]:
    """Each path, a body that it refuses, and the sentence."""
    places = ("/rooms", "/groups")
    devices = (f"/devices/{LIGHT}/room", f"/devices/{LIGHT}/name")
    for path in (*places, *devices, "/groups/all/members", "/auth/keys"):
        yield from ((path, body, said) for body, said in NO_OBJECTS)
    for path in places:
        yield path, {"id": "den"}, "name is missing"
        yield path, {"name": "Den"}, "id is missing"
        yield from ((path, {"id": wrong, "name": "Den"}, said.format("id")) for wrong, said in NO_IDS)
        for wrong, said in NO_IDS[:2]:
            yield path, {"id": "den", "name": wrong}, said.format("name").replace("256", "1000")
        yield path, {"id": "den", "name": "n" * 1001}, "name must have 1 to 1000 characters, not 1001"
        yield path, {"id": "den", "name": None}, "name must be a string, not null"
    for wrong, said in NO_MEMBERS:
        yield "/groups/all/members", {"members": wrong}, said
        for group_id in ("all", "new"):
            yield "/groups", {"id": group_id, "name": "Other", "members": wrong}, said
    yield "/groups/all/members", {}, "members is missing"
    yield from ((devices[0], {"room_id": wrong}, said.format("room_id")) for wrong, said in NO_IDS)
    yield from ((devices[0], {"room_id": wrong}, f"room '{wrong}' not found") for wrong in ("attic", "DEN"))
    yield devices[0], {"room": "den"}, "room_id is missing"
    yield from (
        (devices[1], {"name": wrong}, said.format("name").replace("256", "1000")) for wrong, said in NO_IDS[:2]
    )
    yield devices[1], {"name": 5}, "name must be a string, not 5"
    yield devices[1], {}, "name is missing"
    yield from (("/auth/keys", body, said) for body, said in NO_KEYS)


async def test_a_body_that_cannot_be_is_refused_and_changes_nothing(app: App) -> None:
    await app.post("/rooms", {"id": "den", "name": "Den"})
    await app.post("/groups", {"id": "all", "name": "All", "members": [TV]})
    await app.post(f"/devices/{LIGHT}/room", {"room_id": "den"})
    lists = ("/rooms", "/groups", "/devices", "/auth/keys")
    before = [(await app.get(path)).json for path in lists]
    paths = set()
    async with app.stream() as frames:
        for path, body, said in wrong_bodies():
            paths.add(path)
            answer = await app.post(path, body, data=b"null" if body is None else None)
            assert (answer.status, answer.json["error"]) == (400, said), (path, body)
        for path in paths:
            assert (await app.post(path, data=b"{")).status == 400
            answer = await app.post(path, data=LARGE)
            said = "the body is larger than 65536 bytes"
            assert (answer.status, answer.json) == (413, {"error": said, "code": "body_too_large"})
            assert (await app.post(path, {"name": "x"}, token=READER.text)).status == 403
        assert await app.received(frames) == []
    for path, was in zip(lists, before, strict=True):
        now = (await app.get(path)).json
        assert [{**each, "last_seen": None} for each in now] == [{**each, "last_seen": None} for each in was]


BODIES = (b"", b"not JSON", b'{"capability":"power","action":"on"}', LARGE)
IDS = {
    "room": ("nothing", "a/b"),
    "group": ("nothing", "a/b"),
    "device": (
        *("nothing", SECOND, LIGHT.upper(), "a/b", "käse x", "%", "%65lgato", "x" * 256),
        "x" * 300,
    ),
}
BELOW = {
    "room": ("/devices", "/command"),
    "group": ("/devices", "/members", "/command"),
    "device": ("/room", "/name"),
}


async def test_what_does_not_exist_is_named_whatever_the_body_is(app: App) -> None:
    for kind, ids in IDS.items():
        for id_ in ids:
            path = f"/{kind}s/{quote(id_, safe='')}"
            named = id_ if len(id_) <= 256 else f"{id_[:255]}…"
            missing = (404, {"error": f"{kind} '{named}' not found", "code": f"{kind}_not_found"})
            asked = [("GET", path, b""), *([("DELETE", path, b"")] if kind != "device" else [])]
            for below in (*BELOW[kind], "/command"):
                method = "GET" if below == "/devices" else "POST"
                asked += [(method, path + below, body) for body in BODIES]
            for method, url, data in asked:
                answer = await app.ask(method, url, data=None if method == "GET" else data)
                assert (answer.status, answer.json) == missing, (method, url)
    for path in ("/rooms/", "/rooms/den/", "/rooms/den/members", "/groups/all/members/", "/groups/all/rooms"):
        assert (await app.get(path)).json == {"error": "there is no such path", "code": "path_not_found"}


BEYOND_UTC = "9999-12-31T23:59:59-14:00"
LIMIT, TIME = (
    "limit must be a whole number from 1 to {}, not '{}'",
    "{} must be a time like 2026-11-20T08:00:00Z, not '{}'",
)


async def test_a_query_that_cannot_be_understood_is_400(app: App) -> None:
    histories = (
        f"/devices/{LIGHT}/history",
        f"/devices/{LIGHT}/history/power",
        "/audit/commands",
        "/diagnostics/log",
    )
    for path in histories:
        most = 2000 if "log" in path else 1000
        wrong = {f"limit={each}": LIMIT.format(most, each) for each in ("0", most + 1, "-1", "", "2.0", "x")}
        if "log" in path:
            wrong |= {"level=loud": "level", "level=": "level"}
        else:
            dates = ("yesterday", "", "2026-01-01", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z", BEYOND_UTC)
            wrong |= {f"{end}={each}": TIME.format(end, each) for end in ("start", "end") for each in dates}
            wrong |= {"device_id=": "device_id"} if "audit" in path else {"resolution=second": "resolution"}
        for query, said in wrong.items():
            answer = await app.get(f"{path}?{query}")
            assert answer.status == 400 and answer.json["error"].startswith(said), (path, query)
        last = "" if "log" in path else "&start=0001-01-01T00:00:00Z&end=9999-12-31T23:59:59.999999Z"
        assert (await app.get(f"{path}?limit={most}&whatever=1{last}")).status == 200, path
    for path in ("/devices?include=x", f"/devices/{LIGHT}?include=", f"/devices/{LIGHT}?include=commands&include=y"):
        assert (await app.get(path)).status == 400
