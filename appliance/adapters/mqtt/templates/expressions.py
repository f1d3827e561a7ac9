"""Expressions: each node of the tree that Jinja's parser makes becomes a function of the rendering.

What is no part of the subset is refused here, when the template is announced, and not when it is rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from appliance.adapters.mqtt.templates.conversions import UNDEFINED
from appliance.adapters.mqtt.templates.functions import (
    CONSTANTS,
    FILTERS,
    FUNCTIONS,
    TESTS,
    check_name,
    method_of,
    named,
)
from appliance.adapters.mqtt.templates.operators import (
    ARITHMETIC,
    COMPARISONS,
    OPERANDS,
    hashable,
    item,
)
from appliance.adapters.mqtt.templates.template_limits import (
    MAX_NODES,
    MAX_TEMPLATE_DEPTH,
    Rendering,
    TemplateFailed,
    ValueMissing,
    whole,
)
from appliance.adapters.mqtt.templates.texts import check, joined

Expression = Callable[[Rendering], Any]


class ExpressionCompiler:
    """Compiles the expressions of one template. `literals` are its texts."""

    def __init__(self) -> None:
        self.literals: set[str] = set()
        self._nodes = self._depth = 0
        self._methods: dict[str, Callable[[Any], Any]] = {
            "And": self._and,
            "Call": self._call,
            "Compare": self._compare,
            "Concat": self._concat,
            "CondExpr": self._choice,
            "Const": self._constant,
            "Dict": self._object,
            "Filter": self._filter,
            "Getattr": self._getattr,
            "Getitem": self._getitem,
            "List": lambda node: self._sequence(node, list),
            "Name": self._name,
            "Neg": lambda node: self._signed(node, "Sub"),
            "Not": self._not,
            "Or": self._or,
            "Pos": lambda node: self._signed(node, "Add"),
            "TemplateData": lambda node: lambda run: node.data,
            "Test": self._test,
            "Tuple": lambda node: self._sequence(node, tuple),
            **dict.fromkeys(ARITHMETIC, self._calculation),
        }

    def compile(self, node: Any) -> Any:
        """The function of a node; raises `TemplateFailed` for what is not offered, too much or nested too deep."""
        name = type(node).__name__
        self._nodes += 1
        self._depth += 1
        if name not in self._methods:
            raise TemplateFailed(f"the statement {name.lower()!r} is not known")
        if self._nodes > MAX_NODES:
            raise TemplateFailed(f"has more than {MAX_NODES} parts")
        if self._depth > MAX_TEMPLATE_DEPTH:
            raise TemplateFailed(f"is nested more than {MAX_TEMPLATE_DEPTH} deep")
        compiled = self._methods[name](node)
        self._depth -= 1
        return compiled

    def all(self, nodes: Iterable[Any]) -> list[Any]:
        """The functions of several nodes."""
        return [self.compile(node) for node in nodes]

    def _name(self, node: Any) -> Expression:
        name = node.name
        check_name(name)
        missing = CONSTANTS.get(name, UNDEFINED)
        return lambda run: run.names.get(name, missing)

    def _constant(self, node: Any) -> Expression:
        value = whole(node.value)
        if isinstance(value, str):
            self.literals.add(value)
        return lambda run: value

    def _sequence(self, node: Any, make: Callable[[list[Any]], Any]) -> Expression:
        items = self.all(node.items)
        return lambda run: run.weighed(make([each(run) for each in items]))

    def _object(self, node: Any) -> Expression:
        pairs = [(self.compile(each.key), self.compile(each.value)) for each in node.items]
        return lambda run: run.weighed({hashable(key(run)): value(run) for key, value in pairs})

    def _getattr(self, node: Any) -> Expression:
        value, key = self.compile(node.node), node.attr

        def get(run: Rendering) -> Any:
            run.left -= 1
            found = value(run)
            return found.get(key, UNDEFINED) if type(found) is dict else item(found, key)

        return get

    def _getitem(self, node: Any) -> Expression:
        value = self.compile(node.node)
        if type(node.arg).__name__ == "Slice":
            return self._cut(value, node.arg)
        key = self.compile(node.arg)

        def get(run: Rendering) -> Any:
            run.left -= 1
            return item(value(run), key(run))

        return get

    def _cut(self, value: Expression, node: Any) -> Expression:
        bounds = [None if each is None else self.compile(each) for each in (node.start, node.stop, node.step)]

        def cut(run: Rendering) -> Any:
            found = value(run)
            if not isinstance(found, str | list | tuple):
                raise ValueMissing("cuts a part out of what is not there")
            return run.made(found[slice(*(None if bound is None else bound(run) for bound in bounds))])

        return cut

    def _choice(self, node: Any) -> Expression:
        condition, then = self.compile(node.test), self.compile(node.expr1)
        otherwise = self.compile(node.expr2) if node.expr2 else lambda run: UNDEFINED
        return lambda run: then(run) if condition(run) else otherwise(run)

    def _or(self, node: Any) -> Expression:
        left, right = self.all((node.left, node.right))
        return lambda run: left(run) or right(run)

    def _and(self, node: Any) -> Expression:
        left, right = self.all((node.left, node.right))
        return lambda run: left(run) and right(run)

    def _not(self, node: Any) -> Expression:
        value = self.compile(node.node)
        return lambda run: not value(run)

    def _signed(self, node: Any, name: str) -> Expression:
        value, operate = self.compile(node.node), ARITHMETIC[name]
        return lambda run: operate(run, 0, value(run))

    def _calculation(self, node: Any) -> Expression:
        operate, (left, right) = ARITHMETIC[type(node).__name__], self.all((node.left, node.right))

        def calculate(run: Rendering) -> Any:
            run.left -= 1
            return operate(run, left(run), right(run))

        return calculate

    def _concat(self, node: Any) -> Expression:
        parts = self.all(node.nodes)
        return lambda run: joined(run, [part(run) for part in parts])

    def _compare(self, node: Any) -> Expression:
        first = self.compile(node.expr)
        others = [(COMPARISONS[OPERANDS[each.op]], self.compile(each.expr)) for each in node.ops]

        def compare(run: Rendering) -> bool:
            left = first(run)
            for operate, other in others:
                run.left -= 1
                right = other(run)
                if not operate(run, left, right):
                    return False
                left = right
            return True

        return compare

    def _filter(self, node: Any) -> Expression:
        if node.name.startswith("regex_"):
            self._check_pattern(node)
        return self._applied(named(FILTERS, "filter", node.name), node, [node.node])

    def _test(self, node: Any) -> Expression:
        if node.name in ("match", "search"):
            self._check_pattern(node)
        return self._applied(named(TESTS, "test", node.name), node, [node.node])

    def _check_pattern(self, node: Any) -> None:
        """A pattern that can never be used is said when the template is announced."""
        for each in [*node.args[:1], *(each.value for each in node.kwargs if each.key == "find")]:
            if type(each).__name__ == "Const":
                check(str(each.value))

    def _call(self, node: Any) -> Expression:
        called, kind = node.node, type(node.node).__name__
        if kind == "Getattr" and called.attr == "from_keys":
            return self._applied(FUNCTIONS["dict"], node, [])
        if kind == "Getattr":
            return self._applied(method_of(called.attr), node, [called.node])
        if kind != "Name":
            raise TemplateFailed("calls something that is no function of templates")
        return self._applied(named(FUNCTIONS, "function", called.name), node, [])

    def _applied(self, function: Callable[..., Any], node: Any, before: list[Any]) -> Expression:
        """A filter, test, function or method with its arguments."""
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            raise TemplateFailed("passes arguments with *, which is not supported")
        given = self.all([*before, *node.args])
        fields = {each.key: self.compile(each.value) for each in node.kwargs}
        if len(given) == 1 and not fields:
            value = given[0]
            return lambda run: function(run, value(run))

        def apply(run: Rendering) -> Any:
            run.left -= 1
            arguments = [each(run) for each in given]
            return function(run, *arguments, **{name: each(run) for name, each in fields.items()})

        return apply
