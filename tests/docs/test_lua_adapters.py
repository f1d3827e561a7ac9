"""docs/lua-adapters.md: its kind works, and its configuration is valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from appliance import config
from appliance.adapters.lua_kinds.definition import _DEFAULTS, _TOP, BUNDLED_KINDS
from appliance.adapters.lua_kinds.settings import _SETTING, KNOWN_SETTINGS
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua_worker.ctx_methods import KIND_METHODS
from tests.adapters.lua_kinds.bench import Vendor, start
from tests.docs.pages import DOCS, blocks
from tests.lua.conftest import pool
from tests.lua.library import ROOT

__all__ = ["pool"]

PAGE = "lua-adapters.md"
TEXT = (DOCS / PAGE).read_text()
STUB = (ROOT / "config" / "library" / "adapters.lua").read_text()


@pytest.mark.asyncio(loop_scope="module")
async def test_the_kind_of_the_page_works(pool: WorkerPool, tmp_path: Path) -> None:
    [text] = [each for language, each in blocks(PAGE) if language == "lua"]
    shown = {"name": "Boiler", "on": False}
    vendor = Vendor(lambda asked: shown.update(on=True) or shown if asked.method == "POST" else shown)
    it = await start(pool, tmp_path, text, vendor, "relay")
    assert (await it.poll())["relay"].name == "Boiler"
    assert await it.command("relay", "power", "on") is None
    assert it.registry.get_device("it:relay").attributes["power"] == "on"


def test_its_sections_are_read() -> None:
    [text] = [each for language, each in blocks(PAGE) if language == "toml"]
    assert set(config.parse(text, "config/x.toml", {}).adapters) == {"kitchen", "weather"}


def test_it_names_every_bundled_kind_and_every_field() -> None:
    for kind in BUNDLED_KINDS.glob("*.lua"):
        assert f"| `{kind.stem}` |" in TEXT
    for name in (*_TOP, *_DEFAULTS, *_SETTING, *KNOWN_SETTINGS):
        assert f"`{name}" in TEXT or f" {name}" in TEXT, name


def test_the_editors_stub_names_every_field_of_a_kind_and_of_a_setting() -> None:
    kind, setting = (STUB.split(f"---@class {name}\n")[1].split("\n\n")[0] for name in ("Kind", "KindSetting"))
    fields = {*_TOP, *_DEFAULTS, "settings", "origins", "operations", "listen"}
    assert {line.split()[1].rstrip("?") for line in kind.splitlines() if "@field" in line} == fields
    assert {line.split()[1].rstrip("?") for line in setting.splitlines() if "@field" in line} == set(_SETTING)
    assert set(re.findall(r"KindContext:(\w+)", STUB)) == KIND_METHODS
