"""The plugin for Matterbridge: its own tests and its package, if the necessary programs are installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from appliance.home.capabilities import CAPABILITIES
from tests.fakes.process import ROOT
from tests.fakes.programs import need

PLUGIN = ROOT / "firmware" / "matterbridge"


@pytest.mark.slow
def test_its_own_tests_pass(tmp_path: Path) -> None:
    need("node")
    need("npm")
    folder = shutil.copytree(PLUGIN, tmp_path / "plugin")
    installed = subprocess.run(
        ["npm", "install", "--omit=dev", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True
    )
    if installed.returncode:
        pytest.skip("npm could not fetch the plugin's dependency")
    done = subprocess.run(["node", "--test", "test/"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_its_settings_have_a_default_and_a_description() -> None:
    schema = json.loads((PLUGIN / "matterbridge-lares.schema.json").read_text())["properties"]
    defaults = json.loads((PLUGIN / "matterbridge-lares.config.json").read_text())
    assert schema.keys() == defaults.keys()
    assert all(each.get("description") or each.get("readOnly") for each in schema.values())


def test_every_named_capability_exists() -> None:
    text = (PLUGIN / "src" / "map.js").read_text()
    named = {part.split('"')[0] for part in text.split('capability: "')[1:]}
    assert {each for each in named if not each.startswith("custom.")} <= CAPABILITIES.keys()
