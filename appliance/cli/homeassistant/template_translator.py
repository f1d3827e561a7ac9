"""Translates the expressions of Jinja templates to Lua.

The template functions follow Home Assistant's documentation of templates. The Lua functions are in
`homeassistant.lua`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2 import nodes

from appliance.cli.homeassistant.entities import Comparison, Target, Variable
from appliance.cli.homeassistant.entity_values import comparison_in_lua, number_in_lua, sun_height, value_in_lua
from appliance.cli.homeassistant.lua import is_one_call, literal, negated, quote
from appliance.cli.homeassistant.not_translated import NotTranslated
from appliance.cli.homeassistant.scope import Scope
from appliance.cli.homeassistant.states import listed
from appliance.cli.homeassistant.times import time_of_day
from appliance.cli.homeassistant.values import number

_OPERATORS: Mapping[type[nodes.Node], str] = {
    nodes.Add: "+", nodes.Sub: "-", nodes.Mul: "*", nodes.Div: "/", nodes.FloorDiv: "//", nodes.Mod: "%",
    nodes.Pow: "^",
}  # fmt: skip
_COMPARISONS = {"eq": "==", "ne": "~=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">="}
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "lteq": "gteq", "gt": "lt", "gteq": "lteq"}

_LIMITS = {"gt": "above", "lt": "below", "gteq": "at_least", "lteq": "at_most"}

_NOW: Mapping[str, str] = {
    "hour": 'os.date("*t").hour',
    "minute": 'os.date("*t").min',
    "second": 'os.date("*t").sec',
    "day": 'os.date("*t").day',
    "month": 'os.date("*t").month',
    "year": 'os.date("*t").year',
    "weekday": '(os.date("*t").wday + 5) % 7',
    "isoweekday": '(os.date("*t").wday + 5) % 7 + 1',
}
_FILTERS: Mapping[str, str] = {
    "lower": "string.lower({})",
    "upper": "string.upper({})",
    "length": "#{}",
    "count": "#{}",
    "abs": "math.abs({})",
    "string": "ha.text({})",
    "trim": "ha.trim({})",
    "bool": "ha.is_true({})",
    "title": "{}",
}
_BOOLEANS = frozenset({"is_state", "is_state_attr", "has_value"})


class Translator:
    """Translates the nodes of a template."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._entities = scope.entities

    def render(self, node: nodes.Node) -> str:
        """Return the Lua expression for a node's value."""
        method: Callable[[Any], str] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise NotTranslated(f"the import does not support {type(node).__name__.lower()} in templates")
        return method(node)

    def truth(self, node: nodes.Node) -> str:
        """Return the Lua expression for a node as a condition."""
        if isinstance(node, nodes.And | nodes.Or):
            word = "and" if isinstance(node, nodes.And) else "or"
            return f"({self.truth(node.left)} {word} {self.truth(node.right)})"
        if isinstance(node, nodes.Not):
            return negated(self.truth(node.node))
        if isinstance(node, nodes.Compare | nodes.Test) or _is_call(node, _BOOLEANS):
            return self.render(node)
        if isinstance(node, nodes.Const) and isinstance(node.value, bool):
            return literal(node.value)
        return f"ha.is_true({self.render(node)})"

    def single(self, node: nodes.Node) -> Comparison | None:
        """Return the comparison if the node is a single comparison."""
        if _is_call(node, {"is_state"}) and isinstance(node, nodes.Call):
            entity_id, state = self._constants(node.args, 2)
            return None if isinstance(state, list) else self._entities.compare(entity_id, state)
        if not isinstance(node, nodes.Compare) or len(node.ops) != 1:
            return None
        left, right, kind = node.expr, node.ops[0].expr, node.ops[0].op
        if isinstance(left, nodes.Const):
            left, right, kind = right, left, _MIRRORED.get(kind, "")
        if not isinstance(right, nodes.Const):
            return None
        found = self._state(_without_filters(left))
        if found is None:
            return None
        entity_id, attribute = found
        if kind in ("gt", "lt") and isinstance(right.value, int | float):
            target = self._entities.target(entity_id, attribute)
            factor = target.factor if isinstance(target, Target) else 1
            return Comparison(target, "above" if kind == "gt" else "below", round(right.value * factor, 3))
        if kind == "eq" and not attribute:
            return self._entities.compare(entity_id, right.value)
        return None

    # --- values ---

    def _const(self, node: nodes.Const) -> str:
        return literal(node.value)

    def _templatedata(self, node: nodes.TemplateData) -> str:
        return quote(node.data)

    def _list(self, node: nodes.List) -> str:
        return f"{{ {', '.join(map(self.render, node.items))} }}"

    _tuple = _list

    def _name(self, node: nodes.Name) -> str:
        return self._scope.variable(node.name)

    def _getattr(self, node: nodes.Getattr) -> str:
        if (state := self._state(node)) is not None:
            return self._value(*state)
        path = _path(node)
        if path[:1] == ["trigger"]:
            return self._trigger(path[1:])
        if path[:1] in (["repeat"], ["wait"]) or (path and path[0] in self._scope.names):
            return self._local(path)
        if isinstance(node.node, nodes.Call) and _is_call(node.node, {"now"}) and node.attr in _NOW:
            return _NOW[node.attr]
        raise NotTranslated(f"the import does not support {'.'.join(path) or node.attr} in templates")

    def _getitem(self, node: nodes.Getitem) -> str:
        path = _path(node)
        if path[:1] == ["trigger"]:
            return self._trigger(path[1:])
        if (
            path[:1] in (["repeat"], ["wait"])
            and isinstance(node.arg, nodes.Const)
            and isinstance(node.arg.value, str)
        ):
            return self._local(path)
        if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, int):
            return f"{self._in_brackets(self.render(node.node))}[{node.arg.value + 1}]"
        return f"{self._in_brackets(self.render(node.node))}[{self.render(node.arg)}]"

    def _trigger(self, path: list[str]) -> str:
        if not self._scope.has_event:
            raise NotTranslated("a scene or function has no trigger; pass the value as a field")
        words = {
            ("id",): "event.trigger_id",
            ("platform",): "event.type",
            ("entity_id",): "event.device_id",
            ("to_state", "state"): "event.value",
            ("from_state", "state"): "event.previous_value",
            ("now",): "os.time()",
        }
        if tuple(path) in words:
            return words[tuple(path)]
        for start in (("event", "data"), ("json",), ("data",), ("payload_json",)):
            if tuple(path[: len(start)]) == start and len(path) > len(start):
                return "event.data" + "".join(f"[{quote(each)}]" for each in path[len(start) :])
        if path in (["to_state", "name"], ["to_state", "attributes", "friendly_name"]):
            return "ha.name(ctx, event.device_id)"
        raise NotTranslated(f"trigger.{'.'.join(path)} has no counterpart in Lares")

    def _local(self, path: list[str]) -> str:
        for length in range(len(path), 0, -1):
            if (known := self._scope.names.get("_".join(path[:length]))) is not None:
                return known + "".join(f"[{quote(each)}]" for each in path[length:])
        raise NotTranslated(f"the template uses the unknown name {'.'.join(path)}")

    def _call(self, node: nodes.Call) -> str:
        if (state := self._state(node)) is not None:
            return self._value(*state)
        if isinstance(node.node, nodes.Getattr):
            return self._call_of_now(node, node.node)
        name = node.node.name if isinstance(node.node, nodes.Name) else ""
        if name in _BOOLEANS:
            return self._test_of_state(name, node.args)
        if name in ("float", "int") and node.args:
            return self._number(node.args[0], name, node.args[1:], node.kwargs)
        if name == "iif" and node.args:
            return self._choose(node.args[0], node.args[1:])
        if name in ("min", "max") and node.args:
            return f"math.{name}({', '.join(map(self.render, node.args))})"
        if name == "as_timestamp" and node.args and _is_call(node.args[0], {"now", "utcnow"}):
            return "os.time()"
        raise NotTranslated(f"the import does not support the template function {name or 'of an object'}")

    def _call_of_now(self, node: nodes.Call, method: nodes.Getattr) -> str:
        """Translate a method of `now()`."""
        if _is_call(method.node, {"now"}) and method.attr in ("weekday", "isoweekday"):
            return _NOW[method.attr]
        if _is_call(method.node, {"now"}) and method.attr == "strftime":
            [form] = self._constants(node.args, 1)
            return f"os.date({quote(form)})"
        raise NotTranslated(f"the import does not support the template method {method.attr}")

    def _test_of_state(self, name: str, arguments: list[nodes.Expr]) -> str:
        """Translate `is_state`, `is_state_attr`, or `has_value`."""
        if name == "is_state":
            entity_id, state = self._constants(arguments, 2)
            states = state if isinstance(state, list) else [state]
            return _any([self._is_state(entity_id, each) for each in states])
        if name == "is_state_attr":
            entity_id, attribute, value = self._constants(arguments, 3)
            return f"{self._value(entity_id, attribute)} == {literal(number(value))}"
        [entity_id] = self._constants(arguments, 1)
        return f"{self._value(entity_id, None)} ~= nil"

    def _is_state(self, entity_id: str, state: Any) -> str:
        if entity_id == "sun.sun":
            sun_height(self._entities, "elevation")
            return {"above_horizon": "not ha.is_dark(0)"}.get(str(state), "ha.is_dark(0)")
        if entity_id in self._entities.installation.groups:
            tests = [
                comparison_in_lua(self._entities.compare(each, state)) for each in self._entities.members([entity_id])
            ]
            return f"({(' or ' if self._entities.is_any(entity_id, state) else ' and ').join(tests)})"
        return _any([comparison_in_lua(self._entities.compare(entity_id, each)) for each in listed(state)])

    def _choose(self, test: nodes.Expr, values: list[nodes.Expr]) -> str:
        made = [*map(self.render, values), "false"] if values else ["true", "false"]
        return f"ha.choose({self.truth(test)}, {', '.join(made[:2])})"

    def _filter(self, node: nodes.Filter) -> str:
        if node.node is None:
            raise NotTranslated("the import does not support filter blocks in templates")
        if node.name in ("float", "int"):
            return self._number(node.node, node.name, node.args, node.kwargs)
        if node.name == "round":
            digits = self.render(node.args[0]) if node.args else "0"
            return f"ha.round({self.render(node.node)}, {digits})"
        if node.name == "default":
            value = self.render(node.args[0]) if node.args else '""'
            return f"ha.default({self.render(node.node)}, {value})"
        if node.name in ("min", "max"):
            return f"ha.{node.name}({self.render(node.node)})"
        if node.name == "iif":
            return self._choose(node.node, node.args)
        if node.name in _FILTERS:
            return _FILTERS[node.name].format(self._in_brackets(self.render(node.node)))
        raise NotTranslated(f"the import does not support the template filter {node.name}")

    def _number(
        self, value: nodes.Node, kind: str, arguments: list[nodes.Expr], named: Sequence[nodes.Keyword | nodes.Pair]
    ) -> str:
        given = [*arguments, *(each.value for each in named if each.key == "default")]
        default = self.render(given[0]) if given else None
        state = self._state(value)
        if state is not None:
            entity_id, attribute = state
            if entity_id == "sun.sun":
                return sun_height(self._entities, attribute or "")
            target = self._entities.target(entity_id, attribute)
            made = number_in_lua(target, default)
        else:
            made = f"ha.to_number({self.render(value)}{'' if default is None else f', {default}'})"
        return made if kind == "float" else f"ha.truncate({made})"

    # --- operators ---

    def _compare(self, node: nodes.Compare) -> str:
        tests, left = [], node.expr
        for operand in node.ops:
            tests.append(self._compare_two(left, operand.op, operand.expr))
            left = operand.expr
        return tests[0] if len(tests) == 1 else f"({' and '.join(tests)})"

    def _compare_two(self, left: nodes.Expr, kind: str, right: nodes.Expr) -> str:
        if isinstance(left, nodes.Const) and not isinstance(right, nodes.Const) and kind in _MIRRORED:
            left, right, kind = right, left, _MIRRORED[kind]
        for one, other, word in ((left, right, kind), (right, left, _MIRRORED.get(kind, ""))):
            if _is_call(one, {"now"}) and _is_call(other, {"today_at"}) and isinstance(other, nodes.Call):
                [time] = self._constants(other.args, 1)
                return f'os.date("%H:%M:%S") {_COMPARISONS[word]} {quote(time_of_day(time))}'
        if kind in ("in", "notin"):
            return self._contains(left, kind, right)
        if isinstance(right, nodes.Const) and kind in ("eq", "ne"):
            made = self._equals(left, right.value)
            return made if kind == "eq" else negated(made)
        if isinstance(right, nodes.Const) and isinstance(right.value, int | float) and kind in _LIMITS:
            return f"ha.is_{_LIMITS[kind]}({self.render(left)}, {literal(right.value)})"
        if kind not in _COMPARISONS:
            raise NotTranslated(f"the import does not support the comparison {kind} in templates")
        return f"{self.render(left)} {_COMPARISONS[kind]} {self.render(right)}"

    def _equals(self, left: nodes.Expr, value: Any) -> str:
        """Translate a comparison with a constant. Convert an entity's state to a Lares value."""
        state = self._state(left)
        if state is not None and not state[1]:
            return self._is_state(state[0], value)
        path = _path(left)
        if path in (["trigger", "to_state", "state"], ["trigger", "from_state", "state"]):
            return f"{self.render(left)} == {literal(self._trigger_value(value))}"
        if path == ["trigger", "entity_id"] and isinstance(value, str):
            target = self._entities.target(value)
            return f"event.{'name' if isinstance(target, Variable) else 'device_id'} == {literal(_owner(target))}"
        return f"{self.render(left)} == {literal(value)}"

    def _trigger_value(self, state: Any) -> Any:
        """Convert a state of the trigger's entities to a Lares value, if all entities have the same conversion."""
        values = [self._entities.compare(each, state) for each in self._scope.trigger_entities]
        if not values:
            return state
        if any(each.test != "equals" or each.value != values[0].value for each in values):
            raise NotTranslated("in Lares, this state has a different value for each of the trigger's entities")
        return values[0].value

    def _contains(self, left: nodes.Expr, kind: str, right: nodes.Expr) -> str:
        if isinstance(right, nodes.List | nodes.Tuple) and all(isinstance(each, nodes.Const) for each in right.items):
            made = _any([self._equals(left, each.value) for each in right.items if isinstance(each, nodes.Const)])
        else:
            made = f"ha.contains({self.render(right)}, {self.render(left)})"
        return made if kind == "in" else negated(made)

    _and = _or = _not = truth

    def _condexpr(self, node: nodes.CondExpr) -> str:
        other = self.render(node.expr2) if node.expr2 is not None else "nil"
        return f"ha.choose({self.truth(node.test)}, {self.render(node.expr1)}, {other})"

    def _concat(self, node: nodes.Concat) -> str:
        return " .. ".join(f"ha.text({self.render(each)})" for each in node.nodes)

    def _neg(self, node: nodes.Neg) -> str:
        return f"-{self._in_brackets(self.render(node.node))}"

    def _binary(self, node: nodes.BinExpr) -> str:
        left, right = (self._in_brackets(self.render(each)) for each in (node.left, node.right))
        return f"{left} {_OPERATORS[type(node)]} {right}"

    _add = _sub = _mul = _div = _floordiv = _mod = _pow = _binary

    def _test(self, node: nodes.Test) -> str:
        made = self._in_brackets(self.render(node.node)) if node.node is not None else "nil"
        tests = {
            "defined": f"{made} ~= nil",
            "undefined": f"{made} == nil",
            "none": f"{made} == nil",
            "number": f'type({made}) == "number"',
            "string": f'type({made}) == "string"',
        }
        if node.name not in tests:
            raise NotTranslated(f"the import does not support the template test {node.name}")
        return tests[node.name]

    # --- states ---

    def _state(self, node: nodes.Node | None) -> tuple[str, str | None] | None:
        """Return the entity and attribute of a node, or None if the node has no state."""
        if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name):
            if node.node.name == "states" and len(node.args) == 1:
                [entity_id] = self._constants(node.args, 1)
                return entity_id, None
            if node.node.name == "state_attr":
                entity_id, attribute = self._constants(node.args, 2)
                return entity_id, attribute
        path = _path(node)
        if self._scope.state_entity is not None and path == ["state", "state"]:
            return self._scope.state_entity, None
        if self._scope.state_entity is not None and len(path) == 3 and path[:2] == ["state", "attributes"]:
            return self._scope.state_entity, path[2]
        if len(path) == 4 and path[0] == "states" and path[3] == "state":
            return f"{path[1]}.{path[2]}", None
        if len(path) == 5 and path[0] == "states" and path[3] == "attributes":
            return f"{path[1]}.{path[2]}", path[4]
        return None

    def _value(self, entity_id: str, attribute: str | None) -> str:
        if entity_id == "sun.sun":
            return sun_height(self._entities, attribute or "")
        if attribute is None:
            return value_in_lua(self._entities.target(entity_id))
        target = self._entities.attribute(entity_id, attribute)
        return value_in_lua(target) if target.factor == 1 else number_in_lua(target)

    def _constants(self, arguments: list[nodes.Expr], count: int) -> list[Any]:
        if len(arguments) < count:
            raise NotTranslated("a function in the template lacks an argument")
        try:
            return [each.as_const() for each in arguments[:count]]
        except nodes.Impossible:
            raise NotTranslated("an argument in the template is not a literal value") from None

    def _in_brackets(self, text: str) -> str:
        return text if re.fullmatch(r"[\w.]+", text) or is_one_call(text) else f"({text})"


def _owner(target: Target | Variable) -> str:
    return target.name if isinstance(target, Variable) else target.device_id


def _any(tests: list[str]) -> str:
    return tests[0] if len(tests) == 1 else f"({' or '.join(tests)})" if tests else "false"


def _is_call(node: nodes.Node | None, names: frozenset[str] | set[str]) -> bool:
    return isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name) and node.node.name in names


def _without_filters(node: nodes.Node) -> nodes.Node:
    while isinstance(node, nodes.Filter) and node.name in ("float", "int") and node.node is not None:
        node = node.node
    if _is_call(node, {"float", "int"}) and isinstance(node, nodes.Call) and node.args:
        return node.args[0]
    return node


def _path(node: nodes.Node | None) -> list[str]:
    """Return the names in a path such as `trigger.to_state.state`. For other nodes, return an empty list."""
    if isinstance(node, nodes.Name):
        return [node.name]
    if isinstance(node, nodes.Getattr) and (before := _path(node.node)):
        return [*before, node.attr]
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and (before := _path(node.node)):
        return [*before, str(node.arg.value)]
    return []
