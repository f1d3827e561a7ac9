"""Regular expressions of templates: only literal ones, on short texts, and none that could take long."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterable
from typing import Any

from appliance.adapters.mqtt.templates.template_limits import Rendering, TemplateFailed

MAX_SUBJECT_CHARS = 256
"""Characters of a text that a regular expression may search."""

MAX_WAYS = 100_000
"""In how many ways a pattern may try to match a text of that length: Python cannot interrupt a search."""

_PARSER: Any = importlib.import_module("re._parser")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_PLAIN = ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT", "RANGE", "CATEGORY", "NEGATE")


def compiled(pattern: Any, run: Rendering) -> re.Pattern[str]:
    """The pattern, ready to search; `TemplateFailed` if it does not stand in the template or could take long."""
    if not isinstance(pattern, str) or pattern not in run.patterns:
        raise TemplateFailed("a regular expression must stand in the template itself")
    found, ways = _compiled(pattern)
    run.charge(20 + ways * MAX_SUBJECT_CHARS // 20_000)
    return found


def subject(value: Any) -> str:
    """The text to search; refused beyond `MAX_SUBJECT_CHARS`."""
    text = str(value)
    if len(text) > MAX_SUBJECT_CHARS:
        raise TemplateFailed(f"searches a text of more than {MAX_SUBJECT_CHARS} characters")
    return text


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> tuple[re.Pattern[str], int]:
    try:
        ways = _ways(_PARSER.parse(pattern))
        if ways <= MAX_WAYS:
            return re.compile(pattern), ways
    except (re.error, RecursionError, OverflowError):
        raise TemplateFailed("a regular expression cannot be read") from None
    raise TemplateFailed("a regular expression could take too long")


def _ways(items: Iterable[Any]) -> int:
    """At most how many ways there are to match these items, one after another; more than `MAX_WAYS` is just more."""
    ways = 1
    for operator, argument in items:
        ways *= _ways_of(str(operator), argument)
        if ways > MAX_WAYS:
            return MAX_WAYS + 1
    return ways


def _ways_of(operator: str, argument: Any) -> int:
    if operator in _PLAIN:
        return 1
    if operator == "SUBPATTERN":
        return _ways(argument[3])
    if operator == "BRANCH":
        return sum(_ways(branch) for branch in argument[1])
    if operator in _REPEATS:
        low, high, inner = int(argument[0]), min(int(argument[1]), MAX_SUBJECT_CHARS), _ways(argument[2])
        if low > MAX_SUBJECT_CHARS:
            return MAX_WAYS + 1
        choices = high - low + 1
        return choices if inner == 1 else choices * inner ** min(high, 32)
    return MAX_WAYS + 1
