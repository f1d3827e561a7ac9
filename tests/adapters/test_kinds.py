"""From configuration to adapters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance import config
from appliance.adapters.device_http import DeviceSession
from appliance.adapters.elgato_lights.adapter import ElgatoAdapter
from appliance.adapters.kinds import kind_of
from appliance.adapters.polling import PollingAdapter
from appliance.adapters.roku_tv.adapter import RokuAdapter
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.rows import each_row

HOME = """
[adapters.roku_tv]
ip_address = "192.168.1.30"

[adapters.desk]
type = "elgato_lights"
base_url = "http://192.168.1.20:9123/"
poll_interval_secs = 1

[adapters.elgato_lights]
base_url = "http://lamp.local"
poll_interval_secs = 86400

[adapters.den]
type = "roku_tv"
ip_address = "2001:DB8::30"
port = 9060

[adapters.spare]
type = "roku_tv"
enabled = false
"""


def _settings(text: str) -> Mapping[str, Any]:
    return config.parse(text, "default.toml", {}).adapters


def test_each_section_is_an_adapter_of_its_kind_under_its_name(session: DeviceSession, clock: VirtualClock) -> None:
    built = []
    for name, settings in _settings(HOME).items():
        adapter = kind_of(settings).build(settings, context_of(name, session, clock))
        assert isinstance(adapter, PollingAdapter)
        built.append((type(adapter), adapter.name, adapter.http.address, adapter.poll_interval))
    assert built == [
        (RokuAdapter, "roku_tv", "http://192.168.1.30:8060", 5),
        (ElgatoAdapter, "desk", "http://192.168.1.20:9123", 1),
        (ElgatoAdapter, "elgato_lights", "http://lamp.local", 86400),
        (RokuAdapter, "den", "http://[2001:db8::30]:9060", 5),
    ]


@each_row("text", ["", "[adapters]", "[adapters.roku_tv]\nenabled = false\n"])
def test_a_home_without_adapters_has_none(text: str) -> None:
    assert _settings(text) == {}
