"""A hub with a real Matter controller server: eleven real virtual devices, and the plugin for Matterbridge."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.fakes.process import ROOT
from tests.fakes.programs import need
from tests.matter.laboratory import LAB, check_namespaces, find_bridge, find_devices, find_server

pytestmark = pytest.mark.release

PROOFS = [
    pytest.param(
        "proof", find_devices, {"devices": 21, "commands": 22}, id="devices", marks=pytest.mark.slow(minutes=5)
    ),
    pytest.param(
        "bridge_proof",
        find_bridge,
        {"devices": 70, "commands": 17, "reports": 3000},
        id="bridge",
        marks=pytest.mark.slow(minutes=8),
    ),
]


@pytest.mark.parametrize(("proof", "find_modules", "expected"), PROOFS)
def test_devices_are_paired_commanded_and_recovered(
    tmp_path: Path, proof: str, find_modules: Callable[[], Path], expected: Mapping[str, int]
) -> None:
    """The files `proof.py` and `bridge_proof.py` contain the steps. To see the figures, run the test with -s."""
    need("node")
    paths = {"folder": str(tmp_path), "modules": str(find_modules()), "server": str(find_server())}
    check_namespaces()
    command = [str(LAB / "one-namespace.sh"), sys.executable, "-m", f"tests.matter.{proof}", json.dumps(paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False)
    print(done.stdout[-6000:])
    assert done.returncode == 0, f"{done.stdout[-9000:]}\n{done.stderr[-6000:]}"
    figures = json.loads(done.stdout.splitlines()[-1])
    assert {key: figures[key] for key in expected} == expected
