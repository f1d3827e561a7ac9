"""A home with a device of each bundled kind. The API, scenes, and automations command or read the devices."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio

from appliance.home.commands import Command
from tests.adapters.lua_kinds.bundled import BUNDLED, Bundled
from tests.adapters.lua_kinds.vendor import Vendor
from tests.fakes.app import App, open_app
from tests.fakes.lua import automation, scene, write

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

NEVER = '{ type = "wall_clock", hour = 3, minute = 0 }'


class Home:
    """The hub, and its vendors by section name."""

    def __init__(self, app: App, vendors: Mapping[str, Vendor]) -> None:
        self.app = app
        self.vendors = vendors

    async def run(self, kind: str, name: str) -> None:
        """Execute a scene or an automation, which must succeed."""
        ran = (await self.app.post(f"/{kind}/{name}/execute")).json
        assert ran["status"] == "ok", ran

    async def noted(self, name: str) -> Any:
        """Return the value that a script has stored."""
        return (await self.app.get(f"/variables/{name}")).json["value"]


def files(name: str, row: Bundled) -> dict[str, str]:
    """Return a scene that switches the device off, and an automation that switches it on. If the device is read-only,
    the scene and the automation store the device's value."""
    bodies = {"scenes": _body(name, row, "off"), "automations": _body(name, row, "on")}
    return {
        f"scenes/{name}.lua": scene(name, bodies["scenes"]),
        f"automations/{name}.lua": automation(name, NEVER, bodies["automations"]),
    }


def _body(name: str, row: Bundled, action: str) -> str:
    note = f'ctx:set("{name}.{action}", '
    if row.commands:
        return f'ctx:command("{name}:{row.device}", {_lua(row.commands[action].command)})'
    if row.device:
        return f'{note}ctx:get_device("{name}:{row.device}").attributes["{row.shown[0]}"])'
    return f'{note}ctx:invoke("{name}:chat", {{ prompt = "Is it going to rain?" }}).message.content)'


def _lua(command: Command) -> str:
    value = "" if command.value is None else f', value = "{command.value}"'
    return f'{{ capability = "{command.capability}", action = "{command.action}"{value} }}'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Home]:
    """Run a hub with a section for each row of the table."""
    root = tmp_path_factory.mktemp("bundled")
    async with AsyncExitStack() as stack:
        vendors = {name: await stack.enter_async_context(row.vendor()) for name, row in BUNDLED.items()}
        for name, row in BUNDLED.items():
            write(root, files(name, row))
        adapters = {name: row.section(vendors[name], name) for name, row in BUNDLED.items()}
        yield Home(await stack.enter_async_context(open_app(adapters=adapters, root=root)), vendors)


@pytest.mark.parametrize("name", [name for name, row in BUNDLED.items() if row.commands])
async def test_each_kind_is_commanded_from_api_scene_and_automation(home: Home, name: str) -> None:
    row, vendor = BUNDLED[name], home.vendors[name]
    command = row.commands["on"].command
    answer = await home.app.command(f"{name}:{row.device}", command.capability, command.action, command.value)
    assert answer.status == 200 and row.taken(vendor)
    await home.run("scenes", name)
    assert not row.taken(vendor)
    await home.run("automations", name)
    assert row.taken(vendor)


@pytest.mark.parametrize("name", [name for name, row in BUNDLED.items() if not row.commands])
async def test_each_kind_is_read_from_api_scene_and_automation(home: Home, name: str) -> None:
    row = BUNDLED[name]
    if row.device:
        attribute, shown = row.shown
        reported = (await home.app.device(f"{name}:{row.device}"))["attributes"][attribute]
    else:
        shown = "yes"
        answer = await home.app.post(f"/adapters/{name}/operations/chat", {"prompt": "Is it going to rain?"})
        reported = answer.json["result"]["message"]["content"]
    await home.run("scenes", name)
    await home.run("automations", name)
    assert reported == await home.noted(f"{name}.off") == await home.noted(f"{name}.on") == shown
