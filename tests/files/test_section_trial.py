"""The trial of an adapter section imports the adapter on a thread, because the import of aiohttp takes long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TRIAL = """
import asyncio, sys, threading
from appliance.adapters.elgato_lights.kind import ElgatoLights
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.files.section_trial import SectionTrials

threads = set()

class Finder:
    def find_spec(self, name, path, target=None):
        if name.startswith(("aiohttp", "appliance.adapters")):
            threads.add(threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Finder())

class Imported(Exception):
    pass

def end_trial(name):
    raise Imported

async def try_section(settings):
    trials = SectionTrials(
        None, None, None, None, open_session=None, secrets_of=end_trial, build_pool=None
    )
    try:
        await trials.run("x", settings)
    except Imported:
        print(threads, "aiohttp" in sys.modules)

elgato = ElgatoLights(base_url="http://127.0.0.1:9", poll_interval_secs=2)
lua = LuaSection(name="x", kind="own", raw={}, file="default.toml", line_of=lambda _: 0)
asyncio.run(try_section(SETTINGS))
"""


@pytest.mark.parametrize("settings", ["elgato", "lua"])
def test_no_module_of_an_adapter_is_imported_on_the_loop(settings: str) -> None:
    code = TRIAL.replace("SETTINGS", settings)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "{False} True", done.stderr
