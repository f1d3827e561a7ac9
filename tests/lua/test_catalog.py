"""Catalogs: what becomes of a file that fails while the hub starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from appliance.automations.definition import AutomationDefinition, automation_parser
from appliance.errors import Fault, ScriptFailed
from appliance.lua.folder import Folder
from appliance.lua.lua_catalog import Catalog
from appliance.lua.source import Source
from appliance.tables.checks import Function
from tests.automations.homes import BERLIN, NOW
from tests.fakes.automations import automation, write
from tests.fakes.clock import VirtualClock


async def test_at_a_start_a_file_is_at_fault_only_where_it_fails_twice(tmp_path: Path) -> None:
    every_minute = {"type": "interval", "every_secs": 60}
    write(tmp_path, [automation(every_minute), automation(every_minute, "b")])
    tries: list[str] = []

    async def describe(source: Source) -> Any:
        tries.append(source.name)
        if source.name.endswith("1.lua") or tries.count(source.name) == 1:
            raise ScriptFailed(Fault(source.name, 1, "ran for 5 s without waiting and was stopped"), "timeout")
        return {**json.loads(source.text), "execute": Function(1)}

    folder = Folder(path=tmp_path, name="config/automations")
    parse = automation_parser(BERLIN, VirtualClock(NOW), 8)
    catalog: Catalog[AutomationDefinition] = Catalog("automation", folder, describe, parse)
    await catalog.load()
    assert [each.id for each in catalog.list_definitions()] == ["a"]
    assert len(catalog.rejected) == 1 and len(tries) == 4
    assert (await catalog.reload())[1] == list(catalog.rejected) and len(tries) == 6
