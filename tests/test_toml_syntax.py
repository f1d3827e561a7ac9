"""Texts that are not TOML: each error contains the line and what to do, but no secret."""

from __future__ import annotations

import pytest

from appliance import config
from appliance.errors import ConfigFailed
from tests.fakes.rows import each_row


def fault_in(text: str) -> str:
    with pytest.raises(ConfigFailed) as failed:
        config.parse_toml(text, "f")
    [fault] = failed.value.faults
    return str(fault)


@each_row(
    "text, reported",
    [
        ("a = “x”", '1: is not valid TOML: the line contains the quote “; use plain quotes: "…"'),
        ("[a]\nb = ‘x’", "2: is not valid TOML: the line contains the quote ‘"),
        ("[a]\nb = hello", '2: is not valid TOML: the text needs quotes: b = "hello"'),
        (
            "[locale]\ntimezone = Europe/Berlin # x",
            '2: is not valid TOML: the text needs quotes: timezone = "Europe/Berlin"',
        ),
        ("a = 192.168.1.20", '1: is not valid TOML: the text needs quotes: a = "192.168.1.20"'),
        ("a = 2026-13-01", '1: is not valid TOML: the text needs quotes: a = "2026-13-01"'),
        ('[a]\nb = "x\nc = 1', "2: is not valid TOML: the closing quote is missing"),
        ("a = 'x", "1: is not valid TOML: the closing quote is missing"),
        ("[a.b]\n[c]\n[a.b]\nx=1", "3: is not valid TOML: section [a.b] already exists on line 1; merge the two"),
        ('[adapters]\nx={y=1}\n["adapters".x]', "3: is not valid TOML: [adapters.x] already exists above as a key"),
        ("[a]\nb = 1\n[c]\nb = 1\nb = 2", "5: is not valid TOML: b already exists on line 4; remove one of the two"),
        (f"a = {'[' * 5000}", " cannot be read as TOML: it is nested too deeply"),
        (f"a = {'{a = ' * 500}", " cannot be read as TOML: it is nested too deeply"),
        (f"{'a.' * 5000}a = 1", " cannot be read as TOML: it is nested too deeply"),
        ("a: 1", "1: is not valid TOML: write = instead of the colon: a = 1"),
        ("- a", "1: is not valid TOML: write a list in brackets"),
        ("[a\nb=1", "1: is not valid TOML: close the section with ]"),
        ("[a]]", "1: is not valid TOML: write a section as [name], alone on its line"),
        ("a = [1 2]", "1: is not valid TOML: the list is not closed"),
        ("a = [1,\nb = 2\n", "2: is not valid TOML: a list above is not closed"),
        ("a = 52,5", "1: is not valid TOML: write a number with a point: 52.5"),
        ("a = 01", "1: is not valid TOML: a number cannot begin with 0"),
        ("a =", "1: is not valid TOML: the value of a is missing"),
        ("a = null", "1: is not valid TOML: the value of a is missing"),
        ("a = True", "1: is not valid TOML: write a = true"),
        ("a = off # x", "1: is not valid TOML: write a = false"),
        ("// x", "1: is not valid TOML: a comment begins with #"),
        ("a = 1 b = 2", "1: is not valid TOML: write one key per line"),
        ("a b = 1", "1: is not valid TOML: write a key as name = value"),
        ("a = { b = 1\n c = 2 }", "2: is not valid TOML: the table is not closed"),
        ('a = "c:\\dir"', "1: is not valid TOML: write each backslash twice"),
    ],
)
def test_a_fault_has_its_line_and_its_remedy(text: str, reported: str) -> None:
    assert fault_in(text).startswith(f"f:{reported}")


@each_row("text", [f"{key} = hunter2" for key in ("master_key", "password", "mqtt_token", "client_secret")])
def test_no_secret_is_shown(text: str) -> None:
    assert "hunter2" not in fault_in(text) and "needs quotes" in fault_in(text)
