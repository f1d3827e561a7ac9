"""Statements: output, conditions, loops and assignments, compiled to functions that write texts."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from jinja2.nodes import Name
from jinja2.runtime import LoopContext

from appliance.adapters.mqtt.templates.conversions import Undefined
from appliance.adapters.mqtt.templates.expressions import Expression, ExpressionCompiler
from appliance.adapters.mqtt.templates.operators import ENVIRONMENT
from appliance.adapters.mqtt.templates.template_limits import Namespace, Rendering, TemplateFailed


class Jump(Enum):
    """How a statement ends the round of the loop that it is in."""

    BREAK = "break"
    CONTINUE = "continue"


Statement = Callable[[Rendering, list[str]], Jump | None]
"""It appends texts to the output."""

_WRITTEN = "__written__"
"""The name under which filters find what the statements before them wrote."""

AssignmentTarget = Callable[[Rendering, Any], None]
"""It sets a name, several names, or the field of a namespace."""


class Compiler(ExpressionCompiler):
    """Compiles one template.

    Raises `TemplateFailed` for a text with a node that is not offered, and for one that is too large.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._methods |= {
            "Assign": self._assign,
            "AssignBlock": self._assign_block,
            "Break": lambda node: lambda run, output: Jump.BREAK,
            "Continue": lambda node: lambda run, output: Jump.CONTINUE,
            "FilterBlock": self._filter_block,
            "For": self._for,
            "If": self._if,
            "Output": self._output,
            "With": self._with,
        }
        self.run = self._block(ENVIRONMENT.parse(text).body)

    def _block(self, nodes: Any) -> Statement:
        statements: list[Statement] = self.all(nodes)
        if len(statements) == 1:
            return statements[0]

        def run_all(run: Rendering, output: list[str]) -> Jump | None:
            for statement in statements:
                if (jump := statement(run, output)) is not None:
                    return jump
            return None

        return run_all

    def _output(self, node: Any) -> Statement:
        parts: list[Expression] = self.all(node.nodes)

        def write(run: Rendering, output: list[str]) -> None:
            for part in parts:
                run.left -= 1
                output.append(run.text(part(run)))

        return write

    def _if(self, node: Any) -> Statement:
        branches = [(self.compile(each.test), self._block(each.body)) for each in (node, *node.elif_)]
        otherwise = self._block(node.else_)

        def choose(run: Rendering, output: list[str]) -> Jump | None:
            for condition, body in branches:
                run.left -= 1
                if condition(run):
                    return body(run, output)
            return otherwise(run, output)

        return choose

    def _for(self, node: Any) -> Statement:
        if node.recursive:
            raise TemplateFailed("the statement 'recursive' is not known")
        values, target, otherwise = self.compile(node.iter), self._target(node.target), self._block(node.else_)
        test = self.compile(node.test) if node.test else None
        body = self._block(node.body)

        def repeat(run: Rendering, output: list[str]) -> Jump | None:
            outside, is_empty = run.names, True
            found = run.elements(values(run))
            try:
                if test is not None:
                    found = iter([each for each in found if _passes(run, target, each, test, outside)])
                for value, loop in LoopContext(found, Undefined):
                    is_empty = False
                    run.names = {**outside, "loop": loop}
                    target(run, value)
                    run.charge()
                    if body(run, output) is Jump.BREAK:
                        break
            finally:
                run.names = outside
            return otherwise(run, output) if is_empty else None

        return repeat

    def _assign(self, node: Any) -> Statement:
        value, target = self.compile(node.node), self._target(node.target)
        return lambda run, output: target(run, value(run))

    def _assign_block(self, node: Any) -> Statement:
        value, target = self._written(node), self._target(node.target)
        return lambda run, output: target(run, value(run))

    def _filter_block(self, node: Any) -> Statement:
        value = self._written(node)
        return lambda run, output: output.append(run.text(value(run)))

    def _written(self, node: Any) -> Expression:
        """What the body of a node writes, through its filters; names that are set there are gone behind it."""
        body, filters, innermost = self._block(node.body), None, node.filter
        if node.filter is not None:
            while innermost.node is not None:
                innermost = innermost.node
            innermost.node = Name(_WRITTEN, "load")
            filters = self.compile(node.filter)

        def write(run: Rendering) -> Any:
            outside, texts = run.names, list[str]()
            run.names = {**outside}
            run.charge()
            try:
                body(run, texts)
                run.names = {**outside, _WRITTEN: run.bounded("".join(texts))}
                return run.names[_WRITTEN] if filters is None else filters(run)
            finally:
                run.names = outside

        return write

    def _with(self, node: Any) -> Statement:
        values, targets = self.all(node.values), [self._target(each) for each in node.targets]
        body = self._block(node.body)

        def run_inside(run: Rendering, output: list[str]) -> Jump | None:
            outside, given = run.names, [value(run) for value in values]
            run.names = {**outside}
            run.charge()
            try:
                for target, value in zip(targets, given, strict=True):
                    target(run, value)
                return body(run, output)
            finally:
                run.names = outside

        return run_inside

    def _target(self, node: Any) -> AssignmentTarget:
        kind = type(node).__name__
        if kind == "Name":
            name: str = node.name
            return lambda run, value: run.names.__setitem__(name, value)
        if kind == "NSRef":
            return lambda run, value: _set_field(run, node.name, node.attr, value)
        targets = [self._target(each) for each in node.items]

        def unpack(run: Rendering, value: Any) -> None:
            if not isinstance(value, list | tuple) or len(value) != len(targets):
                raise TemplateFailed("a value does not have as many parts as it is unpacked to")
            for target, each in zip(targets, value, strict=True):
                target(run, each)

        return unpack


def _set_field(run: Rendering, name: str, field: str, value: Any) -> None:
    found = run.names.get(name)
    if type(found) is not Namespace:
        raise TemplateFailed("only the fields of a namespace can be set")
    found.fields[field] = value


def _passes(run: Rendering, target: AssignmentTarget, value: Any, test: Expression, outside: dict[str, Any]) -> bool:
    """Whether an element passes the `if` of its loop."""
    run.names = {**outside}
    target(run, value)
    return bool(test(run))
