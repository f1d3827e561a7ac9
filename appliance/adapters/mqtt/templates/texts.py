"""Operations of templates on texts: formatting, search, and replacement. The cost of regular expressions is
limited."""

from __future__ import annotations

import functools
import importlib
import re
import string
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from appliance.adapters.mqtt.templates.template_limits import (
    CHARS_PER_STEP,
    MAX_STRING_CHARS,
    MAX_WEIGHT,
    TOO_LONG,
    Rendering,
    TemplateFailed,
)

MAX_SUBJECT_CHARS = 256
"""Maximum length of a text that a regular expression may search."""

MAX_PATTERN_CHARS = 512

MAX_KEPT_PATTERNS = 256
"""Maximum number of compiled patterns that are kept. A pattern can need 22 KB."""

MAX_COMPARISONS = 200_000
"""Maximum number of comparisons of one search in the worst case. This number of comparisons takes about 2 ms. Python
cannot interrupt a search."""

MAX_RANGES_CHARS = 70_000
"""Maximum number of characters in all ranges of a regular expression. If case is ignored, Python tries each of
these characters."""

_PARSER: Any = importlib.import_module("re._parser")
_COMPILER: Any = importlib.import_module("re._compiler")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_PLAIN = ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT", "RANGE", "CATEGORY", "NEGATE")


def matches(run: Rendering, value: Any, pattern: Any = "", ignorecase: Any = False) -> bool:
    """Return whether the pattern matches at the beginning of the value."""
    compiled, text = _ready(run, value, pattern, ignorecase)
    return compiled.match(text) is not None


def search(run: Rendering, value: Any, pattern: Any = "", ignorecase: Any = False) -> bool:
    """Return whether the pattern matches anywhere in the value."""
    compiled, text = _ready(run, value, pattern, ignorecase)
    return compiled.search(text) is not None


def findall(run: Rendering, value: Any, pattern: Any = "", ignorecase: Any = False) -> list[Any]:
    """Return all matches of the pattern in the value, or their groups."""
    compiled, text = _ready(run, value, pattern, ignorecase)
    return run.made(compiled.findall(text))  # type: ignore[no-any-return]


def findall_index(run: Rendering, value: Any, pattern: Any = "", index: Any = 0, ignorecase: Any = False) -> Any:
    """Return one of the matches of the pattern in the value."""
    return findall(run, value, pattern, ignorecase)[index]


def replace(run: Rendering, value: Any, pattern: Any = "", new: Any = "", ignorecase: Any = False) -> str:
    """Replace all matches of the pattern in the value."""
    (compiled, text), by = _ready(run, value, pattern, ignorecase), run.text(new)
    if len(by) > MAX_SUBJECT_CHARS:
        raise TemplateFailed(f"uses a replacement of more than {MAX_SUBJECT_CHARS} characters")
    return run.bounded(compiled.sub(by, text))


def check(pattern: str) -> None:
    """Raise `TemplateFailed` for a pattern that is unreadable, or too expensive even for a short text."""
    _tries(pattern, 16)


def fits(text: str, pattern: str) -> bool:
    """Return whether a pattern accepted by `check` matches at the beginning of the text. Return false for a long
    text."""
    if len(text) > MAX_SUBJECT_CHARS:
        return False
    _tries(pattern, 1 << len(text).bit_length())
    return _compiled(pattern, False).match(text) is not None


