"""Reads, removes, and sets `auth.master_key` in the text of a configuration file."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from appliance.config import MASTER_KEY_PATH, parse_toml
from appliance.errors import ConfigFailed, Fault, StartFailed
from appliance.tables.fields import line_at
from appliance.tables.toml_lines import line_finder

KEY_OMITTED = "# master_key is not in the backup; a restore keeps the master key of the box"

_SECTION = re.compile(r"\s*\[\s*auth\s*\]\s*(#.*)?")


def decode(data: bytes, file: Path) -> str:
    """Return the text of a configuration file. Raise `StartFailed` if the file is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StartFailed(f"{file} is not UTF-8 text; run `lares check`", os.EX_CONFIG) from None


def key_of(text: str, name: str) -> str | None:
    section = parse_toml(text, name).get("auth")
    key = section.get("master_key") if isinstance(section, dict) else None
    return key if isinstance(key, str) else None


def without_key(text: str, name: str) -> str:
    """Remove the master key's line from a configuration. Raise `ConfigFailed` if the line cannot be removed."""
    key = key_of(text, name)
    if key is None:
        return text
    number, lines = line_at(MASTER_KEY_PATH, line_finder(text)), text.split("\n")
    lines[number - 1] = KEY_OMITTED
    changed = "\n".join(lines)
    if not _differ_only_in_key(changed, text) or key_of(changed, name) is not None:
        message = "the backup cannot omit auth.master_key; write the key on a separate line below [auth]"
        raise ConfigFailed([Fault(name, number, message)])
    return changed


def with_key(text: str, key: str, name: str) -> str:
    """Set the master key in a configuration, or replace the existing key."""
    bare = without_key(text, name)
    for changed in _with_line(bare.split("\n"), json.dumps(key)):
        if _differ_only_in_key(changed, bare) and key_of(changed, name) == key:
            return changed
    raise ConfigFailed([Fault(name, 0, "has no place for auth.master_key; add a section [auth]")])


def _with_line(lines: list[str], value: str) -> list[str]:
    """Yield the text once for each possible position of the line with the key. Some of these texts may be invalid
    TOML."""
    texts: list[list[str]] = []
    for number, line in enumerate(lines):
        if line.strip() == KEY_OMITTED:
            texts.append([*lines[:number], f"master_key = {value}", *lines[number + 1 :]])
            texts.append([*lines[:number], f"auth.master_key = {value}", *lines[number + 1 :]])
        elif _SECTION.fullmatch(line):
            texts.append([*lines[: number + 1], f"master_key = {value}", *lines[number + 1 :]])
    texts.append([f"auth.master_key = {value}", *lines])
    return ["\n".join(each) for each in texts]


def _differ_only_in_key(one: str, other: str) -> bool:
    """Return whether both texts are valid, and differ only in the master key."""
    try:
        return _bare(one) == _bare(other)
    except ConfigFailed:
        return False


def _bare(text: str) -> dict[str, Any]:
    raw = parse_toml(text, "")
    section = raw.setdefault("auth", {})
    if isinstance(section, dict):
        section.pop("master_key", None)
    return raw
