"""An adapter section with an address under the wrong key causes an error that contains the correct line."""

from __future__ import annotations

import pytest

from appliance import config
from appliance.adapters.address_hints import hint_of_addresses
from appliance.adapters.lua_kinds.definition import KindDefinition
from appliance.adapters.lua_kinds.section import LuaSection, SectionFaults, read_section
from appliance.adapters.lua_kinds.settings import KNOWN_SETTINGS
from appliance.errors import ConfigFailed
from tests.fakes.rows import each_row


@each_row(
    "section, line",
    [
        ('elgato_lights]\nhost = "192.168.1.9"', 'base_url = "http://192.168.1.9"'),
        ('elgato_lights]\nip_address = "192.168.1.9"\nport = 9123', 'base_url = "http://192.168.1.9:9123"'),
        ('elgato_lights]\nurl = "https://lamp.local:9123/x"', 'base_url = "https://lamp.local:9123"'),
        ('wled]\naddress = "strip.local"', 'base_url = "http://strip.local"'),
        ("wled]\nip = 5", 'base_url = "http://192.168.1.20"'),
        ('mqtt]\nbase_url = "mqtt://broker.lan:1884"', 'host = "broker.lan" and port = 1884'),
        ('mqtt]\nurl = "mqtt://broker.lan:1884"\nport = 1885', 'host = "broker.lan"'),
        ('mqtt]\nip_address = "192.168.1.4"', 'host = "192.168.1.4"'),
        ('mqtt]\nBroker = "[fd00::1]:1883"', 'host = "fd00::1" and port = 1883'),
        ('roku_tv]\nhost = "192.168.1.30"', 'ip_address = "192.168.1.30"'),
        ('roku_tv]\nbase_url = "http://192.168.1.30:8060"', 'ip_address = "192.168.1.30" and port = 8060'),
        ('matter]\nhost = "127.0.0.1"', 'url = "ws://127.0.0.1:5580/ws"'),
        ('x]\ntype = "notify"\nbase_url = "https://example.org"', 'url = "https://example.org"'),
        ('wled]\nhost = "[fd00::1]:81"', 'base_url = "http://[fd00::1]:81"'),
        ('matter]\nhost = "[fd00::1]"', 'url = "ws://[fd00::1]:5580/ws"'),
        ('wled]\nhost = "http://[::1"', 'base_url = "http://192.168.1.20"'),
    ],
)
def test_a_wrong_key_is_reported_with_the_right_line(section: str, line: str) -> None:
    with pytest.raises(ConfigFailed) as failed:
        config.parse(f"[adapters.{section}\n", "f", {})
    assert any(str(fault).endswith(f"; write {line}") for fault in failed.value.faults), failed.value


def test_a_default_url_without_a_port_gets_none() -> None:
    hint = hint_of_addresses({"host": "hub.local"}, lambda key, known: "", "wss://example.org/ws")
    assert hint("host", ["url"]) == '; write url = "wss://hub.local/ws"'


def test_a_wrong_key_of_a_kind_in_lua_is_reported_with_the_right_line() -> None:
    raw = {"host": "192.168.1.9"}
    section = LuaSection(name="plug", kind="plug", raw=raw, file="f", line_of=lambda path: 1)
    found = read_section(section, KindDefinition(name="Plug", settings=KNOWN_SETTINGS))
    assert isinstance(found, SectionFaults)
    assert any('; write base_url = "http://192.168.1.9"' in each.message for each in found.faults)
