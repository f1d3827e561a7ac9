"""Changes an adapter section in a TOML text, and leaves all other keys, lines, and comments unchanged."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from appliance.errors import Invalid
from appliance.files.toml_scan import TomlPart, TomlScanner

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def set_keys(text: str, name: str, values: Mapping[str, Any]) -> str:
    """Set keys of `[adapters.NAME]`, and return the changed text. The value None removes a key. A new section is
    added at the end.

    Raise `Invalid` if the section is not written as `[adapters.NAME]`.
    """
    if "\r\n" in text:
        return set_keys(text.replace("\r\n", "\n"), name, values).replace("\n", "\r\n")
    layout = _Layout.of(text)
    section = layout.find(name)
    if section is None:
        if any(each.path[:2] == ("adapters", name) for each in (*layout.values, *layout.headers)):
            raise Invalid(f"adapters.{name} is not written as [adapters.{name}]; edit the section in the file")
        lines = [
            f"[adapters.{_key(name)}]",
            *(_line(key, value) for key, value in values.items() if value is not None),
        ]
        before = text.rstrip()
        return (before and before + "\n\n") + "\n".join(lines) + "\n"
    own = [each for each in layout.values if each.path[:-1] == section.path and section.end < each.start]
    known = {str(each.path[-1]): each for each in own}
    added = [_line(key, value) for key, value in values.items() if key not in known and value is not None]
    last = max((each.end for each in own), default=section.end)
    changes = [(_end_of_line(text, last),) * 2 + ("".join(f"\n{line}" for line in added),)]
    for key in known.keys() & values.keys():
        part = known[key]
        if values[key] is None:
            start = text.rfind("\n", 0, part.start) + 1
            changes.append((start, min(_end_of_line(text, part.end) + 1, len(text)), ""))
        else:
            changes.append((part.start, part.end, _literal(values[key])))
    for start, end, fresh in sorted(changes, reverse=True):
        text = text[:start] + fresh + text[end:]
    return text


def remove_section(text: str, name: str) -> str:
    """Return the text without `[adapters.NAME]` and its inner sections. Raise `Invalid` if the section does not
    exist."""
    if "\r\n" in text:
        return remove_section(text.replace("\r\n", "\n"), name).replace("\n", "\r\n")
    layout = _Layout.of(text)
    if layout.find(name) is None:
        raise Invalid(f"there is no [adapters.{name}] in the file")
    headers = layout.headers
    ends = [*(each.start for each in headers[1:]), len(text)]
    for header, next_start in reversed([*zip(headers, ends, strict=True)]):
        if header.path[:2] != ("adapters", name):
            continue
        inside = [each.end for each in layout.values if header.end < each.start < next_start]
        end = _end_of_line(text, max(inside, default=header.end))
        while text[end + 1 : end + 2] == "#" and end + 1 < next_start:  # this comment belongs to the next section
            end = _end_of_line(text, end + 1)
        rest = text[end:].lstrip("\n")
        start = text.rfind("\n", 0, header.start) + 1
        text = text[:start] + rest if rest else text[:start].rstrip("\n") + "\n"
    return text


class _Layout(Struct, frozen=True):
    values: list[TomlPart]
    headers: list[TomlPart]

    @classmethod
    def of(cls, text: str) -> _Layout:
        scanner = TomlScanner(text)
        try:
            return cls([*scanner.values()], scanner.headers)
        except (ValueError, RecursionError):
            raise Invalid("the configuration is not TOML; correct it in the file first") from None

    def find(self, name: str) -> TomlPart | None:
        return next((each for each in self.headers if each.path == ("adapters", name)), None)


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _line(key: str, value: Any) -> str:
    return f"{_key(key)} = {_literal(value)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _literal(name)


def _literal(value: Any) -> str:
    """Return a JSON value as TOML on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float) and math.isfinite(value):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(_line(key, each) for key, each in value.items())} }}" if value else "{}"
    raise Invalid(f"{value!r} is not a valid configuration value")
