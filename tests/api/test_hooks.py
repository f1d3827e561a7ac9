"""Hooks: permissions, the data of a call, listeners, and warnings when a key is created."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from appliance.api.hooks import read_data
from appliance.api.roles import Principal, Role
from appliance.errors import Forbidden
from appliance.home import events
from appliance.home.values import Value
from appliance.store.stored_keys import Key
from tests.api.caller import call, request
from tests.api.test_roles import FORBIDDEN, REFUSED, of
from tests.fakes.app import MASTER, READER, App, open_app
from tests.fakes.keys import MADE_AT
from tests.fakes.lua import automation, write
from tests.fakes.patience import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOME = """
[adapters.virtual]
[[adapters.virtual.devices]]
id = "door"
kind = "Sensor"
attributes = { contact = "closed" }
"""
DOOR = "device:virtual:door"
MISSING = {"error": "hook 'nobody' not found", "code": "hook_not_found"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    """Run a home with an automation for the hook `bell`, a disabled automation, and a virtual door."""
    files = {
        "automations/bell.lua": automation("bell", "{ type = 'webhook', hook = 'bell', id = 'pressed' }"),
        "automations/door.lua": automation("door", f"{{ type = 'webhook', hook = '{DOOR}' }}"),
    }
    root = write(tmp_path_factory.mktemp("home"), files)
    async with open_app(root=root, adapters=HOME, toml="[api.rate_limit]\nenabled = false\n") as app:
        yield app


async def key_for(app: App, hook: str) -> Any:
    made = await app.post("/auth/keys", {"label": f"for {hook}", "role": "hook", "hook": hook})
    assert made.status == 200
    return made.json


async def payloads(app: App, automation: str = "bell") -> list[Any]:
    """Return the events that fired the automation, newest first."""
    entries = (await app.get(f"/automations/{automation}/history")).json["entries"]
    return [entry["trigger_payload"] for entry in entries]


async def fired(app: App, count: int) -> Any:
    """Wait until this many executions have ended, and return the newest payload."""
    await until(lambda: app.hub.automations.figures()["ended"]["ok"] >= count)
    return (await payloads(app))[0]


async def test_a_call_fires_the_automation_with_its_data(shared: App) -> None:
    key, before = (await key_for(shared, "bell"))["key"], shared.hub.automations.figures()["ended"]["ok"]
    answer = await shared.post("/hooks/bell?a=1&a=2&token=mine&b", {"who": ["ann", None]}, token=key)
    assert of(answer) == (200, {"status": "ok"})
    expected = {"type": "webhook", "hook": "bell", "trigger_id": "pressed", "query": {"a": "2", "b": ""}}
    assert await fired(shared, before + 1) == {**expected, "data": {"who": ["ann", None]}}
    async with call(shared.url) as caller:
        reply = await caller.ask(request("GET", f"/hooks/bell?token={key}&x=%C3%A4"))
    assert (reply.status, reply.json) == (200, {"status": "ok"})
    assert await fired(shared, before + 2) == {**expected, "query": {"x": "ä"}}


async def test_a_hook_key_opens_only_its_hook(shared: App) -> None:
    made = await key_for(shared, "bell")
    for path in (
        "/hooks/bell2",
        "/hooks/Bell",
        "/hooks/%20bell",
        f"/hooks/{DOOR}",
        "/hooks/..%2Fbell",
        "/hooks/",
        "/no",
    ):
        for method in ("GET", "POST", "HEAD"):
            assert (await shared.ask(method, path, token=made["key"])).status == 403, path
    assert of(await shared.ask("PUT", "/hooks/bell", token=made["key"])) == FORBIDDEN
    assert (await shared.ask("HEAD", "/hooks/bell", token=made["key"])).status == 200
    assert (await shared.delete(f"/auth/keys/{made['id']}")).status == 204
    assert of(await shared.get("/hooks/bell", token=made["key"])) == REFUSED


@pytest.mark.parametrize("role", Role)
async def test_which_roles_may_call_a_hook(shared: App, role: Role) -> None:
    stated = {"label": "x", "role": role} | ({"hook": "bell"} if role is Role.HOOK else {})
    key = (await shared.post("/auth/keys", stated)).json["key"]
    may = role in (Role.ADMIN, Role.AUTOMATION, Role.HOOK)
    for method in ("HEAD", "GET", "POST"):
        assert (await shared.ask(method, "/hooks/bell", token=key)).status == (200 if may else 403)
    nobody = of(await shared.get("/hooks/nobody", token=key))
    assert nobody == (FORBIDDEN if not may or role is Role.HOOK else (404, MISSING))


async def test_head_fires_no_automation(shared: App) -> None:
    before = shared.hub.bus.published
    assert (await shared.ask("HEAD", "/hooks/bell")).status == 200
    assert (await shared.ask("HEAD", "/hooks/nobody")).status == 404
    assert not [each for each in shared.events[before:] if isinstance(each, events.HookCalled)]


FORM = "application/x-www-form-urlencoded"
PARTS = (
    b'--xx\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n2\r\n--xx\r\n'
    b'content-disposition: form-data; name="f"; filename="x"\r\n\r\nfile\r\n--xx\r\n\r\nnameless\r\n--xx--\r\n'
)

BODIES: tuple[tuple[bytes, str, Value], ...] = (
    (b'{"a": [1, {"b": null}]}', "", {"a": [1, {"b": None}]}),
    (b'{"a": 1}', FORM, {"a": 1}),
    (b"5", "text/plain", 5),
    (b"null", "application/json", None),
    (b"a=1&b=%C3%A4+x&a=2&c", FORM, {"a": "2", "b": "ä x", "c": ""}),
    (b"a=1", f"{FORM}; charset=utf-8", {"a": "1"}),
    (b"a=1", "", None),
    (b' {"a": 1', FORM, None),
    (b"\xff=\xfe", FORM, {"\ufffd": "\ufffd"}),
    (PARTS, 'Multipart/Form-Data; boundary="xx"', {"a": "1\r\n2"}),
    (b'\xef\xbb\xbf{"a":1}', FORM, {"a": 1}),
    (PARTS, "multipart/form-data", None),
    (PARTS, "multipart/form-data; boundary=other", {}),
    (b"--xx" * 4000, "multipart/form-data; boundary=xx", {}),
    (b"--\xc3\xa4\r\n", "multipart/form-data; boundary=\udcff\udcfe", {}),
)


@pytest.mark.parametrize(("body", "content_type", "data"), BODIES)
async def test_a_body_is_json_or_a_form(body: bytes, content_type: str, data: Value) -> None:
    assert read_data(body, content_type) == data


async def test_a_virtual_device_shows_the_data_of_its_hook_and_fires_automations(shared: App) -> None:
    key = (await key_for(shared, DOOR))["key"]
    reported = {"attributes": {"contact": "open"}, "event": "pushed", "data": {"by": "wind"}}
    assert (await shared.post(f"/hooks/{DOOR}", reported, token=key)).status == 200
    assert (await shared.device("virtual:door"))["attributes"]["contact"] == "open"
    assert (await shared.get(f"/hooks/{DOOR}?event=single&token={key}", token=None)).status == 200
    happened = [(each.event, each.data) for each in shared.events if isinstance(each, events.DeviceEvent)]
    assert happened[-2:] == [("pushed", {"by": "wind"}), ("single", {})]
    count = len([each for each in shared.events if isinstance(each, events.HookCalled) and each.hook == DOOR])
    assert count == 2
    bodies: tuple[Any, ...] = ({"attributes": {"contact": "ajar"}}, {"device_id": "virtual:door"}, [], {}, "x")
    for body in bodies:
        refused = await shared.post(f"/hooks/{DOOR}", body, token=key)
        assert refused.status == 400, body
    assert (await shared.get(f"/hooks/{DOOR}", token=key)).status == 400
    assert (await shared.device("virtual:door"))["attributes"]["contact"] == "open"
    assert count == len([each for each in shared.events if isinstance(each, events.HookCalled) and each.hook == DOOR])
    assert (await shared.post("/hooks/device:virtual:window", reported)).status == 404


async def test_creating_a_key_warns_if_nothing_listens(shared: App) -> None:
    for hook in ("bell", DOOR):
        made = await key_for(shared, hook)
        assert set(made) == {"id", "label", "role", "created_at", "hook", "key"} and made["hook"] == hook
    made = await key_for(shared, " nobody ")
    assert made["hook"] == "nobody" and made["warning"].startswith("nothing listens to the hook 'nobody' yet; ")
    listed = (await shared.get("/auth/keys")).json
    assert [each["hook"] for each in listed if each["id"] == made["id"]] == ["nobody"]
    assert of(await shared.get("/hooks/nobody", token=made["key"])) == (404, MISSING)


async def test_a_hook_key_survives_a_restart_and_is_in_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    root = write(tmp_path, {"automations/bell.lua": automation("bell", "{ type = 'webhook', hook = 'bell' }")})
    async with open_app(root=root, data_dir=tmp_path, adapters={}) as app:
        key = (await key_for(app, "bell"))["key"]
    async with open_app(root=root, data_dir=tmp_path, adapters={}) as app:
        for path in ("/hooks/bell", "/hooks/other", "/devices", "/nothing"):
            await app.get(f"{path}?token={key}", token=None)
            await app.post(f"{path}?token={key}", data=b"\xff", token=None)
        assert (await app.get("/hooks/bell", token=key)).status == 200
        assert (await app.get("/hooks/other", token=key)).status == 403
        shown = [(await app.get(f"/{path}")).json for path in ("automations/bell/history", "diagnostics/log")]
    assert key[-20:] not in caplog.text and key[-20:] not in str(shown)


async def test_a_principal_can_call_only_its_own_hook() -> None:
    key = Key(id="key_a", label="a", role="hook", token_hash="", created_at=MADE_AT, hook="bell")
    principal = Principal(key_id="key_a", role=Role.HOOK, key=key)
    principal.require_role(Role.HOOK, "bell")
    for role, hook in ((Role.HOOK, "other"), (Role.HOOK, None), (Role.READ, "bell"), (Role.READ, None)):
        with pytest.raises(Forbidden):
            principal.require_role(role, hook)


async def test_a_token_in_the_query_opens_only_hooks_and_a_header_takes_precedence(shared: App) -> None:
    assert (await shared.get(f"/hooks/bell?token={MASTER}", token=None)).status == 200
    assert (await shared.get(f"/hooks/bell?token={MASTER}", token=READER.text)).status == 403
    assert (await shared.get("/hooks/bell?token=wrong", token=None)).status == 401
    assert (await shared.get(f"/devices?token={MASTER}", token=None)).status == 401
    assert (await shared.ask("PUT", f"/hooks/bell?token={MASTER}", token=None)).status == 401
