"""The first start of a version has two processes compile what a hub needs, and leaves none of them behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.firmware.archive import BOOT

CODE = """
import os, sys, lares_launcher
lares_launcher.compile_on_two_cores()
assert "appliance.hub" in sys.modules and "sanic" not in sys.modules
try:
    os.wait()
except ChildProcessError:
    print(os.getpid())
"""


def test_the_first_start_compiles_in_two_processes_and_leaves_none_behind(tmp_path: Path) -> None:
    by = str(tmp_path / "by")
    note = f"import os\nwith open({by!r}, 'a') as file:\n    file.write(f'{{__name__}} {{os.getpid()}} ')\n"
    for name, text in {
        "sanic/__init__.py": f"{note}raise ValueError('said where it is imported again')\n",
        "appliance/__init__.py": "",
        "appliance/hub.py": note,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": f"{BOOT}:{tmp_path}"}
    ran = subprocess.run([sys.executable, "-c", CODE], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.stderr == ""
    words = (tmp_path / "by").read_text().split()
    compiled = dict(zip(words[::2], words[1::2], strict=True))
    assert compiled.keys() == {"sanic", "appliance.hub"}
    assert compiled["appliance.hub"] == ran.stdout.strip() != compiled["sanic"]
