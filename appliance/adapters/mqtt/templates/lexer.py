"""The lexer: the text of a template in parts, literal text or tokens, and the reader of those tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from appliance.adapters.mqtt.templates.template_limits import MAX_NODES, TemplateFailed

_OPENINGS = re.compile(r"\{(?:\{|%|#)[-+]?")
_SPACE = re.compile(r"\s*")
_INDEX = re.compile(r"\d+")
_TOKEN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<operator>//|\*\*|==|!=|>=|<=|[-+*/%~<>=.,:|()\[\]{}])",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "0": "\0"}
_PAIRS = {"(": ")", "[": "]", "{": "}"}


class PartKind(StrEnum):
    """What a part of a template is."""

    TEXT = "text"
    PRINT = "print"
    STATEMENT = "statement"


@dataclass(frozen=True, slots=True)
class TemplateToken:
    """One token of an expression: `kind` is number, name, string, operator or end; `value` is that of a literal."""

    kind: str
    text: str
    value: str | int | float = ""


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """A stretch of literal text, or the tokens between two braces."""

    kind: PartKind
    text: str = ""
    tokens: tuple[TemplateToken, ...] = ()


def parts_of(text: str) -> Iterator[TemplatePart]:
    """The parts of a template in order; `TemplateFailed` for a brace that is not closed and unknown characters."""
    at, trims = 0, False
    while at < len(text):
        opening = _OPENINGS.search(text, at)
        until = len(text) if opening is None else opening.start()
        literal = text[at:until].lstrip() if trims else text[at:until]
        if opening is not None and opening[0].endswith("-"):
            literal = literal.rstrip()
        if literal:
            yield TemplatePart(PartKind.TEXT, literal)
        if opening is None:
            return
        if opening[0][1] == "#":
            at, trims = _end_of_comment(text, opening.end())
            continue
        kind, closing = (PartKind.PRINT, "}}") if opening[0][1] == "{" else (PartKind.STATEMENT, "%}")
        tokens, at, trims = _tokens(text, opening.end(), closing)
        yield TemplatePart(kind, "", tokens)


def _end_of_comment(text: str, start: int) -> tuple[int, bool]:
    end = text.find("#}", start)
    if end < 0:
        raise TemplateFailed("a comment is not closed")
    return end + 2, text[end - 1] == "-"


def _tokens(text: str, at: int, closing: str) -> tuple[tuple[TemplateToken, ...], int, bool]:
    """The tokens up to the closing braces, where those end, and whether the space behind them is dropped."""
    tokens: list[TemplateToken] = []
    open_brackets: list[str] = []
    while True:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if not open_brackets:
            for sign in ("-", "+", ""):
                if text.startswith(sign + closing, at):
                    return (*tokens, TemplateToken("end", "")), at + len(sign) + 2, sign == "-"
        token, at = _token(
            text, at, after_dot=bool(tokens) and tokens[-1].text == "." and tokens[-1].kind != "string"
        )
        if token.kind == "operator":
            if token.text in _PAIRS:
                open_brackets.append(_PAIRS[token.text])
            elif open_brackets and token.text == open_brackets[-1]:
                open_brackets.pop()
        tokens.append(token)


def _token(text: str, at: int, *, after_dot: bool) -> tuple[TemplateToken, int]:
    if after_dot and (index := _INDEX.match(text, at)):
        return TemplateToken("number", index[0], _whole(index[0])), index.end()
    match = _TOKEN.match(text, at)
    if match is None:
        raise TemplateFailed("an expression is not closed" if at >= len(text) else f"{text[at]!r} means nothing here")
    kind, found = str(match.lastgroup), match[0]
    if kind == "number":
        return TemplateToken(kind, found, _whole(found) if found.isdigit() else float(found)), match.end()
    value = _unescaped(found[1:-1]) if kind == "string" else found
    return TemplateToken(kind, found, value), match.end()


def _whole(digits: str) -> int:
    if len(digits) > 18:
        raise TemplateFailed("a number is too large")
    return int(digits)


def _unescaped(text: str) -> str:
    """The text of a string literal; an escape that is none stays as written, as in Python."""
    if "\\" not in text:
        return text
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text, flags=re.DOTALL)


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
