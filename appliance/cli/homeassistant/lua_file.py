"""The common parts of all translated files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from appliance.cli.homeassistant.lua import comment, literal, quote
from appliance.cli.homeassistant.not_translated import NotTranslated
from appliance.cli.homeassistant.values import object_id, shown

MODES = ("single", "restart", "queued", "parallel")
MAX_ID_CHARS = 60

MARK = "-- Imported from Home Assistant: "
"""The prefix of a comment line in each translated file."""


class LuaFile(Struct, frozen=True, kw_only=True):
    """A translated automation, script, or scene. `problems` contains the reasons for untranslated parts. `folder` is
    a name in `LUA_FOLDERS`."""

    folder: str
    id: str
    name: str
    text: str
    problems: tuple[str, ...]


def free_id(title: str, taken: set[str]) -> str:
    """Create an unused id from the title, and add it to `taken`."""
    base = object_id(title)[:MAX_ID_CHARS].strip("_") or "automation"
    numbers = iter(range(2, len(taken) + 3))
    id_ = base
    while id_ in taken:
        id_ = f"{base}_{next(numbers)}"
    taken.add(id_)
    return id_


def head(title: str, origin: str, notes: list[str], body: str) -> list[str]:
    """Return the first lines of a file: comments and, if the body needs it, the module."""
    lines = [*comment(title), "--", f"{MARK}{comment(origin)[0][3:]}."]
    if notes:
        lines += ["--", *comment("Not translated:\n" + "\n".join(notes))]
    return [*lines, "", *(['local ha = require("homeassistant")', ""] if re.search(r"\bha\.", body) else [])]


def description(definition: Mapping[str, Any]) -> list[str]:
    text = str(definition.get("description") or "").strip()[:900]
    return [f"  description = {quote(text)},"] if text else []


def mode_of(definition: Mapping[str, Any]) -> list[str]:
    """Return the line for the mode. In Home Assistant, the default mode is `single`, and the default maximum of
    queued or parallel runs is 10. Raise `NotTranslated` for an unknown mode."""
    mode = str(definition.get("mode", "single"))
    if mode not in MODES:
        raise NotTranslated(f"the mode {shown(definition['mode'])} is unknown")
    if mode in ("queued", "parallel"):
        limit = definition.get("max", 10)
        if not isinstance(limit, int) or limit < 1:
            raise NotTranslated(f"max is not a whole number, but {shown(limit)}")
        return [f"  mode = {literal({'type': mode, 'max': limit})},"]
    return [f"  mode = {quote(mode)},"]
