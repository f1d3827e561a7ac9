"""From tokens to expressions: each becomes a function of the rendering. The rules of precedence are Jinja's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from appliance.adapters.mqtt.templates.filters import FILTERS, FUNCTIONS, TESTS
from appliance.adapters.mqtt.templates.lexer import Budget, TemplateToken, TokenReader
from appliance.adapters.mqtt.templates.nodes import (
    Arguments,
    Expression,
    Step,
    application,
    calculation,
    call,
    chain,
    choice,
    comparison,
    constant,
    first_that,
    hashable,
    item,
    method_call,
    sequence,
    subscript,
)
from appliance.adapters.mqtt.templates.operators import ARITHMETIC, COMPARISONS
from appliance.adapters.mqtt.templates.template_limits import MAX_TEMPLATE_DEPTH, UNDEFINED, TemplateFailed

_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None}
_OPERATORS = (("+", "-"), ("~",), ("*", "/", "//", "%"))
"""Arithmetic, those that bind least first."""

_AFTER_TEST = ("else", "or", "and", "is", "if", "not", "in")


class Reader(TokenReader):
    """Reads the expressions of one part."""

    def __init__(self, tokens: Sequence[TemplateToken], budget: Budget) -> None:
        super().__init__(tokens, budget)
        self._depth = 0

    def expression(self) -> Expression:
        """An expression, `a if b else c` included."""
        self._depth += 1
        if self._depth > MAX_TEMPLATE_DEPTH:
            raise TemplateFailed(f"is nested more than {MAX_TEMPLATE_DEPTH} deep")
        value = self._either()
        while self.accept("if"):
            condition = self._either()
            otherwise = self.expression() if self.accept("else") else constant(UNDEFINED)
            value = choice(self._node(condition), value, otherwise)
        self._depth -= 1
        return value

    def values(self) -> Expression:
        """An expression, or several with commas between, which make a tuple."""
        first = self.expression()
        if self.next.text != "," or self.next.kind != "operator":
            return first
        items = [first]
        while self.accept(","):
            if self.next.kind == "end":
                break
            items.append(self.expression())
        return self._node(sequence(items, tuple))

    def _node(self, expression: Expression) -> Expression:
        self._budget.count()
        return expression

    def _either(self) -> Expression:
        return self._chain("or", self._both, counts_as=True)

    def _both(self) -> Expression:
        return self._chain("and", self._negation, counts_as=False)

    def _chain(self, word: str, part: Callable[[], Expression], *, counts_as: bool) -> Expression:
        parts = [part()]
        while self.accept(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else self._node(first_that(parts, counts_as=counts_as))

    def _negation(self) -> Expression:
        negations = 0
        while self.accept("not"):
            negations += 1
        value = self._comparison()
        if not negations:
            return value
        return self._node(lambda run: bool(value(run)) == (negations % 2 == 0))

    def _comparison(self) -> Expression:
        first, others = self._operations(), []
        while (sign := self._comparing()) is not None:
            others.append((COMPARISONS[sign], self._operations()))
        return self._node(comparison(first, others)) if others else first

    def _comparing(self) -> str | None:
        if sign := self.accept("==", "!=", "<", "<=", ">", ">=", "in"):
            return sign
        following = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        if self.next.text == "not" and following.text == "in" and following.kind == "name":
            self._at += 2
            return "not in"
        return None

    def _operations(self, level: int = 0) -> Expression:
        """Operators of this level of `_OPERATORS`, between parts of the next."""
        if level == len(_OPERATORS):
            return self._signed()
        first, others = self._operations(level + 1), []
        while sign := self.accept(*_OPERATORS[level]):
            others.append((ARITHMETIC[sign], self._node(self._operations(level + 1))))
        return calculation(first, others) if others else first

    def _signed(self, *, is_filtered: bool = True) -> Expression:
        if sign := self.accept("-", "+"):
            self._depth += 1
            value = self._signed(is_filtered=False) if self._depth <= MAX_TEMPLATE_DEPTH else self.expression()
            self._depth -= 1
            value = self._node(calculation(constant(0), [(ARITHMETIC[sign], value)]))
        else:
            value = self._primary()
        steps = self._postfixes()
        if is_filtered:
            while (self.next.kind == "operator" and self.next.text == "|") or self.next.text == "is":
                steps.append(self._filter() if self.accept("|") else self._test())
                steps.extend(self._postfixes())
        return chain(value, steps) if steps else value

    def _primary(self) -> Expression:
        token = self.take()
        if token.kind == "name":
            return self._node(self._named(token.text))
        if token.kind == "number":
            return self._node(constant(token.value))
        if token.kind == "string":
            text = str(token.value)
            while self.next.kind == "string":
                text += str(self.take().value)
            self._budget.literals.add(text)
            return self._node(constant(text))
        if token.text == "(":
            return self._parenthesis()
        if token.text == "[":
            return self._node(sequence(self._items("]"), list))
        if token.text == "{":
            return self._node(self._object())
        raise TemplateFailed(f"{token.text or 'the end'!r} is not expected there")

    def _named(self, name: str) -> Expression:
        if name in _CONSTANTS:
            return constant(_CONSTANTS[name])
        if name == "dict" and self.next.text == "." and self._tokens[self._at + 1].text == "from_keys":
            self._at += 2
            name = "dict.from_keys"
        if name in FUNCTIONS and self.accept("("):
            return call(FUNCTIONS[name], self._arguments())
        return lambda run: run.names.get(name, UNDEFINED)

    def _parenthesis(self) -> Expression:
        if self.accept(")"):
            return constant(())
        first = self.expression()
        if self.accept(")"):
            return first
        self.expect(",")
        return self._node(sequence([first, *self._items(")")], tuple))

    def _separated(self, closing: str) -> Iterator[None]:
        """One step for each item up to the closing bracket, with commas between; one behind the last is allowed."""
        is_first = True
        while not self.accept(closing):
            if not is_first:
                self.expect(",")
                if self.accept(closing):
                    return
            is_first = False
            yield

    def _items(self, closing: str) -> list[Expression]:
        return [self.expression() for _ in self._separated(closing)]

    def _object(self) -> Expression:
        pairs: list[tuple[Expression, Expression]] = []
        for _ in self._separated("}"):
            key = self.expression()
            self.expect(":")
            pairs.append((key, self.expression()))
        return lambda run: {hashable(key(run)): value(run) for key, value in pairs}

    def _postfixes(self) -> list[Step]:
        steps: list[Step] = []
        while self.next.kind == "operator" and self.next.text in (".", "[", "("):
            self._budget.count()
            sign = self.take().text
            if sign == "(":
                raise TemplateFailed("calls something that is no function of templates")
            steps.append(self._subscript() if sign == "[" else self._member())
        return steps

    def _member(self) -> Step:
        token = self.take()
        if token.kind == "number":
            return lambda run, value: item(value, token.value)
        if token.kind != "name":
            raise TemplateFailed(f"lacks a name before {token.text or 'the end'!r}")
        if self.accept("("):
            return method_call(token.text, self._arguments())
        return lambda run, value: item(value, token.text)

    def _subscript(self) -> Step:
        parts: list[Expression | None] = []
        while not self.accept("]"):
            if self.accept(":"):
                parts.append(None)
            else:
                parts.append(self.expression())
                if self.next.text != "]":
                    self.expect(":")
                    parts.append(None)
        return subscript(parts)

    def _filter(self) -> Step:
        name = self.name()
        if name not in FILTERS:
            raise TemplateFailed(f"the filter {name!r} is not known")
        self._budget.count()
        arguments = self._arguments() if self.accept("(") else ([], {})
        return application(FILTERS[name], arguments)

    def _test(self) -> Step:
        self.expect("is")
        expected = self.accept("not") is None
        name = self.name()
        if name not in TESTS:
            raise TemplateFailed(f"the test {name!r} is not known")
        self._budget.count()
        arguments: Arguments = ([], {})
        if self.accept("("):
            arguments = self._arguments()
        elif self.next.kind in ("number", "string") or self.next.text in ("[", "{") or self._is_argument():
            operand = self._primary()
            arguments = ([chain(operand, self._postfixes())], {})
        test = application(TESTS[name], arguments)
        return lambda run, value: bool(test(run, value)) is expected

    def _is_argument(self) -> bool:
        return self.next.kind == "name" and self.next.text not in _AFTER_TEST

    def _arguments(self) -> Arguments:
        """What stands between the parentheses of a call; the first of them is behind."""
        self._budget.count()
        given: list[Expression] = []
        named: dict[str, Expression] = {}
        for _ in self._separated(")"):
            following = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
            if self.next.kind == "name" and following.text == "=" and following.kind == "operator":
                name = self.name()
                self.expect("=")
                named[name] = self.expression()
            else:
                given.append(self.expression())
        return given, named
