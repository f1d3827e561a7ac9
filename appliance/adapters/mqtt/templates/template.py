"""A template, parsed once and rendered often: the text that Jinja would give, or the reason why not."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import Any

from appliance.adapters.mqtt.templates.expressions import Reader
from appliance.adapters.mqtt.templates.lexer import Budget, PartKind, TemplatePart, parts_of
from appliance.adapters.mqtt.templates.nodes import Expression
from appliance.adapters.mqtt.templates.template_limits import (
    MAX_TEMPLATE_BYTES,
    MAX_TEMPLATE_DEPTH,
    Namespace,
    Rendering,
    TemplateFailed,
)


class _Jump(Enum):
    """How a statement ends the round of the loop that it is in."""

    BREAK = "break"
    CONTINUE = "continue"


Statement = Callable[[Rendering, list[str]], _Jump | None]


class Template:
    """One template. Rendering changes nothing of it, so that it may be shared."""

    def __init__(self, text: str) -> None:
        """Raises `TemplateFailed` for a text that is not in the subset or beyond its limits."""
        if len(text.encode(errors="replace")) > MAX_TEMPLATE_BYTES:
            raise TemplateFailed(f"has more than {MAX_TEMPLATE_BYTES // 1024} KiB")
        self.text = text
        budget = Budget()
        blocks = _Blocks(parts_of(text), budget)
        self._statements = blocks.read(())
        self._literals = frozenset(budget.literals)

    def render(self, names: Mapping[str, Any], now: datetime) -> str:
        """The text, without white space around it.

        Raises `ValueMissing` where it looks into what is not there, and `TemplateFailed` for what it cannot do.
        """
        run = Rendering(dict(names), now, self._literals)
        output: list[str] = []
        try:
            _run(self._statements, run, output)
            return run.bounded("".join(output)).strip()
        except TemplateFailed:
            raise
        except Exception as error:  # values of wrong types
            raise TemplateFailed(f"fails: {str(error)[:200]}") from None


@functools.lru_cache(maxsize=4096)
def template(text: str) -> Template:
    """The template of this text, read once; raises `TemplateFailed`."""
    return Template(text)


class _Blocks:
    """Parses statements and literal text, up to the word that ends the block."""

    def __init__(self, parts: Iterator[TemplatePart], budget: Budget) -> None:
        self._parts = parts
        self._budget = budget
        self._depth = 0
        self._end: Reader

    def read(self, ends: tuple[str, ...]) -> list[Statement]:
        """The statements up to one of these words, which is then the last that was taken."""
        statements: list[Statement] = []
        self._depth += 1
        if self._depth > MAX_TEMPLATE_DEPTH:
            raise TemplateFailed(f"is nested more than {MAX_TEMPLATE_DEPTH} deep")
        for part in self._parts:
            self._budget.count()
            if part.kind is PartKind.TEXT:
                statements.append(_text(part.text))
                continue
            reader = Reader(part.tokens, self._budget)
            if part.kind is PartKind.PRINT:
                value = reader.values()
                reader.end()
                statements.append(_print(value))
            elif reader.next.text in ends:
                self._end = reader
                self._depth -= 1
                return statements
            else:
                statements.append(self._statement(reader))
        if ends:
            raise TemplateFailed(f"lacks {{% {ends[-1]} %}}")
        return statements

    def _statement(self, reader: Reader) -> Statement:
        word = reader.name()
        if word == "if":
            return self._if(reader)
        if word == "for":
            return self._for(reader)
        if word == "set":
            return _set(reader)
        if word in ("break", "continue"):
            reader.end()
            return lambda run, output: _Jump(word)
        raise TemplateFailed(f"the statement {word!r} is not known")

    def _if(self, reader: Reader) -> Statement:
        branches: list[tuple[Expression | None, list[Statement]]] = []
        condition: Expression | None = reader.expression()
        while True:
            reader.end()
            body = self.read(("elif", "else", "endif"))
            branches.append((condition, body))
            reader = self._end
            word = reader.name()
            if word == "endif":
                reader.end()
                return _branch(branches)
            if condition is None:
                raise TemplateFailed(f"{word!r} follows else")
            condition = reader.expression() if word == "elif" else None

    def _for(self, reader: Reader) -> Statement:
        names = [reader.name()]
        while reader.accept(","):
            names.append(reader.name())
        reader.expect("in")
        values = reader.values()
        reader.end()
        body = self.read(("else", "endfor"))
        otherwise: list[Statement] = []
        if self._end.accept("else"):
            otherwise = self.read(("endfor",))
        return _loop(names, values, body, otherwise)


def _text(text: str) -> Statement:
    def write(run: Rendering, output: list[str]) -> None:
        output.append(run.bounded(text))

    return write


def _print(value: Expression) -> Statement:
    def write(run: Rendering, output: list[str]) -> None:
        run.charge()
        output.append(run.text(value(run)))

    return write


def _set(reader: Reader) -> Statement:
    name = reader.name()
    field = reader.name() if reader.accept(".") else None
    reader.expect("=")
    value = reader.values()
    reader.end()

    def assign(run: Rendering, output: list[str]) -> None:
        run.charge()
        if field is None:
            run.names[name] = value(run)
            return
        target = run.names.get(name)
        if not isinstance(target, Namespace):
            raise TemplateFailed("only the fields of a namespace can be set")
        target.fields[field] = value(run)

    return assign


def _branch(branches: list[tuple[Expression | None, list[Statement]]]) -> Statement:
    def choose(run: Rendering, output: list[str]) -> _Jump | None:
        for condition, body in branches:
            run.charge()
            if condition is None or condition(run):
                return _run(body, run, output)
        return None

    return choose


def _loop(names: list[str], values: Expression, body: list[Statement], otherwise: list[Statement]) -> Statement:
    def repeat(run: Rendering, output: list[str]) -> _Jump | None:
        outside, rounds = run.names, 0
        try:
            for value in run.elements(values(run)):
                rounds += 1
                run.names = {**outside, **_bound(names, value)}
                if _run(body, run, output) is _Jump.BREAK:
                    break
        finally:
            run.names = outside
        return None if rounds else _run(otherwise, run, output)

    return repeat


def _bound(names: list[str], value: Any) -> dict[str, Any]:
    if len(names) == 1:
        return {names[0]: value}
    if not isinstance(value, list | tuple) or len(value) != len(names):
        raise TemplateFailed("a loop unpacks a value that does not have as many parts")
    return dict(zip(names, value, strict=True))


def _run(statements: list[Statement], run: Rendering, output: list[str]) -> _Jump | None:
    for statement in statements:
        if (jump := statement(run, output)) is not None:
            return jump
    return None
