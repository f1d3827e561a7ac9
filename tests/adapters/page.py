"""The example kind of docs/adapters.md, as files."""

from __future__ import annotations

import re
from pathlib import Path

import appliance.adapters

ROOT = Path(__file__).parents[2]


def write_relay(appliance_folder: Path) -> None:
    """Write the example's folder below `appliance_folder`."""
    text = (ROOT / "docs" / "adapters.md").read_text()
    files = re.findall(r"^`appliance/(\S+\.py)`:\n\n```python\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    assert [Path(name).name for name, _ in files] == ["adapter.py", "kind.py", "simulator.py"]
    for name, code in files:
        file = appliance_folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)
    file.with_name("__init__.py").write_text('"""Relays."""\n')


def make_importable(folder: Path) -> None:
    """Make `appliance.adapters.relay` importable from `folder`, in the same way as the other kinds."""
    write_relay(folder)
    appliance.adapters.__path__.append(str(folder / "adapters"))
