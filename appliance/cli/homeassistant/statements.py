"""The Lua statements of one automation, scene, or function, and the reasons why parts could not be translated."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.representer import SafeRepresenter

from appliance.cli.homeassistant import templates
from appliance.cli.homeassistant.entities import Entities
from appliance.cli.homeassistant.lua import Lines, Raw, literal, quote
from appliance.cli.homeassistant.not_translated import NotTranslated
from appliance.cli.homeassistant.scope import Scope
from appliance.cli.homeassistant.values import is_template, number
from appliance.cli.homeassistant.yaml_parser import Base60, Tagged

ODD_FORMS = (NotTranslated, AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""Exceptions that are raised for an unexpected form of a part. The part then becomes a comment."""

MAX_COMMENT_ROWS = 200
"""Maximum number of values, and of lines, in a comment. The YAML library takes more than 100 µs to write a value."""


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
            reason = f"{service}: {', '.join(others)} omitted, because Lares does not support this"
            self.problems.append(reason)
            self.lines.note(reason)

    def end_run(self, what: str) -> None:
        """End the run at a condition that cannot be translated, because this condition might prevent the next
        actions."""
        self.lines.add(f'ctx:log("warn", {quote(f"{what} is not translated; write it in Lua in this file")})')
        self.lines.add("do return end")

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


class _Representer(SafeRepresenter):
    """Represents texts of several lines as blocks."""

    def represent_text(self, text: str) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Representer.add_representer(str, _Representer.represent_text)


def as_yaml(part: Any) -> str:
    """Return a part as YAML, for comments. Omit the values and lines beyond `MAX_COMMENT_ROWS`."""
    yaml = YAML(typ="safe", pure=True, plug_ins=[])
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment] # declared without a type
    yaml.Representer = _Representer
    yaml.width = 100
    stream = io.StringIO()
    left = iter(range(MAX_COMMENT_ROWS + 1))
    yaml.dump(_plain(part, left), stream)
    lines = stream.getvalue().replace("\n...", "").strip().splitlines()
    if len(lines) > MAX_COMMENT_ROWS or next(left, None) is None:
        lines[MAX_COMMENT_ROWS:] = ["… (shortened; see the file in Home Assistant)"]
    return "\n".join(lines)


def _plain(part: Any, left: Iterator[int]) -> Any:
    """Return plain values for the YAML library. Each row of a mapping or list takes one number from `left`, and rows
    without a number are omitted."""
    if isinstance(part, Tagged | Base60):
        return str(part)
    if isinstance(part, Mapping):
        return {str(key): _plain(each, left) for (key, each), _ in zip(part.items(), left, strict=False)}
    return [_plain(each, left) for each, _ in zip(part, left, strict=False)] if isinstance(part, list) else part
