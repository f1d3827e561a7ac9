"""Regular expressions of templates: only those that stand in the template, within a bound of their work."""

from __future__ import annotations

import functools
import importlib
import re
import warnings
from collections.abc import Iterable
from typing import Any

from appliance.adapters.mqtt.templates.template_limits import Rendering, TemplateFailed

MAX_SUBJECT_CHARS = 256
"""Characters of a text that a regular expression may search."""

MAX_PATTERN_CHARS = 512
"""Characters of a regular expression."""

MAX_COMPARISONS = 200_000
"""Comparisons of one search at worst, about 2 ms: Python cannot interrupt a search."""

_PARSER: Any = importlib.import_module("re._parser")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_PLAIN = ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT", "RANGE", "CATEGORY", "NEGATE")


def matches(run: Rendering, value: Any, pattern: Any = "", ignorecase: Any = False) -> bool:
    """Whether the start of the value fits the pattern."""
    text = _subject(value)
    return _compiled(run, pattern, ignorecase, len(text)).match(text) is not None


def search(run: Rendering, value: Any, pattern: Any = "", ignorecase: Any = False) -> bool:
    """Whether any part of the value fits the pattern."""
    text = _subject(value)
    return _compiled(run, pattern, ignorecase, len(text)).search(text) is not None


def findall(run: Rendering, value: Any, pattern: Any = "", ignorecase: Any = False) -> list[Any]:
    """All parts of the value that fit the pattern, or their groups."""
    text = _subject(value)
    return run.made(_compiled(run, pattern, ignorecase, len(text)).findall(text))  # type: ignore[no-any-return]


def findall_index(run: Rendering, value: Any, pattern: Any = "", index: Any = 0, ignorecase: Any = False) -> Any:
    """One of the parts of the value that fit the pattern."""
    return findall(run, value, pattern, ignorecase)[index]


def replace(run: Rendering, value: Any, pattern: Any = "", new: Any = "", ignorecase: Any = False) -> str:
    """The value with each part that fits the pattern replaced."""
    text, by = _subject(value), run.text(new)
    if len(by) > MAX_SUBJECT_CHARS:
        raise TemplateFailed(f"replaces by a text of more than {MAX_SUBJECT_CHARS} characters")
    return run.bounded(_compiled(run, pattern, ignorecase, len(text)).sub(by, text))


def check(pattern: str) -> None:
    """Raise `TemplateFailed` for a pattern that cannot be read, or is too costly even for a short text."""
    _tries(pattern, 16)


def _subject(value: Any) -> str:
    text = value if isinstance(value, str) else str(value) if isinstance(value, int | float) else None
    if text is None:
        raise TemplateFailed(f"searches {type(value).__name__}, not a text")
    if len(text) > MAX_SUBJECT_CHARS:
        raise TemplateFailed(f"searches a text of more than {MAX_SUBJECT_CHARS} characters")
    return text


def _compiled(run: Rendering, pattern: Any, ignorecase: Any, length: int) -> re.Pattern[str]:
    """The pattern, ready to search a text of that length; `TemplateFailed` where that could take long."""
    if not isinstance(pattern, str) or pattern not in run.literals:
        raise TemplateFailed("a regular expression must stand in the template itself")
    run.charge(20 + _tries(pattern, 1 << length.bit_length()) // 200)
    return _ready(pattern, bool(ignorecase))


@functools.lru_cache(maxsize=1024)
def _ready(pattern: str, ignorecase: bool) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE if ignorecase else 0)


@functools.lru_cache(maxsize=1024)
def _tries(pattern: str, length: int) -> int:
    """At most how many comparisons one search of a text of that length makes."""
    try:
        with warnings.catch_warnings(action="ignore"):
            parsed = _PARSER.parse(pattern) if len(pattern) <= MAX_PATTERN_CHARS else None
    except (re.error, RecursionError, OverflowError):
        raise TemplateFailed("a regular expression cannot be read") from None
    tries = MAX_COMPARISONS + 1
    if parsed is not None:
        is_anchored = len(parsed) and str(parsed[0][1]) == "AT_BEGINNING" and not parsed.state.flags & re.MULTILINE
        tries = _ways(parsed, length) * (1 if is_anchored else length) * min(len(pattern), length)
    if tries > MAX_COMPARISONS:
        raise TemplateFailed("a regular expression could take too long")
    return tries


def _ways(items: Iterable[Any], length: int) -> int:
    """At most how many ways there are to match these items, one after another; beyond the maximum it is just more."""
    ways = 1
    for operator, argument in items:
        ways *= _ways_of(str(operator), argument, length)
        if ways > MAX_COMPARISONS:
            return MAX_COMPARISONS + 1
    return ways


def _ways_of(operator: str, argument: Any, length: int) -> int:
    if operator in _PLAIN:
        return 1
    if operator == "SUBPATTERN":
        return _ways(argument[3], length)
    if operator == "BRANCH":
        return sum(_ways(branch, length) for branch in argument[1])
    if operator in _REPEATS:
        low, high, inner = int(argument[0]), min(int(argument[1]), length), _ways(argument[2], length)
        if low > MAX_SUBJECT_CHARS:
            return MAX_COMPARISONS + 1
        choices = max(high - low, 0) + 1
        return choices if inner == 1 else choices * inner ** min(high, 32)
    return MAX_COMPARISONS + 1
