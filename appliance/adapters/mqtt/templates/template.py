"""Templates that are rendered repeatedly. A template renders the same text as Jinja, or raises an exception with
the reason."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from appliance.adapters.mqtt.templates.template_limits import (
    MAX_TEMPLATE_BYTES,
    Rendering,
    TemplateFailed,
    ValueMissing,
)

MAX_PARSED_CHARS = 512 * 1024
"""Maximum total length of the templates whose parsed form is cached. The least recently rendered templates are parsed
again when needed.

A character takes up to 120 bytes of memory. The limit is enough for 5,800 usual templates of 40 characters.
"""

CHARS_PER_TEMPLATE = 50
"""Each cached template counts as this many characters more, because even a short one takes kilobytes of memory."""

EVALUATOR = "appliance.adapters.mqtt.templates.evaluator"
"""The module that the first template other than a path imports. The import takes a fifth of a second."""

_PATH = r"""\{\{\s*value_json((?:\.[A-Za-z_]\w*|\['[^'\\{}]*'\]|\["[^"\\{}]*"\])+)\s*\}\}"""
_PATH_TEMPLATE = re.compile(_PATH)
_PATH_IN_JSON = re.compile(_PATH.replace('"', r'\\"').encode())  # JSON escapes quotes
_STEP = re.compile(r"\.(\w+)|\['([^']*)'\]|\[\"([^\"]*)\"\]")

_MISSING = object()


class _Path:
    """A template such as `{{ value_json.a['b'] }}`, which is the most frequent form. It is rendered without the
    evaluator."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys

    def render(self, names: Mapping[str, Any], now: datetime) -> str:
        value = names.get("value_json", _MISSING)
        for key in self._keys:
            if value is _MISSING:
                raise ValueMissing(f"reads {key[:60]!r} of a missing value")
            value = value.get(key, _MISSING) if isinstance(value, dict) else _MISSING
        if value is _MISSING:
            return ""
        if isinstance(value, dict | list | str):
            return Rendering({}, now, frozenset()).text(value)
        return str(value)


class _Tree:
    """Any other template, as the syntax tree of Jinja's parser, which the evaluator renders."""

    def __init__(self, write: Callable[..., object], body: Any, literals: frozenset[str]) -> None:
        self._write, self._body, self._literals = write, body, literals

    def render(self, names: Mapping[str, Any], now: datetime) -> str:
        run = Rendering(dict(names), now, self._literals)
        output: list[str] = []
        self._write(run, output, self._body)
        return run.bounded(output[0] if len(output) == 1 else "".join(output))


_Parsed = _Path | _Tree


class Template(Struct, frozen=True, gc=False):
    """Renders the value of a message."""

    def render(self, names: Mapping[str, Any], now: datetime) -> str:
        """Return the text without surrounding white space. `now` is in the home's zone.

        Raise `ValueMissing` if the template reads a missing value, and `TemplateFailed` if it fails for another
        reason.
        """
        raise NotImplementedError


class JinjaTemplate(Template, frozen=True, gc=False):
    """An announced template. Only the text is stored here, because the parsed form takes far more memory. `PARSED`
    limits the memory for parsed forms."""

    text: str

    def __post_init__(self) -> None:
        """Raise `TemplateFailed` if the text is unsupported or exceeds a limit."""
        if len(self.text.encode(errors="replace")) > MAX_TEMPLATE_BYTES:
            raise TemplateFailed(f"has more than {MAX_TEMPLATE_BYTES // 1024} KiB")
        self._parsed()

    def _parsed(self) -> _Parsed:
        if isinstance(found := PARSED.find(self.text), str):
            raise TemplateFailed(found)
        return found

    def render(self, names: Mapping[str, Any], now: datetime) -> str:
        parsed = self._parsed()
        try:
            return parsed.render(names, now).strip()
        except TemplateFailed:
            raise
        except RecursionError:
            raise TemplateFailed("is nested too deeply") from None
        except Exception as error:  # for example, a value of a wrong type
            raise TemplateFailed(f"fails: {str(error)[:200]}") from None


def needs_evaluator(payload: bytes) -> bool:
    """Return whether the JSON of a configuration may contain a template that is more complex than a path."""
    if b"{%" in payload:
        return True
    count = payload.count(b"{{")
    return count > 0 and count > len(_PATH_IN_JSON.findall(payload))


class ParsedTemplates:
    """A cache of parsed templates, limited by `MAX_PARSED_CHARS`. The least recently used templates are removed
    first."""

    def __init__(self) -> None:
        self._chars = 0
        self._kept: OrderedDict[str, _Parsed | str] = OrderedDict()

    def find(self, text: str) -> _Parsed | str:
        """Return the parsed template, or the reason why it cannot be parsed."""
        if (found := self._kept.get(text)) is not None:
            self._kept.move_to_end(text)
            return found
        self._kept[text] = found = _parse(text)
        self._chars += len(text) + CHARS_PER_TEMPLATE
        while self._chars > MAX_PARSED_CHARS:
            self._chars -= len(self._kept.popitem(last=False)[0]) + CHARS_PER_TEMPLATE
        return found


PARSED = ParsedTemplates()


def _parse(text: str) -> _Parsed | str:
    if (path := _PATH_TEMPLATE.fullmatch(text.strip())) is not None:
        return _Path(["".join(step) for step in _STEP.findall(path[1])])
    from appliance.adapters.mqtt.templates.evaluator import parse, write  # see `EVALUATOR`

    try:
        return _Tree(write, *parse(text))
    except TemplateFailed as fault:
        return str(fault)
    except RecursionError:
        return "is nested too deeply"
    except Exception as error:  # a syntax error, or an unexpected error of Jinja's parser
        return f"cannot be read: {str(error)[:200]}"
