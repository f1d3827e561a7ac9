"""Editing a TOML text key by key, so that its comments stay."""

from __future__ import annotations

import json
import re
from typing import Any


def set_key(text: str, section: str, name: str, value: Any) -> str:
    """The text in which the section states this key; in place of the line, commented out or not, that states it."""
    lines = text.split("\n")
    header = f"[{section}]"
    if header not in lines:
        return "\n".join([*lines, header, f"{name} = {toml_value(value)}", ""])
    begin = lines.index(header) + 1
    end = next((at for at in range(begin, len(lines)) if lines[at].startswith("[")), len(lines))
    stated = re.compile(rf"(?:# )?{re.escape(name)}\s*=")
    at = next((at for at in range(begin, end) if stated.match(lines[at])), None)
    line = f"{name} = {toml_value(value)}"
    if at is None:
        lines.insert(begin, line)
    else:
        lines[at] = line
    return "\n".join(lines)


def toml_value(value: Any) -> str:
    """A string, number, boolean or array of them, as TOML writes it."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
