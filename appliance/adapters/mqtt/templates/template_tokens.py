"""Reading the tokens of a template, one after another."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.adapters.mqtt.templates.lexer import TemplateToken
from appliance.adapters.mqtt.templates.template_limits import MAX_NODES, TemplateFailed


class Budget:
    """Counts the nodes of one template and gathers its text literals."""

    def __init__(self) -> None:
        self.literals: set[str] = set()
        self._nodes = 0

    def count(self) -> None:
        """Count a node; `TemplateFailed` beyond `MAX_NODES`."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise TemplateFailed(f"has more than {MAX_NODES} parts")


class TokenReader:
    """Reads the tokens of one part. All readers of a template share `budget`, its nodes and literals."""

    def __init__(self, tokens: Sequence[TemplateToken], budget: Budget) -> None:
        self._tokens = tokens
        self._at = 0
        self._budget = budget

    @property
    def next(self) -> TemplateToken:
        """The token that comes next."""
        return self._tokens[min(self._at, len(self._tokens) - 1)]

    def take(self) -> TemplateToken:
        """The next token, which is then behind."""
        token = self.next
        self._at += 1
        return token

    def accept(self, *texts: str) -> str | None:
        """The text of the next token if it is one of these operators or words, which is then behind."""
        token = self.next
        if token.kind in ("operator", "name") and token.text in texts:
            self._at += 1
            return token.text
        return None

    def expect(self, text: str) -> None:
        """Take this operator or word; `TemplateFailed` if another comes."""
        if self.accept(text) is None:
            raise TemplateFailed(f"lacks {text!r} before {self.next.text or 'the end'!r}")

    def name(self) -> str:
        """Take a name; `TemplateFailed` if something else comes."""
        token = self.take()
        if token.kind != "name":
            raise TemplateFailed(f"lacks a name before {token.text or 'the end'!r}")
        return token.text

    def end(self) -> None:
        """Be sure that nothing is left."""
        if self.next.kind != "end":
            raise TemplateFailed(f"{self.next.text!r} is not expected there")
