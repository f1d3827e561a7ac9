"""A template, parsed once and rendered often: the text that Jinja would give, or the reason why not."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from appliance.adapters.mqtt.templates.template_limits import MAX_TEMPLATE_BYTES, Rendering, TemplateFailed


class Template:
    """One template. Rendering changes nothing of it, so that it may be shared."""

    def __init__(self, text: str) -> None:
        """Raises `TemplateFailed` for a text that is not in the subset or beyond its limits."""
        if len(text.encode(errors="replace")) > MAX_TEMPLATE_BYTES:
            raise TemplateFailed(f"has more than {MAX_TEMPLATE_BYTES // 1024} KiB")
        # It imports Jinja, which takes a fifth of a second: only where there is a template.
        from appliance.adapters.mqtt.templates.evaluator import parse, write

        try:
            self._body, self._literals = parse(text)
        except TemplateFailed:
            raise
        except RecursionError:
            raise TemplateFailed("is nested too deep") from None
        except Exception as error:  # a syntax error, or what Jinja's parser does not foresee
            raise TemplateFailed(f"cannot be read: {str(error)[:200]}") from None
        self._write = write

    def render(self, names: Mapping[str, Any], now: datetime) -> str:
        """The text, without white space around it; `now` has the zone of the home.

        Raises `ValueMissing` where it looks into what is not there, and `TemplateFailed` for what it cannot do.
        """
        run = Rendering(dict(names), now, self._literals)
        output: list[str] = []
        try:
            self._write(run, output, self._body)
            text = output[0] if len(output) == 1 else "".join(output)
            return run.bounded(text).strip()
        except TemplateFailed:
            raise
        except RecursionError:
            raise TemplateFailed("is nested too deep") from None
        except Exception as error:  # values of wrong types
            raise TemplateFailed(f"fails: {str(error)[:200]}") from None


MAX_KEPT_TEMPLATES = 1_024
"""Templates that are kept by their texts though maybe nobody uses them, with those that cannot be read."""


def template(text: str) -> Template:
    """The template of this text, read once; raises `TemplateFailed`."""
    found = _parsed(text)
    if isinstance(found, str):
        raise TemplateFailed(found)
    return found


@functools.lru_cache(maxsize=MAX_KEPT_TEMPLATES)
def _parsed(text: str) -> Template | str:
    """The template, or the fault of one that cannot be read."""
    try:
        return Template(text)
    except TemplateFailed as fault:
        return str(fault)
