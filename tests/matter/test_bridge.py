"""The plugin for Matterbridge, with a real Matterbridge and a real controller."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.process import ROOT
from tests.fakes.programs import need
from tests.matter.laboratory import LAB, check_namespaces, find_bridge, find_server

pytestmark = [pytest.mark.slow(minutes=8), pytest.mark.release]


def test_each_device_type_is_shown_commanded_and_recovered(tmp_path: Path) -> None:
    """`bridge_proof.py` contains the steps. To see the figures, run the test with -s."""
    need("node")
    paths = {"folder": str(tmp_path), "modules": str(find_bridge()), "server": str(find_server())}
    check_namespaces()
    command = [str(LAB / "one-namespace.sh"), sys.executable, "-m", "tests.matter.bridge_proof", json.dumps(paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False)
    print(done.stdout[-6000:])
    assert done.returncode == 0, f"{done.stdout[-9000:]}\n{done.stderr[-6000:]}"
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["devices"] == 70 and figures["commands"] == 17 and figures["reports"] == 3000
