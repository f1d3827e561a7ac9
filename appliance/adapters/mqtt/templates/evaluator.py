"""The evaluator: walks the syntax tree of Jinja's parser, and renders the template's text within limits.

Unsupported nodes are rejected when the template is announced, not at each rendering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from jinja2 import nodes
from jinja2.runtime import LoopContext

from appliance.adapters.mqtt.templates.conversions import UNDEFINED, Undefined
from appliance.adapters.mqtt.templates.functions import (
    CONSTANTS,
    FILTERS,
    FUNCTIONS,
    METHOD_CALLS,
    TESTS,
    check_name,
    named,
)
from appliance.adapters.mqtt.templates.operators import (
    ARITHMETIC,
    COMPARISONS,
    ENVIRONMENT,
    OPERANDS,
    hashable,
    item,
    number,
)
from appliance.adapters.mqtt.templates.template_limits import (
    MAX_NODES,
    MAX_TEMPLATE_DEPTH,
    Namespace,
    Rendering,
    TemplateFailed,
    ValueMissing,
    whole,
)
from appliance.adapters.mqtt.templates.texts import check, joined

_WRITTEN = "__written__"
"""Name whose value is the text of a filter block."""

_PARTS = (nodes.Keyword, nodes.NSRef, nodes.Operand, nodes.Pair, nodes.Slice)
"""Nodes that only contain other nodes, and are not counted."""


class Jump(Enum):
    """Statements that end the current iteration of a loop."""

    BREAK = "break"
    CONTINUE = "continue"


def parse(text: str) -> tuple[Sequence[nodes.Node], frozenset[str]]:
    """Return the statements of a template, and its text literals.

    Raise `TemplateFailed` for unknown nodes, too many nodes, or too deep nesting. Also raise the errors of Jinja's
    parser.
    """
    body, literals, count = ENVIRONMENT.parse(text).body, set[str](), 0
    waiting: list[tuple[Any, int]] = [(each, 1) for each in reversed(body)]
    while waiting:
        node, depth = waiting.pop()
        if not isinstance(node, _PARTS) and getattr(node, "ctx", "load") == "load":
            count += 1
            if type(node) not in _EXPRESSIONS and type(node) not in _STATEMENTS:
                raise TemplateFailed(f"uses the unknown statement {type(node).__name__.lower()!r}")
            if count > MAX_NODES:
                raise TemplateFailed(f"has more than {MAX_NODES} parts")
            if depth > MAX_TEMPLATE_DEPTH:
                raise TemplateFailed(f"is nested more than {MAX_TEMPLATE_DEPTH} levels deep")
            _check(node, literals)
            depth += 1
        is_call = isinstance(node, nodes.Filter | nodes.Test | nodes.Call)
        inner = [*node.given, *node.kwargs] if is_call else [*node.iter_child_nodes()]
        waiting.extend((each, depth) for each in reversed(inner))
    return body, frozenset(literals)


def _check(node: Any, literals: set[str]) -> None:
    """Raise `TemplateFailed` for a node with an unknown name. Add the node's text literals to `literals`, and set the
    node's functions."""
    match node:
        case nodes.Name(name=name):
            check_name(name)
        case nodes.Const(value=value):
            if isinstance(whole(value), str):
                literals.add(value)
        case nodes.For(recursive=True):
            raise TemplateFailed("uses the unknown statement 'recursive'")
        case nodes.AssignBlock() | nodes.FilterBlock():
            innermost: Any = node.filter
            while innermost is not None and innermost.node is not None:
                innermost = innermost.node
            if innermost is not None:
                innermost.node = nodes.Name(_WRITTEN, "load")
        case nodes.Filter() | nodes.Test() | nodes.Call():
            applied: Any = node
            applied.function, owner = _function_of(node)
            applied.given = [*owner, *node.args]
            if node.dyn_args is not None or node.dyn_kwargs is not None:
                raise TemplateFailed("passes arguments with *, which is unsupported")


