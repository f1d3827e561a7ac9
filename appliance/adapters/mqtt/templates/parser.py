"""Jinja's lexer and parser, and its own filters. Nothing here compiles or renders a template."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from appliance.adapters.mqtt.templates.operators import item
from appliance.adapters.mqtt.templates.template_limits import MAX_NODES, TemplateFailed

MAX_TOKENS = 4 * MAX_NODES
"""Tokens of a template: brackets and commas are no nodes, and reading them takes time."""


@functools.cache
def environment() -> Any:
    """Jinja's parser and own filters, imported when the first template is met. It compiles and renders nothing."""
    from jinja2 import Environment
    from jinja2.ext import Extension

    class Bounded(Extension):
        """Counts the tokens while they are read."""

        def filter_stream(self, stream: Any) -> Iterator[Any]:
            for number, token in enumerate(stream):
                if number > MAX_TOKENS:
                    raise TemplateFailed(f"has more than {MAX_NODES} parts")
                yield token

    class Parser(Environment):
        """Its own filters reach the parts of values as templates do."""

        def getitem(self, obj: Any, argument: Any) -> Any:
            return item(obj, argument)

        def getattr(self, obj: Any, attribute: str) -> Any:
            return item(obj, attribute)

    return Parser(extensions=["jinja2.ext.loopcontrols", Bounded])
