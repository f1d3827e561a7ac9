"""The master key as a configuration states it: taken out of its text for a backup, put back by a restore."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from appliance.config import MASTER_KEY_PATH, parse_toml
from appliance.errors import ConfigFailed, Fault, StartFailed
from appliance.tables.fields import line_at
from appliance.tables.sections import line_finder

LEFT_OUT = "# master_key: left out of the backup; restoring keeps the one on the box"

_SECTION = re.compile(r"\s*\[\s*auth\s*\]\s*(#.*)?")


def decode(data: bytes, file: Path) -> str:
    """The text of a configuration file; `StartFailed` where it is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StartFailed(f"{file} is not UTF-8 text; `lares check` tells where", os.EX_CONFIG) from None


def key_of(text: str, name: str) -> str | None:
    """The master key that a configuration states, or None."""
    section = parse_toml(text, name).get("auth")
    key = section.get("master_key") if isinstance(section, dict) else None
    return key if isinstance(key, str) else None


def without_key(text: str, name: str) -> str:
    """The configuration without its master key; `ConfigFailed` where the key cannot be taken out line by line."""
    key = key_of(text, name)
    if key is None:
        return text
    number, lines = line_at(MASTER_KEY_PATH, line_finder(text)), text.split("\n")
    lines[number - 1] = LEFT_OUT
    changed = "\n".join(lines)
    if not _differ_only_in_key(changed, text) or key_of(changed, name) is not None:
        message = 'auth.master_key cannot be left out; write it as a line of its own, master_key = "…" below [auth]'
        raise ConfigFailed([Fault(name, number, message)])
    return changed


def with_key(text: str, key: str, name: str) -> str:
    """The configuration with this master key, whether or not it states one."""
    bare = without_key(text, name)
    for changed in _with_line(bare.split("\n"), json.dumps(key)):
        if _differ_only_in_key(changed, bare) and key_of(changed, name) == key:
            return changed
    raise ConfigFailed([Fault(name, 0, "has no place for auth.master_key; give it a section [auth]")])


def _with_line(lines: list[str], value: str) -> list[str]:
    """The text with the key in each place where it could be; not all of them need be TOML."""
    texts: list[list[str]] = []
    for number, line in enumerate(lines):
        if line.strip() == LEFT_OUT:
            texts.append([*lines[:number], f"master_key = {value}", *lines[number + 1 :]])
            texts.append([*lines[:number], f"auth.master_key = {value}", *lines[number + 1 :]])
        elif _SECTION.fullmatch(line):
            texts.append([*lines[: number + 1], f"master_key = {value}", *lines[number + 1 :]])
    texts.append([f"auth.master_key = {value}", *lines])
    return ["\n".join(each) for each in texts]


def _differ_only_in_key(one: str, other: str) -> bool:
    """Whether both are sound and differ in nothing but the master key."""
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
