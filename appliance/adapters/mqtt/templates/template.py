"""A template, rendered often: the text that Jinja would give, or the reason why not."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from appliance.adapters.mqtt.templates.template_limits import MAX_TEMPLATE_BYTES, Rendering, TemplateFailed

MAX_PARSED_CHARS = 512 * 1024
"""Characters of the templates that are kept as they were parsed, those rendered last; others are parsed anew.

A character takes up to 120 bytes; 13,000 usual templates of 40 characters fit.
"""

_Parsed = tuple[Callable[..., Any], Any, frozenset[str]]


class Template:
    """One template. It holds its text alone: what a text is parsed to takes far more memory, and has a bound."""

    def __init__(self, text: str) -> None:
        """Raises `TemplateFailed` for a text that is not in the subset or beyond its limits."""
        if len(text.encode(errors="replace")) > MAX_TEMPLATE_BYTES:
            raise TemplateFailed(f"has more than {MAX_TEMPLATE_BYTES // 1024} KiB")
        self._text = text
        self._parsed()

    def _parsed(self) -> _Parsed:
        if isinstance(found := PARSED.find(self._text), str):
            raise TemplateFailed(found)
        return found

    def render(self, names: Mapping[str, Any], now: datetime) -> str:
        """The text, without white space around it; `now` has the zone of the home.

        Raises `ValueMissing` where it looks into what is not there, and `TemplateFailed` for what it cannot do.
        """
        write, body, literals = self._parsed()
        run = Rendering(dict(names), now, literals)
        output: list[str] = []
        try:
            write(run, output, body)
            text = output[0] if len(output) == 1 else "".join(output)
            return run.bounded(text).strip()
        except TemplateFailed:
            raise
        except RecursionError:
            raise TemplateFailed("is nested too deep") from None
        except Exception as error:  # values of wrong types
            raise TemplateFailed(f"fails: {str(error)[:200]}") from None


class ParsedTemplates:
    """What texts were parsed to, bounded by their characters; what was used last is kept."""

    def __init__(self) -> None:
        self._chars = 0
        self._kept: OrderedDict[str, _Parsed | str] = OrderedDict()

    def find(self, text: str) -> _Parsed | str:
        """What runs a template, its statements and the texts in them; else why it cannot be read."""
        if (found := self._kept.get(text)) is not None:
            self._kept.move_to_end(text)
            return found
        self._kept[text] = found = _parse(text)
        self._chars += len(text)
        while self._chars > MAX_PARSED_CHARS:
            self._chars -= len(self._kept.popitem(last=False)[0])
        return found


PARSED = ParsedTemplates()


def _parse(text: str) -> _Parsed | str:
    # It imports Jinja, which takes a fifth of a second: only where there is a template.
    from appliance.adapters.mqtt.templates.evaluator import parse, write

    try:
        return write, *parse(text)
    except TemplateFailed as fault:
        return str(fault)
    except RecursionError:
        return "is nested too deep"
    except Exception as error:  # a syntax error, or what Jinja's parser does not foresee
        return f"cannot be read: {str(error)[:200]}"
