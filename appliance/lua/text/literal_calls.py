"""Finds calls with literal arguments in Lua source text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from appliance.lua.text.source import Source
from appliance.lua.text.tokens import KEYWORDS, NO_TOKEN, LuaToken, tokens_of
from appliance.lua_worker.ctx_methods import CTX_METHODS, LOG_ARGUMENTS

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "log": LOG_ARGUMENTS,
    **{name: method.arguments for name, method in CTX_METHODS.items()},
}
"""The Lua types of arguments, by `ctx` method. `?` marks an optional argument."""

MAX_DEPTH = 8

UNKNOWN: Any = object()
"""A value that is only known at run time."""

NO_CONSTANTS: Mapping[str, Any] = {}

_OPENING = frozenset({"(", "{", "[", "function", "do", "then", "repeat"})
_CLOSING = frozenset({")", "}", "]", "end", "until", "elseif"})
_WORDS = {"true": True, "false": False, "nil": None}
_ESCAPED = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}


class LiteralCall(Struct, frozen=True, kw_only=True):
    """A method call, such as `ctx:sleep(5)`, or a table outside of method calls (`method` is then empty).

    Computed arguments and fields are `UNKNOWN`. If a local variable has a single literal value, this value replaces
    the variable. If `is_open` is true, the last argument may return several values. `object` is the word before the
    colon.
    """

    method: str
    line: int
    arguments: tuple[Any, ...]
    object: str = ""
    is_open: bool = False


def literal_calls(source: Source, methods: frozenset[str], field: str) -> Iterator[LiteralCall]:
    """Yield the calls of these methods and, outside of these calls, the tables with this field."""
    if not any(word.encode() in source.text for word in (*methods, field)):
        return
    tokens = [*tokens_of(source.chunk), NO_TOKEN, NO_TOKEN, NO_TOKEN]
    ends = _find_ends(tokens)
    constants = _constants_in(tokens, ends)
    seen = 0
    for index, token in enumerate(tokens[:-3]):
        if token.word == ":" and tokens[index + 1].word in methods and tokens[index + 2].word == "(":
            reader = _Reader(tokens, index + 3, ends, constants)
            arguments = tuple(reader.read_list(")"))
            seen = max(seen, reader.index)
            behind = min(reader.index, len(tokens))
            last, end = tokens[behind - 2 : behind]
            if end.word == ")":
                yield LiteralCall(
                    method=tokens[index + 1].word,
                    line=token.line,
                    arguments=arguments,
                    object=tokens[index - 1].word if tokens[index - 2].word not in (".", ":") else "",
                    is_open=arguments[-1:] == (UNKNOWN,) and last.kind != "name",
                )
        elif token.word == "{" and index >= seen:
            reader = _Reader(tokens, index, ends)
            table = reader.read_value()
            if isinstance(table, dict) and field in table:
                yield LiteralCall(method="", line=token.line, arguments=(table,))
                seen = max(seen, reader.index)


def _constants_in(tokens: Sequence[LuaToken], ends: Mapping[int, int]) -> dict[str, Any]:
    """Return the local variables that have a single literal value, and are used only as arguments of calls."""
    found: dict[str, Any] = {}
    changed = set(KEYWORDS)
    for index, token in enumerate(tokens[:-3]):
        before, after = tokens[index - 1].word, tokens[index + 1].word
        if token.kind != "name":
            continue
        if before == "local" and after == "=" and token.word not in found:
            reader = _Reader(tokens, index + 2, ends)
            found[token.word] = reader.read_statement()
        elif before not in ("(", ",") or after not in (")", ","):
            changed.add(token.word)
        if token.word == "function":
            changed.update(_parameters_at(tokens, index + 1))
    return {name: value for name, value in found.items() if name not in changed and value is not UNKNOWN}


def _parameters_at(tokens: Sequence[LuaToken], index: int) -> Iterator[str]:
    while tokens[index].word not in (")", ""):
        yield tokens[index].word
        index += 1


class _Reader:
    """Reads values, beginning with the token at `index`. `ends` maps the index of each opening token to its
    closing token. `constants` contains the values of local variables."""

    def __init__(
        self,
        tokens: Sequence[LuaToken],
        index: int,
        ends: Mapping[int, int],
        constants: Mapping[str, Any] = NO_CONSTANTS,
        depth: int = 0,
    ) -> None:
        self._tokens = tokens
        self.index = index
        self._ends = ends
        self._constants = constants
        self._depth = depth

    def read_statement(self) -> Any:
        """Return the value at the end of a statement, or `UNKNOWN` for an expression."""
        value = self._read_simple()
        token = self._tokens[min(self.index, len(self._tokens) - 1)]
        is_over = token.kind == "name" and token.word not in ("and", "or")
        return value if is_over or self._word in ("", ";", "::") else UNKNOWN

    def read_list(self, end: str) -> list[Any]:
        values = []
        while self._word not in ("", end):
            values.append(self.read_value())
            if self._word == ",":
                self.index += 1
        self.index += 1
        return values

    def read_value(self) -> Any:
        """Return the value that begins here, or `UNKNOWN` for an expression."""
        value = self._read_simple()
        while self._word == "*" and _is_number(value):
            self.index += 1
            factor = self._read_simple()
            value = value * factor if _is_number(factor) else UNKNOWN
        if self._word in (",", ";", ")", "}", ""):
            return value
        self._skip()
        return UNKNOWN

    @property
    def _word(self) -> str:
        return self._tokens[min(self.index, len(self._tokens) - 1)].word

    def _read_simple(self) -> Any:
        token = self._tokens[min(self.index, len(self._tokens) - 1)]
        if token.word == "{":
            return self._read_table()
        self.index += 1
        if token.word == "-":
            inner = self._read_simple()
            return -inner if _is_number(inner) else UNKNOWN
        if token.kind == "number":
            with suppress(ValueError):
                return int(token.word, 0)
            with suppress(ValueError):
                return float(token.word)
        if token.kind == "text":
            return _text_of(token.word)
        if token.word in _WORDS:
            return _WORDS[token.word]
        if token.word in self._constants:
            return self._constants[token.word]
        self.index -= token.word in _OPENING or token.word in _CLOSING
        return UNKNOWN

    def _read_table(self) -> Any:
        """Return a dictionary of named fields, or a list. Return `UNKNOWN` if the table mixes named fields with a
        list, or is nested too deeply."""
        if self._depth >= MAX_DEPTH:
            self._skip()
            return UNKNOWN
        self.index += 1
        fields: dict[str, Any] = {}
        items = []
        inner = _Reader(self._tokens, self.index, self._ends, self._constants, self._depth + 1)
        while inner._word not in ("", "}"):
            name, key = inner._tokens[inner.index], inner._tokens[inner.index + 1]
            if name.kind == "name" and key.word == "=":
                inner.index += 2
                fields[name.word] = inner.read_value()
            elif name.word == "[" and key.kind == "text" and inner._tokens[inner.index + 3].word == "=":
                inner.index += 4
                value = inner.read_value()
                if (text := _text_of(key.word)) is UNKNOWN:
                    items.append(UNKNOWN)
                else:
                    fields[text] = value
            elif name.word == "[":
                inner._skip()
                items.append(UNKNOWN)
            else:
                items.append(inner.read_value())
            if inner._word in (",", ";"):
                inner.index += 1
        self.index = inner.index + 1
        if fields and items:
            return UNKNOWN
        return items or fields

    def _skip(self) -> None:
        """Skip the rest of the expression."""
        depth = 0
        while word := self._word:
            if depth == 0 and word in (",", ";", ")", "}"):
                return
            if (end := self._ends.get(self.index)) is not None:
                self.index = end
            else:
                depth += (word in _OPENING) - (word in _CLOSING)
            self.index += 1


def _find_ends(tokens: Sequence[LuaToken]) -> dict[int, int]:
    """Return the index of the closing token for each opening token, so that skipping nested tables is fast."""
    ends, opened = dict[int, int](), list[int]()
    for index, token in enumerate(tokens):
        if token.word in _CLOSING and opened:
            ends[opened.pop()] = index
        elif token.word in _OPENING:
            opened.append(index)
    return ends


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text_of(word: str) -> Any:
    """Return the text of a literal. Return `UNKNOWN` for long brackets and unusual escapes."""
    if word[0] not in "\"'":
        return UNKNOWN
    parts = word[1:-1].split("\\")
    found = parts[0]
    for part in parts[1:]:
        if part[:1] not in _ESCAPED:
            return UNKNOWN
        found += _ESCAPED[part[0]] + part[1:]
    return found
