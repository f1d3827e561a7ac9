"""A hub with a real Matter controller server and eleven real virtual devices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.matter.laboratory import LAB, check_namespaces, find_devices, find_server

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow(minutes=5), pytest.mark.release]


def test_eleven_devices_are_paired_commanded_and_recovered(tmp_path: Path) -> None:
    """The test takes about three minutes. `proof.py` contains the steps. To see the figures, run the test with -s."""
    paths = {"folder": str(tmp_path), "modules": str(find_devices()), "server": str(find_server())}
    check_namespaces()
    command = [str(LAB / "one-namespace.sh"), sys.executable, "-m", "tests.matter.proof", json.dumps(paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False)
    print(done.stdout[-6000:])
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["devices"] == 21 and figures["commands"] == 22
