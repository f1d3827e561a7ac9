"""A new kind needs only its folder. Nothing else in `appliance/` changes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.adapters.page import ROOT, write_relay

SECTIONS = """
[adapters.boiler]
type = "relay"
base_url = "http://10.0.0.9"

[adapters.relay]
base_url = 7
pol_interval_secs = 5
"""


@pytest.mark.slow
def test_a_folder_adds_a_kind_to_check_configuration_and_demo(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "appliance", tmp_path / "appliance")
    shutil.copytree(ROOT / "config", tmp_path / "template" / "config")
    write_relay(tmp_path / "appliance")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "default.toml").write_text(SECTIONS)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "LARES_MASTER_KEY": "x" * 32, "TMPDIR": str(tmp_path)}
    lares = [sys.executable, "-m", "appliance"]

    checked = subprocess.run([*lares, "check"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert checked.returncode == os.EX_CONFIG, checked.stderr
    faults = [line.partition(".toml:")[2] for line in checked.stdout.splitlines()]
    assert faults == [
        "7: adapters.relay.base_url must be a string, not 7",
        "8: adapters.relay.pol_interval_secs is not a key of Lares; did you mean adapters.relay.poll_interval_secs?",
    ]

    arguments = [*lares, "demo", "--port", "0", "--config", str(tmp_path / "template" / "config" / "default.toml")]
    with subprocess.Popen(arguments, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        printed = dict[str, str]()
        try:
            for line in demo.stdout:
                printed |= {line.split()[0]: line.split()[1]} if line.startswith("    ") else {}
                if "Ctrl-C" in line:
                    break
            request = urllib.request.Request(f"{printed['REST']}/devices/relay:relay")
            request.add_header("Authorization", f"Bearer {printed['key']}")
            with urllib.request.urlopen(request, timeout=5) as answer:
                device = json.load(answer)
        finally:
            demo.send_signal(signal.SIGTERM)
    assert (device["name"], device["attributes"]) == ("Boiler", {"power": "off", "state": "online"})
