"""The page of attributes has a row for each attribute of the catalog. All values, units, and commands on the page
are valid."""

from __future__ import annotations

import re
from collections.abc import Iterator

from appliance.cli.lua_form import example_of, lua_value
from appliance.home.capabilities import CAPABILITIES, KNOWN_ATTRIBUTES, Capability
from appliance.home.command_specs import CommandSpec
from appliance.home.commands import VALUED_ACTIONS
from tests.docs.pages import DOCS

PAGE = DOCS / "attributes.md"

VALUES = {
    "measurement": "`{ value, unit }`, a number, usually in %s",
    "accumulation": "`{ value, unit, period }`, a number, usually in %s",
    "number": "a number, %s",
    "integer": "a whole number, %s",
    "integer_or_string": "a whole number (%s), or a text",
    "percentage": "a whole number from 0 to 100, %s",
    "string": "a text",
    "boolean": "`true`, `false`",
    "rgb_color": "`{ r, g, b }`, each from 0 to 255",
    "hex_color": "a text like `#ffb450`",
    "xy_color": "`{ x, y }`, each from 0 to 1",
    "hs_color": "`{ hue, saturation }`, from 0 to 360 and from 0 to 100",
    "color_temperature": "`{ value, unit }`, in `kelvin` (2200 to 7000) or `mireds` (153 to 556)",
}


def rows() -> Iterator[str]:
    """Yield the rows of the tables."""
    for entry in KNOWN_ATTRIBUTES.values():
        yield f"| `{entry.key}` | {_values(entry)} | {_commands(entry)} | {entry.description} |"


def _values(entry: Capability) -> str:
    if entry.type == "enum":
        return ", ".join(f"`{each}`" for each in entry.values)
    text = VALUES[entry.type]
    return text % f"`{entry.unit}`" if "%s" in text and entry.unit else text.replace(", %s", "")


def _commands(entry: Capability) -> str:
    actions = [each for each in entry.actions if each != "get"]
    valued = [each for each in actions if each in VALUED_ACTIONS]
    plain = [f"`{each}`" for each in actions if each not in VALUED_ACTIONS]
    if valued:
        example = lua_value(example_of(CommandSpec(capability=entry.key, actions=entry.actions)))
        plain.append(", ".join(f"`{each}`" for each in valued) + f" with a value like `{example}`")
    return ", ".join(plain) or "-"


def test_the_page_has_a_row_for_every_attribute() -> None:
    found = re.findall(r"^\| `.*$", PAGE.read_text(), re.MULTILINE)
    expected = [*rows()]
    assert found == expected, "docs/attributes.md should have:\n" + "\n".join(expected)


def test_each_capability_is_below_its_domain() -> None:
    page = PAGE.read_text()
    for entry in CAPABILITIES.values():
        section = page.split(f"\n## {entry.domain.capitalize()}\n")[1].split("\n## ")[0]
        assert f"\n| `{entry.key}` |" in section
