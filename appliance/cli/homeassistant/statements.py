"""The Lua statements of one automation, scene, or function, and the reasons why parts could not be translated."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from textwrap import wrap
from typing import Any

from appliance.cli.homeassistant import templates
from appliance.cli.homeassistant.entities import Entities, NotTranslated
from appliance.cli.homeassistant.lua import Lines, Raw, literal
from appliance.cli.homeassistant.source import Tagged, is_template, number
from appliance.cli.homeassistant.templates import Scope

ODD_FORMS = (NotTranslated, AttributeError, KeyError, TypeError, ValueError)
"""Exceptions that are raised for an unexpected form of a part. The part then becomes a comment."""


MAX_TEXT_CHARS = 90

PLAIN = re.compile(r"[\w./(](?:[\w ./%°+()',=-]|:(?=\S))*(?<! )")
RESERVED = re.compile(r"[+.\d][\d.eE_+-]*|true|false|null|yes|no|on|off", re.IGNORECASE)
"""Texts that YAML would read as other values if they were not quoted."""


class Statements:
    """Writes Lua statements. `names` maps Home Assistant's variables to Lua expressions. If `has_event` is false,
    the code is not started by a trigger."""

    def __init__(
        self,
        entities: Entities,
        trigger_entities: tuple[str, ...],
        names: Mapping[str, str],
        *,
        has_event: bool,
        depth: int,
    ) -> None:
        self.lines = Lines(depth)
        self.problems: list[str] = []
        self.entities = entities
        self.trigger_entities = trigger_entities
        self.names = dict(names)
        self.has_event = has_event

    @property
    def scope(self) -> Scope:
        return Scope(
            entities=self.entities,
            names=dict(self.names),
            trigger_entities=self.trigger_entities,
            has_event=self.has_event,
        )

    def skip(self, part: Any, reason: str) -> None:
        """Write an untranslated part as a comment."""
        self.problems.append(reason)
        self.lines.note(f"omitted: {reason}")
        for line in as_yaml(part).splitlines():
            self.lines.note(f"  {line}")

    def omit(self, service: str, data: Mapping[str, Any], known: Collection[str]) -> None:
        """Write a comment about untranslated fields."""
        if others := [str(each) for each in data if each not in known]:
            reason = f"{service}: {', '.join(others)} omitted, because Lares does not support them"
            self.problems.append(reason)
            self.lines.note(reason)

    def value(self, value: Any) -> str:
        """Return a value, which may contain templates, as Lua."""
        return lua_value(value, self.scope)

    def message(self, value: Any) -> str:
        if isinstance(value, Tagged):
            raise NotTranslated(f"the YAML tag {value.tag} is not supported")
        return templates.message(value, self.scope)


def lua_value(value: Any, scope: Scope) -> str:
    """Return a value, which may contain templates, as Lua."""
    if isinstance(value, Tagged):
        raise NotTranslated(f"the YAML tag {value.tag} is not supported")
    if isinstance(value, list):
        return f"{{ {', '.join(lua_value(each, scope) for each in value)} }}"
    if isinstance(value, Mapping):
        return literal({key: Raw(lua_value(each, scope)) for key, each in value.items()})
    if is_template(value):
        return templates.expression(value, scope)
    return literal(number(value))


def words_of(reason: Exception) -> str:
    return str(reason) if isinstance(reason, NotTranslated) else "this part has an unknown format"


def as_yaml(part: Any) -> str:
    """Return a part as YAML, for comments."""
    return "\n".join(_rows(part))


def _rows(part: Any) -> list[str]:
    if isinstance(part, Mapping) and part:
        return [row for key, each in part.items() for row in _keyed(f"{_scalar(key)}:", each)]
    if isinstance(part, list) and part:
        return [f"{'  ' if at else '- '}{row}" for each in part for at, row in enumerate(_rows(each))]
    return _keyed("", part)


def _keyed(key: str, value: Any) -> list[str]:
    """Return a key with its value. A long text becomes a block of several lines."""
    if isinstance(value, Mapping | list) and value:
        return [key, *(row if isinstance(value, list) else f"  {row}" for row in _rows(value))]
    text = str(value) if isinstance(value, str | Tagged) else ""
    lines = text.strip("\n").split("\n")
    if len(lines) > 1 or len(text) > MAX_TEXT_CHARS:
        style = "|-" if len(lines) > 1 else ">-"
        rows = lines if len(lines) > 1 else wrap(text, MAX_TEXT_CHARS, break_on_hyphens=False)
        return [f"{key} {style}".strip(), *(f"  {row}" for row in rows)]
    return [f"{key} {_scalar(value)}".strip()]


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = str(value)
    if not isinstance(value, str) or (PLAIN.fullmatch(text) and not RESERVED.fullmatch(text)):
        return text
    if "'" in text and not set(text) & {'"', "\\"}:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"
