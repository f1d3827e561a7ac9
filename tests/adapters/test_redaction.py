"""Redaction of secrets: all their forms, the limits, and similar texts."""

from __future__ import annotations

import base64
import json
import random
from urllib.parse import quote, quote_plus

import pytest
from msgspec import Struct

from appliance.adapters.redaction import (
    MAX_SECRETS,
    MAX_SHARING,
    Redaction,
    _forms,
    count_characters,
)


class Texts(Struct):
    secrets: tuple[str, ...] = ()


def redaction(*secrets: str, kept: tuple[str, ...] = ()) -> Redaction:
    return Redaction(secrets, Texts(kept))


SECRET = 'tök "en/1 <&>+x'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(SECRET).replace("/", "\\/")[1:-1],
        "tök &quot;en/1 &lt;&amp;&gt;+x",
        'tök "en/1 &lt;&amp;&gt;+x',
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        base64.b64encode(SECRET.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
    ],
)
def test_each_form_of_a_secret_is_replaced(form: str) -> None:
    redact = redaction(SECRET)
    assert redact(f"a {form} b {form}") == "a *** b ***"
    assert redact.in_value({form: [form, {"x": form}, 7]}) == {"***": ["***", {"x": "***"}, 7]}


@pytest.mark.parametrize("name", ["a", "me", "admin"])
def test_a_secret_within_base64_is_replaced(name: str) -> None:
    whole = base64.b64encode(f"{name}:{SECRET}".encode()).decode()
    found = redaction(SECRET)(f"Basic {whole}")
    assert "***" in found and len(found) < len(whole)


def test_numbers_that_are_secrets_are_replaced_as_a_whole() -> None:
    assert redaction("12345678").in_value([12345678, 123456789, 1.5, True]) == ["***", 123456789, 1.5, True]


@pytest.mark.slow
def test_redaction_finds_the_same_secrets_as_a_plain_search() -> None:
    chance = random.Random(7)
    for _ in range(300):
        letters = "ab" if chance.random() < 0.5 else "abcdef"
        secrets = ["".join(chance.choices(letters, k=chance.choice((3, 5, 8, 9, 17, 40)))) for _ in range(3)]
        text = "".join(chance.choice([*secrets, "a", "b", "f", " "]) for _ in range(40))
        forms = sorted({form for each in secrets for form in _forms(each)}, key=len, reverse=True)
        expected, at = "", 0
        while at < len(text):
            found = next((form for form in forms if len(form) >= 3 and text.startswith(form, at)), None)
            expected, at = (expected + "***", at + len(found)) if found else (expected + text[at], at + 1)
        assert redaction(*secrets)(text) == expected


def test_the_number_of_secrets_is_bounded_and_the_longest_are_kept() -> None:
    kept = tuple(f"secret-{number:05}-{'x' * (number % 2)}" for number in range(2 * MAX_SECRETS))
    redact = redaction(kept=kept)
    assert redact(kept[1]) == "***" and redact(kept[0]) == kept[0]


def test_secrets_that_share_a_long_beginning_are_replaced_as_a_word() -> None:
    shared = "https://example.com/token/"
    few = redaction(*(f"{shared}{number}00" for number in range(MAX_SHARING)))
    assert few(f"{shared}{MAX_SHARING - 1}00") == "***" and few(f"{shared}help") == f"{shared}help"
    many = redaction(*(f"{shared}{number}00" for number in range(MAX_SHARING + 1)))
    assert many(f"<{shared}{MAX_SHARING}00> x") == "<***> x" and many(f"<{shared}help> x") == "<***> x"


def test_short_secrets_are_shown_by_devices_and_not_in_texts() -> None:
    redact = redaction("50", "eco7", "long-secret", kept=("fan_only", "session-0123456789"))
    assert redact("50 eco7 fan_only") == "50 *** ***"
    reported = ["eco7", "fan_only", "long-secret", "session-0123456789"]
    assert redact.in_device(reported) == ["eco7", "fan_only", "***", "***"]


def test_secrets_that_are_kept_later_are_replaced_too() -> None:
    texts = Texts()
    redact = Redaction((), texts)
    assert redact("kept-9f3a") == "kept-9f3a"
    texts.secrets = ("kept-9f3a",)
    assert redact("kept-9f3a") == "***"


def test_the_count_of_characters_ends_at_its_limit() -> None:
    assert count_characters([{"abc": "de"}, 7, None], 100) == 11
    assert 50 <= count_characters(["x" * 20] * 1000, 50) <= 100
