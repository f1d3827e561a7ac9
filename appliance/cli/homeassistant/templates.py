"""Translates common Jinja templates of Home Assistant to Lua expressions. For any other template, raises
`NotTranslated` with the reason."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

from appliance.cli.homeassistant.entities import Comparison, Entities
from appliance.cli.homeassistant.lua import literal, quote
from appliance.cli.homeassistant.not_translated import NotTranslated
from appliance.cli.homeassistant.scope import Scope
from appliance.cli.homeassistant.template_translator import Translator
from appliance.cli.homeassistant.values import is_template, number

MAX_TEMPLATE_CHARS = 8192
MAX_TEMPLATE_LEVELS = 100

_TOO_DEEP = "the template is nested too deeply; write the automation in Lua"

_PARSER = Environment(autoescape=False)  # noqa: S701 - it only parses


def expression(text: Any, scope: Scope) -> str:
    """Return the Lua expression for a template's value. A text without a template becomes a literal."""
    if not is_template(text):
        return literal(number(text) if isinstance(text, str) else text)
    parts = _parts(text)
    if len(parts) == 1:
        return Translator(scope).render(parts[0])
    return message(text, scope)


def condition(text: str, scope: Scope) -> str:
    """Return the Lua expression for a template as a condition."""
    parts = _parts(text)
    if len(parts) != 1:
        raise NotTranslated("the import does not support a template with several parts")
    return Translator(scope).truth(parts[0])


def message(text: Any, scope: Scope) -> str:
    """Return the Lua expression for a text with templates."""
    if not is_template(text):
        return quote("" if text is None else str(text))
    made = []
    for part in _parts(text):
        if isinstance(part, nodes.TemplateData):
            made.append(quote(part.data))
        else:
            made.append(f"ha.text({Translator(scope).render(part)})")
    return " .. ".join(made) or '""'


def comparison(text: str, entities: Entities) -> Comparison:
    """Return the comparison if the template is a single test of a state. Otherwise, raise `NotTranslated`."""
    parts = _parts(text)
    if len(parts) == 1 and (found := Translator(Scope(entities=entities)).single(parts[0])) is not None:
        return found
    raise NotTranslated("only a template that tests one state can be a trigger")


def _parts(text: str) -> list[nodes.Node]:
    """Return the texts and expressions of a template, without leading and trailing white space."""
    if len(text) > MAX_TEMPLATE_CHARS:
        raise NotTranslated("the template is too long")
    try:
        tree = _PARSER.parse(text.strip())
    except RecursionError:
        raise NotTranslated(_TOO_DEEP) from None
    except TemplateSyntaxError as error:
        raise NotTranslated(f"the template is invalid: {error}") from None
    found: list[nodes.Node] = []
    for node in tree.body:
        if isinstance(node, nodes.Output):
            found += node.nodes
        elif isinstance(node, nodes.If):
            found.append(_choice(node, is_whole=len(tree.body) == 1))
        else:
            raise NotTranslated(f"the import does not support the template statement {type(node).__name__.lower()}")
    if _is_too_deep(found):
        raise NotTranslated(_TOO_DEEP)
    return found


def _is_too_deep(level: list[nodes.Node]) -> bool:
    """Return whether the expressions have more levels than the translation, which is recursive, can handle."""
    for _ in range(MAX_TEMPLATE_LEVELS):
        level = [child for node in level for child in node.iter_child_nodes()]
        if not level:
            return False
    return True


def _choice(node: nodes.If, *, is_whole: bool) -> nodes.Node:
    """Return `{% if %}` as a conditional expression. If it is the whole template, its texts can be values, such as
    `true`."""
    branches = [*((each.test, each.body) for each in (node, *node.elif_)), (None, node.else_)]
    made: nodes.Expr = nodes.Const(None)
    for test, body in reversed(branches):
        value = _single_output(body, is_whole=is_whole)
        made = value if test is None else nodes.CondExpr(test, value, made)
    return made


def _single_output(body: list[nodes.Node], *, is_whole: bool) -> nodes.Expr:
    outputs = [each for node in body for each in (node.nodes if isinstance(node, nodes.Output) else [node])]
    if is_whole:
        outputs = [each for each in outputs if not (isinstance(each, nodes.TemplateData) and not each.data.strip())]
    if not outputs:
        return nodes.Const(None if is_whole else "")
    if len(outputs) == 1 and isinstance(outputs[0], nodes.TemplateData):
        text = outputs[0].data.strip()
        if not is_whole:
            return nodes.Const(outputs[0].data)
        return nodes.Const({"true": True, "false": False}.get(text.lower(), number(text)))
    if len(outputs) == 1 and isinstance(outputs[0], nodes.Expr):
        return outputs[0]
    raise NotTranslated("the import does not support a template with several parts in one branch")
