"""The kind that docs/adapters.md makes, as the files that it says to write."""

from __future__ import annotations

import re
from pathlib import Path

import appliance.adapters

ROOT = Path(__file__).parents[2]
ROW = "kind.name: kind for kind in (ELGATO_LIGHTS, "


def write_relay(appliance_folder: Path) -> None:
    """Write the page's folder below `appliance_folder`."""
    text = (ROOT / "docs" / "adapters.md").read_text()
    files = re.findall(r"^`appliance/(\S+\.py)`:\n\n```python\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    assert [Path(name).name for name, _ in files] == ["adapter.py", "kind.py", "simulator.py"]
    for name, code in files:
        file = appliance_folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)
    file.with_name("__init__.py").write_text('"""Relays."""\n')


def add_row(appliance_folder: Path) -> None:
    """Put the page's kind into the table of kinds below `appliance_folder`."""
    file = appliance_folder / "adapters" / "kinds.py"
    text = file.read_text()
    assert ROW in text
    added = "from appliance.adapters.relay.kind import RELAY\n"
    text = text.replace("from appliance.adapters.roku_tv", f"{added}from appliance.adapters.roku_tv", 1)
    file.write_text(text.replace(ROW, f"{ROW}RELAY, "))


def make_importable(folder: Path) -> None:
    """Let `appliance.adapters.relay` be imported from `folder`, as if it lay beside the other kinds."""
    write_relay(folder)
    appliance.adapters.__path__.append(str(folder / "adapters"))
