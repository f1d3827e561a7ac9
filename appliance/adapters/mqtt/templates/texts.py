"""What templates may do with texts: searching, replacing, splitting, formats."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping
from typing import Any

from appliance.adapters.mqtt.templates.template_limits import (
    CHARS_PER_STEP,
    MAX_STRING_CHARS,
    MAX_WEIGHT,
    TOO_LONG,
    Rendering,
    TemplateFailed,
)

MAX_WIDTH = 999
"""Characters to which a format fills up one value."""

_DIRECTIVE = re.compile(r"%(?:\(\w+\))?[-#0 +]*\d{0,3}(?:\.\d{1,2})?[hlL]?[diouxXeEfFgGcs%]")
_SPEC = re.compile(r"(?:.?[<>=^])?[-+ ]?#?0?\d{0,3}[,_]?(?:\.\d{1,2})?[a-zA-Z%]?")


def joined(run: Rendering, value: Any, between: Any = "") -> str:
    """The texts of the elements with another between them; refused before it is too long."""
    texts, length, gap = [], 0, run.text(between)
    for each in run.elements(value):
        texts.append(run.text(each))
        length += len(texts[-1]) + len(gap)
        if length - len(gap) > MAX_STRING_CHARS:
            raise TemplateFailed(TOO_LONG)
    return run.bounded(gap.join(texts))


def replaced(run: Rendering, text: str, old: Any, new: Any, count: Any = None) -> str:
    """The text with every `old` as `new`; refused before it would grow too long."""
    old, new = run.text(old), run.text(new)
    run.search(text, old)
    times = text.count(old) if count is None or count < 0 else min(text.count(old), count)
    if len(text) + times * (len(new) - len(old)) > MAX_STRING_CHARS:
        raise TemplateFailed(TOO_LONG)
    run.charge(times // 64)
    return run.bounded(text.replace(old, new, times))


def split(run: Rendering, text: str, by: Any = None, most: Any = -1, *, from_end: bool = False) -> list[str]:
    """The parts between separators, white space if none is given; refused before there are too many."""
    run.search(text, by or " ")
    most = most if 0 <= most <= MAX_WEIGHT else MAX_WEIGHT
    return run.made(text.rsplit(by, most) if from_end else text.split(by, most))  # type: ignore[no-any-return]


def filled(run: Rendering, text: str, values: Any) -> str:
    """A text with `%` directives filled in, as Python does it; widths are bounded."""
    directives = _DIRECTIVE.findall(text)
    if sum(each.count("%") for each in directives) != text.count("%"):
        raise TemplateFailed("has a format that is not supported")
    parts = values.values() if isinstance(values, dict) else values if isinstance(values, tuple) else (values,)
    longest = max((len(run.text(each)) for each in parts), default=0)
    _check_growth(len(directives), longest)
    return run.bounded(text % values)


def formatted(run: Rendering, text: str, *given: Any, **named: Any) -> str:
    """The method `format`: fields by position or name, without attributes or items; widths are bounded."""
    output, fields = [], 0
    for literal, name, spec, conversion in string.Formatter().parse(text):
        output.append(literal)
        if name is None:
            continue
        if conversion not in (None, "s") or not _SPEC.fullmatch(spec or "") or not (name == "" or name.isidentifier()
                                                                                    or name.isdecimal()):  # fmt: skip
            raise TemplateFailed("has a format that is not supported")
        value = named[name] if name.isidentifier() else given[int(name) if name else fields]
        fields += 1
        shown = value if isinstance(value, int | float) and conversion is None else run.text(value)
        _check_growth(fields, len(run.text(value)))
        output.append(format(shown, spec or ""))
    return run.bounded("".join(output))


def _short(text: str) -> str:
    if len(text) > MAX_WEIGHT:
        raise TemplateFailed(f"takes apart a text of more than {MAX_WEIGHT:,} characters")
    return text


def _check_growth(directives: int, longest: int) -> None:
    if directives * (longest + 1) > MAX_STRING_CHARS or directives > 100:
        raise TemplateFailed("has a format that makes too much")


def _plain(name: str, *, searches: bool = False) -> Callable[..., Any]:
    """A method of Python's texts whose result is hardly longer than text and arguments."""
    method = getattr(str, name)

    def call(run: Rendering, text: str, *given: Any) -> Any:
        run.charge(len(text) // CHARS_PER_STEP)
        for each in given:
            if isinstance(each, str) and searches:
                run.search(text, each)
            if isinstance(each, int) and abs(each) > (MAX_STRING_CHARS if searches else MAX_WIDTH):
                raise TemplateFailed(f"makes a text wider than {MAX_WIDTH}")
        return run.made(method(text, *given))

    return call


_PLAIN = """capitalize casefold endswith isalnum isalpha isascii isdecimal isdigit islower isnumeric isspace isupper
    ljust lower lstrip removeprefix removesuffix rjust center rstrip startswith strip swapcase title upper zfill"""
_SEARCHING = "count find index partition rfind rindex rpartition"

TEXT_METHODS: Mapping[str, Callable[..., Any]] = {
    **{name: _plain(name) for name in _PLAIN.split()},
    **{name: _plain(name, searches=True) for name in _SEARCHING.split()},
    "format": formatted,
    "join": lambda run, text, values: joined(run, values, text),
    "replace": replaced,
    "rsplit": lambda run, text, by=None, maxsplit=-1: split(run, text, by, maxsplit, from_end=True),
    "split": lambda run, text, sep=None, maxsplit=-1: split(run, text, sep, maxsplit),
    "splitlines": lambda run, text: run.made(_short(text).splitlines()),
}
"""The methods of a text that templates may call."""