def _function_of(node: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return the function of a filter, test, or call. Also return the argument nodes that are not in `args`."""
    match node:
        case nodes.Filter(name=name):
            if name.startswith("regex_"):
                _check_pattern(node)
            return named(FILTERS, "filter", name), [node.node]
        case nodes.Test(name=name):
            if name in ("match", "search"):
                _check_pattern(node)
            return named(TESTS, "test", name), [node.node]
        case nodes.Call(node=nodes.Getattr(attr="from_keys")):
            return FUNCTIONS["dict"], []
        case nodes.Call(node=nodes.Getattr(attr=name, node=owner)):
            return named(METHOD_CALLS, "method", name), [owner]
        case nodes.Call(node=nodes.Name(name=name)):
            return named(FUNCTIONS, "function", name), []
    raise TemplateFailed("calls an unknown function")


def _check_pattern(node: Any) -> None:
    """Check a constant pattern, so that its fault is reported when the template is announced."""
    for each in [*node.args[:1], *(each.value for each in node.kwargs if each.key == "find")]:
        if isinstance(each, nodes.Const):
            check(str(each.value))


def _value(run: Rendering, node: Any) -> Any:
    return _EXPRESSIONS[node.__class__](run, node)


def _values(run: Rendering, found: Iterable[Any]) -> list[Any]:
    return [_EXPRESSIONS[node.__class__](run, node) for node in found]


def _object(run: Rendering, node: Any) -> Any:
    return run.weighed({hashable(_value(run, each.key)): _value(run, each.value) for each in node.items})


def _getattr(run: Rendering, node: Any) -> Any:
    run.left -= 1
    found = _value(run, node.node)
    return found.get(node.attr, UNDEFINED) if type(found) is dict else item(found, node.attr)


def _getitem(run: Rendering, node: Any) -> Any:
    run.left -= 1
    found, key = _value(run, node.node), node.arg
    if not isinstance(key, nodes.Slice):
        return item(found, _value(run, key))
    if not isinstance(found, str | list | tuple):
        raise ValueMissing("slices a missing value")
    bounds = [None if each is None else _value(run, each) for each in (key.start, key.stop, key.step)]
    return run.made(found[slice(*bounds)])


def _choice(run: Rendering, node: Any) -> Any:
    chosen = node.expr1 if _value(run, node.test) else node.expr2
    return UNDEFINED if chosen is None else _value(run, chosen)


def _calculation(run: Rendering, node: Any) -> Any:
    run.left -= 1
    return ARITHMETIC[node.__class__.__name__](run, _value(run, node.left), _value(run, node.right))


def _compare(run: Rendering, node: Any) -> bool:
    left = _value(run, node.expr)
    for each in node.ops:
        run.left -= 1
        right = _value(run, each.expr)
        if not COMPARISONS[OPERANDS[each.op]](run, left, right):
            return False
        left = right
    return True


def _applied(run: Rendering, node: Any) -> Any:
    given = _values(run, node.given)
    if not node.kwargs and len(given) == 1:
        return node.function(run, given[0])
    run.left -= 1
    return node.function(run, *given, **{each.key: _value(run, each.value) for each in node.kwargs})


_EXPRESSIONS: Mapping[type, Callable[[Rendering, Any], Any]] = {
    nodes.And: lambda run, node: _value(run, node.left) and _value(run, node.right),
    nodes.Call: _applied,
    nodes.Compare: _compare,
    nodes.Concat: lambda run, node: joined(run, _values(run, node.nodes)),
    nodes.CondExpr: _choice,
    nodes.Const: lambda run, node: node.value,
    nodes.Dict: _object,
    nodes.Filter: _applied,
    nodes.Getattr: _getattr,
    nodes.Getitem: _getitem,
    nodes.List: lambda run, node: run.weighed(_values(run, node.items)),
    nodes.Name: lambda run, node: run.names.get(node.name, CONSTANTS.get(node.name, UNDEFINED)),
    nodes.Neg: lambda run, node: whole(-number(_value(run, node.node))),
    nodes.Not: lambda run, node: not _value(run, node.node),
    nodes.Or: lambda run, node: _value(run, node.left) or _value(run, node.right),
    nodes.Pos: lambda run, node: +number(_value(run, node.node)),
    nodes.TemplateData: lambda run, node: node.data,
    nodes.Test: _applied,
    nodes.Tuple: lambda run, node: run.weighed(tuple(_values(run, node.items))),
    **{getattr(nodes, name): _calculation for name in ARITHMETIC},
}
"""Functions that evaluate an expression, by node type."""


def write(run: Rendering, output: list[str], body: Iterable[Any]) -> Jump | None:
    """Run statements, which append text to the output. Stop at the first statement that ends the current
    iteration."""
    for node in body:
        if (jump := _STATEMENTS[node.__class__](run, output, node)) is not None:
            return jump
    return None


def _output(run: Rendering, output: list[str], node: Any) -> None:
    for part in node.nodes:
        run.left -= 1
        output.append(run.text(_value(run, part)))


def _if(run: Rendering, output: list[str], node: Any) -> Jump | None:
    for each in (node, *node.elif_):
        run.left -= 1
        if _value(run, each.test):
            return write(run, output, each.body)
    return write(run, output, node.else_)


def _for(run: Rendering, output: list[str], node: Any) -> Jump | None:
    outside, is_empty = run.names, True
    found = run.elements(_value(run, node.iter))
    try:
        if node.test is not None:
            found = iter([each for each in found if _passes(run, node, each, outside)])
        for value, loop in LoopContext(found, Undefined):
            is_empty = False
            run.names = {**outside, "loop": loop}
            _set(run, node.target, value)
            run.charge()
            if write(run, output, node.body) is Jump.BREAK:
                break
    finally:
        run.names = outside
    return write(run, output, node.else_) if is_empty else None


def _passes(run: Rendering, node: Any, value: Any, outside: dict[str, Any]) -> bool:
    """Return whether an element matches the `if` of its loop."""
    run.names = {**outside}
    _set(run, node.target, value)
    return bool(_value(run, node.test))


def _written(run: Rendering, node: Any) -> Any:
    """Return the text of a node's body after its filters. Names that the body sets are local to the body."""
    outside, texts = run.names, list[str]()
    run.names = {**outside}
    run.charge()
    try:
        write(run, texts, node.body)
        run.names = {**outside, _WRITTEN: run.bounded("".join(texts))}
        return run.names[_WRITTEN] if node.filter is None else _value(run, node.filter)
    finally:
        run.names = outside


def _with(run: Rendering, output: list[str], node: Any) -> Jump | None:
    outside, given = run.names, _values(run, node.values)
    run.names = {**outside}
    run.charge()
    try:
        for target, value in zip(node.targets, given, strict=True):
            _set(run, target, value)
        return write(run, output, node.body)
    finally:
        run.names = outside


def _set(run: Rendering, target: Any, value: Any) -> None:
    """Assign to a name, several names, or the field of a namespace."""
    if isinstance(target, nodes.Name):
        run.names[target.name] = value
    elif isinstance(target, nodes.NSRef):
        if type(found := run.names.get(target.name)) is not Namespace:
            raise TemplateFailed("only the fields of a namespace can be set")
        found.fields[target.attr] = value
    elif not isinstance(value, list | tuple) or len(value) != len(target.items):
        raise TemplateFailed("unpacks a value into the wrong number of names")
    else:
        for each, part in zip(target.items, value, strict=True):
            _set(run, each, part)


_STATEMENTS: Mapping[type, Callable[[Rendering, list[str], Any], Jump | None]] = {
    nodes.Assign: lambda run, output, node: _set(run, node.target, _value(run, node.node)),
    nodes.AssignBlock: lambda run, output, node: _set(run, node.target, _written(run, node)),
    nodes.Break: lambda run, output, node: Jump.BREAK,
    nodes.Continue: lambda run, output, node: Jump.CONTINUE,
    nodes.FilterBlock: lambda run, output, node: output.append(run.text(_written(run, node))),
    nodes.For: _for,
    nodes.If: _if,
    nodes.Output: _output,
    nodes.With: _with,
}
"""Functions that run a statement and append text to the output, by node type."""