def _ready(run: Rendering, value: Any, pattern: Any, ignorecase: Any) -> tuple[re.Pattern[str], str]:
    """Return the pattern, and the text to search. Raise `TemplateFailed` if the search could take too long."""
    text = value if isinstance(value, str) else str(value) if isinstance(value, int | float) else None
    if text is None:
        raise TemplateFailed(f"searches a value of type {type(value).__name__} instead of a text")
    if len(text) > MAX_SUBJECT_CHARS:
        raise TemplateFailed(f"searches a text of more than {MAX_SUBJECT_CHARS} characters")
    if not isinstance(pattern, str) or pattern not in run.literals:
        raise TemplateFailed("takes a regular expression from a value; write the expression as a literal text")
    run.charge(20 + _tries(pattern, 1 << len(text).bit_length()) // 200)
    return _compiled(pattern, bool(ignorecase)), text


@functools.lru_cache(MAX_KEPT_PATTERNS)
def _compiled(pattern: str, ignorecase: bool) -> re.Pattern[str]:
    compiled: re.Pattern[str] = _COMPILER.compile(pattern, re.IGNORECASE if ignorecase else 0)
    return compiled  # `re.compile` would keep 512 patterns


@functools.lru_cache(MAX_KEPT_PATTERNS)
def _tries(pattern: str, length: int) -> int:
    """Return the maximum number of comparisons in one search of a text with this length."""
    try:
        with warnings.catch_warnings(action="ignore"):
            parsed = _PARSER.parse(pattern) if len(pattern) <= MAX_PATTERN_CHARS else None
    except (re.error, RecursionError, OverflowError):
        raise TemplateFailed("has an unreadable regular expression") from None
    tries = MAX_COMPARISONS + 1
    if parsed is not None and _in_ranges(parsed) <= MAX_RANGES_CHARS:
        is_anchored = len(parsed) and str(parsed[0][1]) == "AT_BEGINNING" and not parsed.state.flags & re.MULTILINE
        tries = _ways(parsed, length) * (1 if is_anchored else length) * min(len(pattern), length)
    if tries > MAX_COMPARISONS:
        raise TemplateFailed("has a regular expression that could take too long")
    return tries


def _in_ranges(parsed: Any) -> int:
    """Count the characters in all ranges of a parsed pattern. Python tries only characters up to U+FFFF."""
    if isinstance(parsed, tuple) and str(parsed[0]) == "RANGE":
        return min(int(parsed[1][1]), 0xFFFF) - min(int(parsed[1][0]), 0xFFFF)
    return sum(map(_in_ranges, parsed)) if isinstance(parsed, tuple | list | _PARSER.SubPattern) else 0


def _ways(items: Iterable[Any], length: int) -> int:
    """Return the maximum number of ways to match these items in sequence. Above the limit, the number is not
    exact."""
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
        if argument[2].getwidth()[0] == 0:
            # an item that can match the empty text is repeated as often as required, even at the end of the text
            choices *= max(low, 1)
        return choices if inner == 1 else choices * inner ** min(high, 32)
    return MAX_COMPARISONS + 1


MAX_WIDTH = 999

_DIRECTIVE = re.compile(r"%(?:\(\w+\))?[-#0 +]*\d{0,3}(?:\.\d{1,2})?[hlL]?[diouxXeEfFgGcs%]")
_SPEC = re.compile(r"(?:.?[<>=^])?[-+ ]?#?0?\d{0,3}[,_]?(?:\.\d{1,2})?[a-zA-Z%]?")


def joined(run: Rendering, value: Any, between: Any = "") -> str:
    """Join the texts of the elements with a separator. Reject a result that would be too long."""
    texts, length, gap = [], 0, run.text(between)
    for each in run.elements(value):
        texts.append(run.text(each))
        length += len(texts[-1]) + len(gap)
        if length - len(gap) > MAX_STRING_CHARS:
            raise TemplateFailed(TOO_LONG)
    return run.bounded(gap.join(texts))


def replaced(run: Rendering, text: str, old: Any, new: Any, count: Any = None) -> str:
    """Replace `old` with `new`. Reject a result that would be too long."""
    old, new = run.text(old), run.text(new)
    run.search(text, old)
    times = text.count(old) if count is None or count < 0 else min(text.count(old), count)
    if len(text) + times * (len(new) - len(old)) > MAX_STRING_CHARS:
        raise TemplateFailed(TOO_LONG)
    run.charge(times // 64)
    return run.bounded(text.replace(old, new, times))


def split(run: Rendering, text: str, by: Any = None, most: Any = -1, *, from_end: bool = False) -> list[str]:
    """Split a text at a separator, by default at white space. Reject too many parts before any part is created."""
    run.search(text, by or " ")
    most = most if 0 <= most <= MAX_WEIGHT else MAX_WEIGHT
    return run.made(text.rsplit(by, most) if from_end else text.split(by, most))  # type: ignore[no-any-return]


def filled(run: Rendering, text: str, values: Any) -> str:
    """Fill in the `%` directives of a text according to Python's rules. Widths are limited."""
    directives = _DIRECTIVE.findall(text)
    if sum(each.count("%") for each in directives) != text.count("%"):
        raise TemplateFailed("has an unsupported format")
    parts = values.values() if isinstance(values, dict) else values if isinstance(values, tuple) else (values,)
    longest = max((len(run.text(each)) for each in parts), default=0)
    _check_growth(len(directives), longest)
    return run.bounded(text % values)


def formatted(run: Rendering, text: str, *given: Any, **named: Any) -> str:
    """Format a text like `str.format`. Fields are selected by position or name, and cannot use attributes or items.
    Widths are limited."""
    output, fields = [], 0
    for literal, name, spec, conversion in string.Formatter().parse(text):
        output.append(literal)
        if name is None:
            continue
        if conversion not in (None, "s") or not _SPEC.fullmatch(spec or "") or not (name == "" or name.isidentifier()
                                                                                    or name.isdecimal()):  # fmt: skip
            raise TemplateFailed("has an unsupported format")
        value = named[name] if name.isidentifier() else given[int(name) if name else fields]
        fields += 1
        shown = value if isinstance(value, int | float) and conversion is None else run.text(value)
        _check_growth(fields, len(run.text(value)))
        output.append(format(shown, spec or ""))
    return run.bounded("".join(output))


def _short(text: str) -> str:
    if len(text) > MAX_WEIGHT:
        raise TemplateFailed(f"splits a text of more than {MAX_WEIGHT:,} characters")
    return text


def _check_growth(directives: int, longest: int) -> None:
    if directives * (longest + 1) > MAX_STRING_CHARS or directives > 100:
        raise TemplateFailed("has a format that creates a text that is too long")


def _plain(name: str, *, searches: bool = False) -> Callable[..., Any]:
    """Return a method of `str`. The method's result must be at most slightly longer than the text and the
    arguments."""
    method = getattr(str, name)

    def call(run: Rendering, text: str, *given: Any) -> Any:
        run.charge(len(text) // CHARS_PER_STEP)
        for each in given:
            if isinstance(each, str) and searches:
                run.search(text, each)
            elif isinstance(each, str):
                # `strip` compares each character with all characters of the argument
                run.charge(len(text) * len(each) // 20_000)
            if isinstance(each, int) and abs(each) > (MAX_STRING_CHARS if searches else MAX_WIDTH):
                raise TemplateFailed(f"creates a text of more than {MAX_WIDTH} characters")
        return run.made(method(text, *given))

    return call


_SIMPLE = """capitalize casefold endswith isalnum isalpha isascii isdecimal isdigit islower isidentifier isnumeric
    isprintable isspace istitle isupper ljust lower lstrip removeprefix removesuffix rjust center rstrip startswith
    strip swapcase title upper zfill"""
_SEARCHING = "count find index partition rfind rindex rpartition"

TEXT_METHODS: Mapping[str, Callable[..., Any]] = {
    **{name: _plain(name) for name in _SIMPLE.split()},
    **{name: _plain(name, searches=True) for name in _SEARCHING.split()},
    "format": formatted,
    "join": lambda run, text, values: joined(run, values, text),
    "replace": replaced,
    "rsplit": lambda run, text, by=None, maxsplit=-1: split(run, text, by, maxsplit, from_end=True),
    "split": lambda run, text, sep=None, maxsplit=-1: split(run, text, sep, maxsplit),
    "splitlines": lambda run, text, keepends=False: run.made(_short(text).splitlines(keepends)),
}
"""Methods of a text that templates may call."""
