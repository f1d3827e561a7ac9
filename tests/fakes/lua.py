"""Writes Lua files for a home to a configuration folder."""

from __future__ import annotations

from pathlib import Path


def write(root: Path, files: dict[str, str]) -> Path:
    """Write the files. `files` maps a path under `config/` to a text. Return the folder that contains `config/`."""
    for path, text in files.items():
        file = root / "config" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


def scene(id_: str, body: str = "", *, mode: str = "", name: str = "A scene") -> str:
    """Return the text of a scene whose function `execute` has this body."""
    stated = f"  mode = {mode},\n" if mode else ""
    head = f'return {{\n  id = "{id_}",\n  name = "{name}",\n{stated}'
    return f"{head}  execute = function(ctx)\n    {body}\n  end,\n}}\n"


def automation(id_: str, trigger: str, body: str = "", *, more: str = "", name: str = "An automation") -> str:
    """Return the text of an automation with this trigger, the further fields `more`, and this body of `execute`."""
    head = f'return {{\n  id = "{id_}",\n  name = "{name}",\n  trigger = {trigger},\n'
    stated = f"  {more},\n" if more else ""
    return f"{head}{stated}  execute = function(ctx, event)\n    {body}\n  end,\n}}\n"
