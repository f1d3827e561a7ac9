"""A section is changed in place. The other lines and comments keep their order."""

from __future__ import annotations

from typing import Any

import pytest
import tomli

from appliance.errors import Invalid
from appliance.files.toml_edit import remove_section, set_keys

TEXT = """# the home
[adapters.plug]  # in the kitchen
type = "wled"
base_url = "http://10.0.0.9"  # fixed in the router
headers = { "X-A" = "b" }

# The broker.
[adapters.mqtt]
host = 'broker'
# password = "old"
password = "secret"
# Its end.

# The API.
[api]
bind_address = "127.0.0.1:3000"
"""

CHANGES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a value": ("plug", {"base_url": "http://10.0.0.8"}, '"http://10.0.0.9"', '"http://10.0.0.8"'),
    "nothing": ("plug", {}, "", ""),
    "a value of another quoting": ("mqtt", {"host": "a\"b\\c\n'ü"}, "'broker'", '"a\\"b\\\\c\\n\'ü"'),
    "a table": ("plug", {"headers": {"Y": "1"}}, '{ "X-A" = "b" }', '{ Y = "1" }'),
    "a new key": ("mqtt", {"port": 1884, "tls": True}, '"secret"\n', '"secret"\nport = 1884\ntls = true\n'),
    "a removed key": ("plug", {"base_url": None}, 'base_url = "http://10.0.0.9"  # fixed in the router\n', ""),
    "a removed key that is missing": ("plug", {"port": None}, "", ""),
    "all at once": (
        "plug",
        {"type": None, "base_url": "http://a", "headers": None, "on": [1, 2.5, "x"]},
        'type = "wled"\nbase_url = "http://10.0.0.9"  # fixed in the router\nheaders = { "X-A" = "b" }\n',
        'base_url = "http://a"  # fixed in the router\non = [1, 2.5, "x"]\n',
    ),
    "a new section": (
        "lamp",
        {"type": "wled", "x": None, "odd key": 1},
        ':3000"\n',
        ':3000"\n\n[adapters.lamp]\ntype = "wled"\n"odd key" = 1\n',
    ),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("what", CHANGES)
def test_a_change_keeps_everything_else(what: str, newline: str) -> None:
    name, values, old, new = CHANGES[what]
    found = set_keys(TEXT.replace("\n", newline), name, values).replace("\r\n", "\n")
    assert found == (TEXT.replace(old, new) if old else TEXT)
    assert set_keys("\ufeff" + TEXT, name, values) == "\ufeff" + found
    stated = tomli.loads(found)["adapters"][name]
    assert {key: stated.get(key) for key in values} == values


REMOVED = {
    "plug": TEXT[TEXT.index("[adapters.plug]") : TEXT.index("# The broker.")],
    "mqtt": TEXT[TEXT.index("[adapters.mqtt]") : TEXT.index("# The API.")],
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("name", REMOVED)
def test_removing_a_section_removes_only_its_lines(name: str, newline: str) -> None:
    found = remove_section(TEXT.replace("\n", newline), name).replace("\r\n", "\n")
    assert found == TEXT.replace(REMOVED[name], "")


def test_a_section_is_removed_with_the_sections_in_it_and_added_again() -> None:
    before = '[api]\n\n# rows\n[[adapters.virtual.devices]]\nid = "a"\n'
    text = f"{before}\n[adapters.virtual]\n\n[[adapters.virtual.devices]]\nid = 'b'\n"
    assert remove_section(text, "virtual") == "[api]\n\n# rows\n"
    assert set_keys("", "a", {"x": 1}) == "[adapters.a]\nx = 1\n"


REFUSED = {
    "dotted keys": '[adapters]\nmqtt.host = "x"\n',
    "an inline table": 'adapters = { mqtt = { host = "x" } }\n',
    "only inner sections": '[[adapters.mqtt.rows]]\nid = "x"\n',
    "no TOML": "[adapters.mqtt\n",
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_unsupported_form_is_refused(what: str) -> None:
    with pytest.raises(Invalid, match="in the file"):
        set_keys(REFUSED[what], "mqtt", {"port": 1})
    with pytest.raises(Invalid, match="in the file"):
        remove_section(REFUSED[what], "mqtt")
