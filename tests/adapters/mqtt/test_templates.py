"""Templates: the text that Jinja would make, within bounds, and nothing of Python within reach."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment

from appliance.adapters.mqtt.templates.template import Template
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed, ValueMissing
from tests.adapters.mqtt.captures import FOLDER, captures, configurations

NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)


def render(text: str, **names: Any) -> str:
    return Template(text).render(names, NOW)


def rendered_json(text: str, payload: Any) -> str:
    return render(text, value=json.dumps(payload), value_json=payload)


class _Dict(dict[Any, Any]):
    @staticmethod
    def from_keys(pairs: Any) -> dict[Any, Any]:
        return dict(pairs)


def oracle() -> jinja2.Environment:
    """Jinja with the filters that Home Assistant adds, written here after their documentation."""
    environment = ImmutableSandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"])

    def rounded(value: Any, digits: int = 0) -> Any:
        return round(float(value)) if digits == 0 else round(float(value), digits)

    def found(value: str, pattern: str) -> list[Any]:
        return re.findall(pattern, value)

    def needed(value: Any, default: Any = None) -> float:
        try:
            return float(value)
        except ValueError:
            return float(default)

    def is_number(value: Any) -> bool:
        try:
            return bool(abs(float(value)) < float("inf"))
        except (TypeError, ValueError):
            return False

    environment.filters |= {
        "to_json": lambda value: json.dumps(value, separators=(",", ":")),
        "is_defined": lambda value: value,
        "regex_findall": found,
        "multiply": lambda value, by: float(value) * by,
        "timestamp_local": lambda value: datetime.fromtimestamp(value, UTC).isoformat(),
        "round": rounded,
        "float": needed,
    }
    environment.globals |= {
        "dict": _Dict,
        "zip": zip,
        "now": lambda: NOW,
        "as_timestamp": lambda value: value.timestamp(),
        "is_number": is_number,
    }
    return environment


def templates() -> Iterator[str]:
    """Every text of the captures that is a template, and those of the list of shapes, each once."""
    seen: set[str] = set()
    texts = [text for _, config in configurations() for text in _texts(config)]
    texts += [
        json.loads(line.split("\t")[2]) for line in (FOLDER / "template-shapes.tsv").read_text().splitlines()[1:]
    ]
    for text in texts:
        if ("{{" in text or "{%" in text) and text not in seen:
            seen.add(text)
            yield text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def payloads() -> list[bytes]:
    """The distinct states of the captures, and some that no announcer would send."""
    found = {sent.payload for each in captures() for sent in each.states}
    return sorted(
        found | {b'{"action":"single","update":{"state":"idle"}}', b"5", b"null", b'""', b"[]", b"on", b"{}"}
    )


def test_every_template_of_the_captures_gives_the_text_of_jinja() -> None:
    environment, compared, wrong = oracle(), 0, []
    given_payloads = payloads()
    for text in templates():
        try:
            theirs = environment.from_string(text)
        except jinja2.TemplateSyntaxError:
            with pytest.raises(TemplateFailed):
                Template(text)
            continue
        ours = Template(text)
        for payload in given_payloads[:: 1 if len(text) > 60 else 7]:
            names = names_of(payload)
            try:
                expected = theirs.render(names).strip()
            except Exception:
                with pytest.raises(TemplateFailed):
                    ours.render(names, NOW)
                continue
            try:
                got = ours.render(names, NOW)
            except ValueMissing:
                got = "" if "is_defined" in text else "(missing)"
            if got != expected:
                wrong.append((text, payload, got, expected))
            compared += 1
    assert compared > 3_000
    assert not wrong, wrong[:3]


def names_of(payload: bytes) -> dict[str, Any]:
    names: dict[str, Any] = {
        "value": payload.decode(), "position": 42, "brightness": 128, "red": 255, "green": 0, "blue": 64,
    }  # fmt: skip
    with contextlib.suppress(ValueError):
        names["value_json"] = json.loads(payload)
    return names


RENDERED = [
    ("{{ value_json.contact }}", {"contact": False}, "False"),
    ("{{ value_json.contact }}", {"contact": None}, "None"),
    ("{{ value_json.none }}", {}, ""),
    ("{{ [x, (x, 1), {'a': x}] }}", {}, "[Undefined, (Undefined, 1), {'a': Undefined}]"),
    ("{{ value_json.thermostats.0.pos }}", {"thermostats": [{"pos": 7}]}, "7"),
    ("{{ value_json['a']['b'] }}", {"a": {"b": [1, "x"]}}, "[1, 'x']"),
    ("{{ value_json.t | round(1) }}", {"t": 20.449}, "20.4"),
    ("{{ value_json.t | round }}", {"t": 20.5}, "20"),
    ("{{ value_json.t | round }}", {"t": 21.5}, "22"),
    ("{{ value_json.t | round(0, 'ceil') }}", {"t": 20.1}, "21"),
    ("{{ value_json.t | round(1, 'half') }}", {"t": 20.3}, "20.5"),
    ("{{ value_json.a + value_json.b * 2 }}", {"a": 1, "b": 2}, "5"),
    ("{{ (value_json.a + 1) // 2 }}", {"a": 4}, "2"),
    ("{{ value_json.a ~ '-' ~ value_json.b }}", {"a": 1, "b": None}, "1-None"),
    ("{{ -value_json.a | abs }}", {"a": 4}, "4"),
    ("{{ 'on' if value_json.a > 3 else 'off' }}", {"a": 4}, "on"),
    ("{{ 'on' if value_json.a > 5 }}", {"a": 4}, ""),
    ("{% if value_json.a is not defined %}x{% elif value_json.a is number %}n{% else %}e{% endif %}", {"a": 1}, "n"),
    ("{% set v = {'a': 1, 'b': 2} %}{{ v[value_json.k] }}", {"k": "b"}, "2"),
    ("{% for i in [1, 2, 3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}", {}, "13"),
    ("{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", {}, "1"),
    ("{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}", {}, "1"),
    ("{% set n = namespace(x=1) %}{% for i in [1] %}{% set n.x = 2 %}{% endfor %}{{ n.x }}", {}, "2"),
    ("a {#- comment -#} b", {}, "ab"),
    ("{{- ' x ' -}} y", {}, "x y"),
    ("{{ {'a': 1}|to_json }}", {}, '{"a":1}'),
    ("{{{'event_type':value_json.e}|to_json}}", {"e": "S"}, '{"event_type":"S"}'),
    ("{{ value_json.c.split(',')[0:3]|join(',') }}", {"c": "1,2,3,4"}, "1,2,3"),
    ("{{ value_json.c[:-1] }}", {"c": "abc"}, "ab"),
    ("{{ value_json.get('x', 'null') }}", {}, "null"),
    ("{{ 'a' in value_json and 'b' not in value_json }}", {"a": 1}, "True"),
    ("{{ value_json.x | default('', True) | string | truncate(4, True, '', 0) }}", {"x": "abcdef"}, "abcd"),
    ("{{ value_json.x | int(base=16) }}", {"x": "ff"}, "255"),
    ("{{ value_json.x | float(0) }}", {"x": "?"}, "0"),
    ("{{ 1 < value_json.x <= 3 }}", {"x": 3}, "True"),
    ("{{ not value_json.x }}", {"x": 0}, "True"),
    ("{{ value_json.items() | list }}", {"a": 1}, "[('a', 1)]"),
    ("{{ value_json.name_x | upper }}", {"name_x": "é"}, "É"),
    ("{{ 'a\\'b' }}", {}, "a'b"),
    ("{{ value_json | length }}", [1, 2], "2"),
]


def test_templates_give_what_a_table_says() -> None:
    wrong = [(text, got, result) for text, payload, result in RENDERED
             if (got := rendered_json(text, payload)) != result]  # fmt: skip
    assert not wrong


REFUSED = [
    "{{ ''.__class__ }}",
    "{{ value_json.__class__.__mro__ }}",
    "{{ value_json['__class__'].x }}",
    "{{ ''.format }}{{ ''.format() }}",
    "{{ value_json.get.__globals__ }}",
    "{{ now().__class__ }}",
    "{{ cycler.__init__ }}",
    "{{ range.__class__ }}",
    "{{ ().__class__.__bases__[0].__subclasses__() }}",
    "{{ 'a' * 1000000000 }}",
    "{{ [0] * 1000000 }}",
    "{{ 'a' % 5 }}",
    "{{ '%999999999d' % 1 }}",
    "{{ 2 ** 99 }}",
    "{{ range(1000000000) }}",
    "{{ range(1000000000) | list | length }}",
    "{{ 9223372036854775807 * 9223372036854775807 }}",
    "{% for a in range(99) %}{% for b in range(99) %}x{% endfor %}{% endfor %}",
    "{% set n = namespace(x='aaaa') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}{{ n.x }}",
    "{% set n = namespace(x='aaaa') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}{{ n.x }}",
    "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x | replace('a', 'aaaaaa') %}{% endfor %}",
    "{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!' | regex_findall('(a+)+$') }}",
    "{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!' | regex_replace('(a|a)*$', '') }}",
    "{{ value | regex_findall(value_json.p) }}",
    "{{ 'x' | regex_findall('(?P<a>x)(?P=a)') }}",
    "{{ 'x' | regex_findall('((((((((((') }}",
    "{{%if value==1%}x{%endif%}}",
    "{{ value_json",
    "{% if x %}",
    "{% endif %}",
    "{% include 'x' %}",
    "{% import 'os' as os %}",
    "{% macro x() %}{% endmacro %}",
    "{{ x | attr('y') }}",
    "{{ lipsum() }}",
    "{{ value() }}",
    "{{ 1 +",
    "{{ }}",
    "{{ 'x' }",
    "{{ value_json | nothing }}",
    "{{ x is nothing }}",
    "{# x",
    "{{ " + "(" * 40 + "1" + ")" * 40 + " }}",
    "{{ " + "-" * 400 + "1 }}",
    "{{ " + "+".join(["1"] * 300) + " }}",
    "x" * 9000,
    "{{ 'x' | regex_findall('" + "(" * 1500 + ")" * 1500 + "') }}",
    "{{ 99999999999999999999999 }}",
]


def test_what_is_dangerous_or_broken_is_refused_with_a_sentence_and_soon() -> None:
    payload = {"p": "(x+)+y", "big": ["x" * 100] * 2000}
    for text in REFUSED:
        began = time.process_time()
        with pytest.raises(TemplateFailed) as caught:
            got = render(text, value="x" * 200, value_json=payload)
            assert got == "", (text, got)
            raise TemplateFailed("empty text, as for anything that is not there")
        assert time.process_time() - began < 2.0, text
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@given(st.text(alphabet="{}%#-|.()[]'\" \nabvalue_jsonifelsndt0123456789+*/~=<>,:", max_size=200))
@settings(max_examples=150, deadline=None)
def test_no_text_does_more_than_fail(text: str) -> None:
    for each in (text, "{{" + text + "}}", "{% if " + text + " %}x{% endif %}"):
        try:
            render(each, value="1", value_json={"a": 1})
        except TemplateFailed as fault:
            assert str(fault)
