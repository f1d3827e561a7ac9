"""The configuration: each key, its description, and the errors. All errors of a file are reported together, with
their lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from ipaddress import ip_network
from keyword import iskeyword
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from appliance import config
from appliance.adapters.elgato_lights.kind import ElgatoLights
from appliance.adapters.kind import PolledUrl
from appliance.adapters.kinds import KINDS
from appliance.adapters.roku_tv.kind import RokuTv
from appliance.config import Config
from appliance.errors import ConfigFailed, Fault, Invalid
from appliance.settings import MAX_MASTER_KEY_CHARS, SECTIONS
from appliance.tables.addresses import Address, write_url
from tests.fakes.rows import each_row

MANUAL = (Path(__file__).parent.parent / "config" / "default.toml").read_text(encoding="utf-8")

STRONG = "a-key-that-is-long-enough"
LIGHT = '[adapters.elgato_lights]\nbase_url = "http://lamp:9123"\n'
TV = '[adapters.roku_tv]\nip_address = "192.168.1.30"\n'

BROKER = '[adapters.mqtt]\nhost = "broker.lan"\n'
STRIP = '[adapters.wled]\nbase_url = "http://192.168.1.40"\n'

MESSAGES = '[adapters.notify]\nservice = "ntfy"\ntopic = "change-this"\n'

KIND_NAMES = " or ".join([*KINDS, *config.list_lua_kinds(Path("home.toml"))])

NEEDED = {
    "adapters.elgato_lights": LIGHT.splitlines()[1],
    "adapters.mqtt": BROKER.splitlines()[1],
    "adapters.roku_tv": TV.splitlines()[1],
    "adapters.wled": STRIP.splitlines()[1],
    "influx_token": 'influx_url = "http://127.0.0.1:8086/write"',
    "latitude": "longitude = 13.4",
    "longitude": "latitude = 52.5",
}
"""Lines that are needed in addition to the tested line, by section and key."""

ALL_KEYS = [
    *[(section, key) for section, keys in SECTIONS.items() for key in keys],
    *[
        (f"adapters.{kind}", key)
        for kind, row in KINDS.items()
        if f"[adapters.{kind}]" in MANUAL or row.settings.FIELDS.keys() != PolledUrl.FIELDS.keys()
        for key in ("enabled", *row.settings.FIELDS)
    ],
    ("adapters", "watch"),
]


def parse(text: str, **environment: str) -> Config:
    return config.parse(text, "home.toml", environment)


def faults(text: str, **environment: str) -> list[str]:
    """Return the errors as users see them."""
    with pytest.raises(ConfigFailed) as failed:
        parse(text, **environment)
    assert failed.value.faults == sorted(failed.value.faults)
    assert str(failed.value) == "\n".join(map(str, failed.value.faults))
    return [str(fault) for fault in failed.value.faults]


def faults_of_file(file: Path) -> list[Fault]:
    with pytest.raises(ConfigFailed) as failed:
        config.load(file, {})
    return failed.value.faults


def in_section(section: str, line: str) -> str:
    """Return a valid text with this line in this section."""
    needed = NEEDED.get(section, NEEDED.get(line.split(maxsplit=1)[0], ""))
    return f"[{section}]\n{line}\n{'' if needed.split()[:1] == line.split()[:1] else needed}\n"


def value_of(settings: Config, section: str, key: str) -> Any:
    if (section, key) == ("adapters", "watch"):
        return settings.watch_adapters
    owner: Any = settings
    for step in section.split("."):
        owner = owner[step] if isinstance(owner, Mapping) else getattr(owner, step)
    return getattr(owner, f"{key}_" if iskeyword(key) else key)


class TestTheManual:
    def documented(self) -> dict[tuple[str, str], list[str]]:
        """Return each key in the manual, commented out or not, with the comment lines directly above it."""
        found, section, comment = dict[tuple[str, str], list[str]](), "", list[str]()
        for line in MANUAL.splitlines():
            if header := re.fullmatch(r"\[(.+)\]", line):
                section, comment = header[1], []
            elif key := re.fullmatch(r"(?:# )?([a-z_]+) = .+", line):
                found[section, key[1]] = comment
                comment = []
            else:
                comment = [*comment, line] if line.startswith("# ") else []
        return found

    def test_the_manual_has_exactly_the_existing_keys(self) -> None:
        assert sorted(self.documented()) == sorted(ALL_KEYS)

    def test_each_key_has_a_sentence_above_it(self) -> None:
        for key, lines in self.documented().items():
            words = " ".join(line.removeprefix("# ") for line in lines)
            assert re.match(r"[A-Z0-9\"].{15,}\.$", words), (key, words)

    def test_the_manual_explains_type_with_a_working_example(self) -> None:
        example = re.search(r"#     (\[adapters\.desk\]\n(?:#     .+\n)+)", MANUAL)
        assert example is not None
        settings = parse(example[1].replace("#     ", ""))
        assert settings.adapters == {"desk": ElgatoLights(base_url="http://192.168.1.21:9123", poll_interval_secs=5)}

    def test_the_manual_is_valid_listens_on_the_lan_has_no_key_and_enables_nothing(self) -> None:
        settings = parse(MANUAL)
        assert settings.api.bind_address == Address(host="0.0.0.0", port=3000)
        assert settings.auth.master_key is None
        assert settings.adapters == {}
        assert settings.warnings == ()

    def test_values_in_the_manual_are_the_defaults_unless_stated_otherwise(self) -> None:
        shown = parse(MANUAL.replace("enabled = false", "enabled = true"))
        left_out = parse(LIGHT + BROKER + TV + STRIP + MESSAGES + "[adapters.virtual]\n[adapters.matter]")
        for section, key in ALL_KEYS:
            if key in ("enabled", "base_url", "host", "ip_address", "master_key"):
                continue
            same = value_of(shown, section, key) == value_of(left_out, section, key)
            assert same == (key != "bind_address"), (section, key)

    def test_its_comments_about_different_defaults_are_true(self) -> None:
        assert "Without this key, the hub uses 127.0.0.1." in MANUAL
        assert parse("").api.bind_address == Address(host="127.0.0.1", port=3000)
        documented = [kind for kind in KINDS if f"[adapters.{kind}]" in MANUAL]
        assert MANUAL.count("(true by default)") == len(documented)
        assert set(parse(LIGHT + TV).adapters) == {"elgato_lights", "roku_tv"}
        needed = MANUAL.count("(required)") + MANUAL.count("is required.")
        assert needed == len(documented) - 2  # sections of matter and virtual have no required key
        assert faults("[adapters.elgato_lights]\n[adapters.roku_tv]") == [
            "home.toml:1: adapters.elgato_lights.base_url is missing",
            "home.toml:2: adapters.roku_tv.ip_address is missing",
        ]

    @each_row(
        ("section", "key", "low", "high"),
        [
            ("api", "max_body_bytes", 1024, 1073741824),
            ("api", "max_connections_per_peer", 1, 65536),
            ("api.rate_limit", "burst_size", 1, 1000000),
            ("automations.runner", "default_max_concurrent", 1, 1000),
            ("scripts", "max_memory_mb", 1, 1024),
            ("runtime", "event_bus_capacity", 1, 1048576),
            ("adapters.elgato_lights", "poll_interval_secs", 1, 86400),
            ("adapters.elgato_lights", "max_silence_secs", 1, 2592000),
            ("adapters.roku_tv", "poll_interval_secs", 1, 86400),
            ("adapters.roku_tv", "max_silence_secs", 1, 2592000),
            ("adapters.wled", "poll_interval_secs", 1, 86400),
            ("adapters.wled", "max_silence_secs", 1, 2592000),
        ],
    )
    def test_the_limits_in_its_comments_are_true(self, section: str, key: str, low: int, high: int) -> None:
        assert f"from {low} to {high}" in " ".join(self.documented()[section, key]).replace("# ", "")
        for sound in (low, low + 1, high - 1, high):
            assert value_of(parse(in_section(section, f"{key} = {sound}")), section, key) == sound
        for unsound in (low - 1, high + 1, -low, 10**30):
            assert len(faults(in_section(section, f"{key} = {unsound}"))) == 1


ACCEPTED: list[tuple[str, str, str, Any]] = [
    ("api", "bind_address", '"127.0.0.1:0"', Address(host="127.0.0.1", port=0)),
    ("api", "bind_address", '"0.0.0.0:65535"', Address(host="0.0.0.0", port=65535)),
    ("api", "bind_address", '"[::]:3000"', Address(host="::", port=3000)),
    ("api", "bind_address", '"[0:0:0:0:0:0:0:1]:80"', Address(host="::1", port=80)),
    ("api", "bind_address", '"[fe80::1%eth0]:80"', Address(host="fe80::1%eth0", port=80)),
    ("api", "bind_address", '"localhost:3000"', Address(host="localhost", port=3000)),
    ("api", "bind_address", '"hub.lan:3000"', Address(host="hub.lan", port=3000)),
    ("api", "max_body_bytes", "0x1000", 4096),
    ("auth", "master_key", f'"{STRONG}"', STRONG),
    ("auth", "master_key", "'!\"#~-_=+/of-sixteen'", '!"#~-_=+/of-sixteen'),
    *[("logging", "level", f'"{level}"', level) for level in ("debug", "info", "warning", "error")],
    ("logging", "format", '"text"', "text"),
    ("logging", "format", "'json'", "json"),
    ("runtime", "event_bus_capacity", "1_000", 1000),
    ("api.rate_limit", "requests_per_second", "0.5", 0.5),
    ("api.rate_limit", "requests_per_second", "100", 100.0),
    (
        "api.cors",
        "allowed_origins",
        '["http://panel", "https://[fe80::1]:8443"]',
        ("http://panel", "https://[fe80::1]:8443"),
    ),
    (
        "api",
        "trusted_proxies",
        '["127.0.0.1", "10.1.0.0/8", "::1"]',
        (ip_network("127.0.0.1"), ip_network("10.0.0.0/8"), ip_network("::1")),
    ),
    ("locale", "timezone", '"Pacific/Chatham"', ZoneInfo("Pacific/Chatham")),
    ("locale", "latitude", "-90", -90.0),
    ("locale", "longitude", "180.0", 180.0),
    ("scenes", "directory", '"/home/pi/scenes"', "/home/pi/scenes"),
    ("automations", "watch", "true", True),
    ("automations.runner", "backstop_timeout_secs", "0.5", 0.5),
    ("automations.runner", "brake_secs", "0.5", 0.5),
    ("scripts", "max_cpu_secs", "0.05", 0.05),
    ("scripts", "max_cpu_total_secs", "0.05", 0.05),
    ("adapters.elgato_lights", "base_url", '"http://192.168.1.20:9123/"', "http://192.168.1.20:9123"),
    (
        "adapters.elgato_lights",
        "base_url",
        '"https://lamp.local/behind/a/proxy//"',
        "https://lamp.local/behind/a/proxy",
    ),
    ("adapters.matter", "url", '"wss://[::1]/matter/ws"', "wss://[::1]/matter/ws"),
    ("adapters.elgato_lights", "base_url", '"http://[fe80::1]:9123"', "http://[fe80::1]:9123"),
    *(
        ("adapters.elgato_lights", "base_url", f'"http://{each}:1"', f"http://{each}:1")
        for each in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.7.7", "localhost")
    ),
    ("adapters.elgato_lights", "base_url", '"http://büro-lampe.local."', "http://büro-lampe.local."),
    ("adapters.elgato_lights", "base_url", '"http://lamp_2:1"', "http://lamp_2:1"),
    ("adapters.roku_tv", "ip_address", '"192.168.1.30"', "192.168.1.30"),
    ("adapters.roku_tv", "ip_address", '"fe80::0001"', "fe80::1"),
    ("adapters.roku_tv", "ip_address", '"tv.lan"', "tv.lan"),
    ("adapters.roku_tv", "ip_address", '"t"', "t"),
    ("adapters.roku_tv", "port", "1", 1),
    ("adapters.roku_tv", "port", "65535", 65535),
]
"""Each row: a section, a key, its text in the file, and the resulting value."""

WHOLE = [
    ("api", "max_body_bytes"),
    ("api", "max_connections"),
    ("api", "max_connections_per_peer"),
    ("api.rate_limit", "burst_size"),
    ("automations.runner", "default_max_concurrent"),
    ("scripts", "max_memory_mb"),
    ("runtime", "event_bus_capacity"),
    ("history", "max_mb"),
    ("history", "card_kb_per_day"),
    ("persistence", "flush_secs"),
    ("adapters.elgato_lights", "poll_interval_secs"),
    ("adapters.elgato_lights", "max_silence_secs"),
    ("adapters.mqtt", "port"),
    ("adapters.roku_tv", "poll_interval_secs"),
    ("adapters.roku_tv", "max_silence_secs"),
    ("adapters.wled", "poll_interval_secs"),
    ("adapters.wled", "max_silence_secs"),
    ("adapters.roku_tv", "port"),
]
"""Keys whose values are whole numbers."""


@pytest.mark.parametrize(
    "text",
    [
        '[history]\ninflux_url = "http://x/SECRET/write?p=SECRET#f"\ninflux_token = "SECRET\\n"',
        '[adapters.notify]\nservice = "telegram"\ntoken = 7777\nbody = ["SECRET"]',
        '[adapters.notify]\nurl = "http://x/SECRET#?t=SECRET"\nbody = 7777',
        '[adapters.wled]\nbase_url = "http://192.168.1.40/json?t=SECRET"',
        '[adapters.wled]\nbase_url = "http://u:SECRET@192.168.1.40"',
        "[history]\ninflux_url = http://x/?t=SECRET",
        "[history]\ninflux_token: SECRET",
        '[adapters.mqtt]\nhost = "mqtt://u:SECRET@broker.lan"\npassword = 7777',
    ],
)
def test_faults_contain_no_secrets(text: str) -> None:
    found = "\n".join(faults(text))
    assert "SECRET" not in found and "7777" not in found


UNSOUND: dict[str, list[str]] = {
    "influx_url": [
        *('""', '"localhost:8086"', '"ftp://x/write"', '"http://"', '"http://user:pass@x/write"', "5", "[]"),
        *(
            '"http://x/write#f"',
            '"http://x/a b"',
            '"http://x/write?precision=ms"',
            '"http://x/write?db=y&precision=s"',
        ),
    ],
    "influx_token": ['""', '"a b c"', '"ä"', "5", '"a\\nb"'],
    "keep_days": ["-1", "3661", "1.5", '"30"', "true", "[]"],
    "bind_address": [
        *('""', '"3000"', '":3000"', '"127.0.0.1"', '"127.0.0.1:"', '"127.0.0.1:65536"', '"127.0.0.1:123456"'),
        *('"127.0.0.1:-1"', '"127.0.0.1:３０００"', '"::1:3000"', '"[127.0.0.1]:3000"', '"[::1]"', '"[::g]:1"'),
        *('"[]:1"', '"*:3000"', '"256.0.0.1:80"', '"127.1:80"', '"a b:80"', '"a..b:80"', '"-:80"'),
        *('"http://127.0.0.1:3000"', f'"{"a" * 64}:80"', '"a\\u0000b:80"', '"127.0.0.1:3000\\n"'),
        *("3000", '["127.0.0.1:3000"]', "07:32:00"),
    ],
    "trusted_proxies": [
        '"127.0.0.1"',
        '["proxy.lan"]',
        '["127.0.0.1:80"]',
        '["10.0.0.0/33"]',
        '["10.0.0.0/-1"]',
        str(["127.0.0.1"] * 65),
        "[1]",
        '[""]',
    ],
    "master_key": [
        f'"{"k" * (MAX_MASTER_KEY_CHARS + 1)}"',
        *('""', '"two words of sixteen"', '"schlüssel-mit-umlaut"', '"a-key-with-a-tab\\tin-it"'),
        *("12345678901234567", "true"),
    ],
    "level": ['"INFO"', '"warn"', '"trace"', '""', "20", "true", '["info"]'],
    "format": ['"JSON"', '"xml"', "1", "{}"],
    "base_url": [
        *('""', '"http://"', '"http:///x"', '"192.168.1.20"', '"192.168.1.20:9123"', '"ftp://lamp"'),
        *('"http://lamp:0"', '"http://lamp:65536"', '"http://lamp:port"', '"http://[::1"', '"http://a b"'),
        *('"http://lamp/a b"', '"http://a..b"', '"http://user:secret@lamp"', '"http://user@lamp"'),
        *('"http://lamp?a=b"', '"http://lamp/#a"', f'"http://{"a" * 64}"', '"http://a\\u0000b"'),
        *('"http://lamp/\\u0007"', '"http://-"', "5", '["http://lamp"]', "true"),
        *('"http://0x7f.1"', '"http://0x7f000001"', '"http://127.1"', '"http://2130706433"', '"http://lamp.7."'),
        *(
            '"http://017700000001"',
            '"http://①②⑦.0.0.1"',
            '"http://127.0.0.①"',
            '"http:\\\\\\\\lamp"',
            '"http://@lamp"',
        ),
        *('"http://0.0.0.0:80"', '"http://[::]"', '"http://169.254.169.254"', '"http://[fd00:ec2::254]"'),
        *(
            '"http://[::ffff:169.254.169.254]"',
            '"http://224.0.0.1"',
            '"http://255.255.255.255"',
            '"http://[ff02::1]"',
        ),
        *('"http://lamp?"', '"http://lamp#"', '"http://[::1].x"', '"http://[::1]x"', '"http://[v1.a]"'),
        *('"http://lamp\\r\\nHost: x"', '"http://[::1%25lo"', '"http://lamp:1:2"', '"http:lamp"', '"//lamp"'),
    ],
    "ip_address": [
        *('""', '"192.168.1"', '"192.168.1.300"', '"192.168.1.30:8060"', '"http://192.168.1.30"', '"[fe80::1]"'),
        *('"a b"', '".tv"', '"tv..lan"', f'"{"tv." * 100}"', '"tv\\n"', "192.168", "1", "true", "[]"),
    ],
    "host": ['""', '"a b"', '"broker:1883"', '"mqtt://broker"', '"tv..lan"', "5", "true", "[]"],
    **{key: ['""', "5", "true", "[]"] for key in ("username", "password")},
    **{key: ['""', '"a\\u0000b"', "5", "true"] for key in ("password_file", "ca_file", "cert_file", "key_file")},
    **{key: ['"false"', "0", "1", "[]"] for key in ("tls", "tasmota", "publish", "include_config_entities")},
    "discovery_prefix": ['""', '"a/"', '"/a"', '"a+"', '"#"', '"a b"', '"$SYS"', '"a\\u0000b"', "5", "true", "[]"],
    "hub_id": ['""', '"Cellar"', '"a_b"', '"a/b"', '"a b"', f'"{"a" * 33}"', "5", "true", "[]"],
    "enabled": ['"false"', "0", "1", "[]", "{}"],
    "watch": ['"false"', "0", "1", "[]", "{}"],
    "directory": ['""', '"a\\u0000b"', "5", "true", '["config/scenes"]'],
    "timezone": ['""', '"Berlin"', '"europe/berlin"', '"../zone"', '"/etc/passwd"', '"Europe"', "1", "true", "[]"],
    "url": [
        *('""', '"127.0.0.1:5580"', '"http://127.0.0.1:5580/ws"', '"ws://"', '"ws://:5580/ws"', '"ws://h:0/ws"', "1"),
        *('"ws://u:p@h/ws"', '"ws://h/ws?a=1"', '"ws://h/ws#a"', '"ws://h /ws"', '"ws://h:99999/ws"', "true", "[]"),
    ],
    "latitude": ['"52.5"', "90.1", "-90.1", "true", "nan", "inf", "[]"],
    "longitude": ['"13.4"', "180.1", "-180.1", "true", "nan", "inf", "[]"],
    "requests_per_second": ['"5"', "0", "-1", "1e7", "true", "nan", "inf", "[]"],
    "targets": ['"phone:send"', '["phone"]', '["Phone:send"]', '["a:b:c"]', "[1]", "5"],
    "brake_runs": ['"5"', "0", "-1", "1001", "5.5", "true", "[]"],
    "brake_secs": ['"5"', "0", "-1", "3601", "true", "nan", "inf", "[]"],
    "backstop_timeout_secs": ['"5"', "0", "-1", "604801", "true", "nan", "inf", "[]"],
    "max_cpu_total_secs": ['"5"', "0", "-1", "86401"],
    "max_cpu_secs": ['"5"', "0", "-1", "3601", "true", "nan", "inf", "[]"],
    "allowed_origins": [
        *('"http://panel"', '["*"]', '["http://*"]', '["http://panel/"]', '["http://panel/a"]', '["panel"]'),
        *('["http://Panel"]', '["HTTP://panel"]', '["http://panel:80"]', '["https://panel:443"]', '["null"]'),
        *('["http://panel:0x1"]', '["http://u:p@panel"]', '["http://panel?a"]', '["ftp://panel"]', "[1]", "[[]]"),
        '["http://münchen"]',
    ],
}
"""Invalid values of a key, in the notation of the file."""

NOT_WHOLE = ["true", "5.0", '"5"', "[5]", "{}", "1979-05-27", "nan", "inf", "0", "-1", "9" * 400, "0x" + "f" * 5000]
TRIED_ELSEWHERE = ("adapters.notify", "adapters.virtual")
"""Keys that are tested in tests/adapters/test_notify.py and test_virtual.py."""

REFUSED = [
    (section, key, text)
    for section, key in ALL_KEYS
    if section not in TRIED_ELSEWHERE
    for text in UNSOUND.get(key, NOT_WHOLE)
]


BROKER_FAULTS = (
    ('password = "x"', "has a password but no username; add username"),
    ('username = "u"\npassword = "x"\npassword_file = "f"', "has both password and password_file; keep one of them"),
    ('tls = true\ncert_file = "c"', "needs both cert_file and key_file"),
    ('ca_file = "c"', "has certificate files; set tls = true to use them"),
)


def test_keys_of_a_broker_that_exclude_each_other_are_one_error() -> None:
    for lines, fault in BROKER_FAULTS:
        assert faults(BROKER + lines) == [f"home.toml:1: adapters.mqtt {fault}"]


def test_every_key_is_tested_with_invalid_values() -> None:
    tried_there = {each for each in ALL_KEYS if each[0] in TRIED_ELSEWHERE}
    assert {(section, key) for section, key in ALL_KEYS if key not in UNSOUND} - tried_there == set(WHOLE)


@each_row(("section", "key", "text", "meant"), ACCEPTED)
def test_a_valid_value_is_parsed(section: str, key: str, text: str, meant: Any) -> None:
    settings = parse(in_section(section, f"{key} = {text}"))
    assert repr(value_of(settings, section, key)) == repr(meant)
    assert settings.warnings == ()


def test_an_invalid_value_is_one_error_with_file_line_and_key() -> None:
    wrong = []
    for section, key, text in REFUSED:
        [fault, *more] = faults(in_section(section, f"{key} = {text}")) or [""]
        is_named = fault.startswith(f"home.toml:2: {section}.{key} must ")
        if more or not is_named or not fault.isprintable() or len(fault) >= 250:
            wrong.append((section, key, text, fault, *more))
    assert not wrong


@each_row(
    ("text", "fault"),
    [
        ("[api]\nmax_body_bytes = true", "must be a whole number from 1024 to 1073741824, not true"),
        ("[api]\nmax_body_bytes = 1e6", "must be a whole number from 1024 to 1073741824, not 1000000.0"),
        ("[api]\nmax_body_bytes = 1979-05-27", "must be a whole number from 1024 to 1073741824, not 1979-05-27"),
        ("[api]\nmax_body_bytes = {}", "must be a whole number from 1024 to 1073741824, not a section"),
        ("[logging]\nlevel = 'loud'", "must be one of debug, info, warning, error, not 'loud'"),
        ("[logging]\nlevel = ['info']", "must be one of debug, info, warning, error, not an array"),
        (
            "[api]\nbind_address = 'x'",
            'must be an address and a port like "127.0.0.1:3000" or "[::]:3000", not \'x\'',
        ),
        ("[adapters.roku_tv]\nenabled = 0\nip_address = 'tv'", "must be true or false, not 0"),
        (
            "[adapters.wled]\nbase_url = 'http://0.0.0.0:80'",
            "; 0.0.0.0 is reserved; for this machine, use 127.0.0.1",
        ),
        ("[adapters.wled]\nbase_url = 'http://[::]'", "; :: is reserved; for this machine, use 127.0.0.1"),
        ("[adapters.wled]\nbase_url = 'http://224.0.0.1'", "; 224.0.0.1 is reserved"),
    ],
)
def test_an_error_has_the_expected_and_the_actual_value(text: str, fault: str) -> None:
    [found] = faults(text)
    assert found.endswith(fault)


@each_row(
    ("text", "fault"),
    [
        ("[apl]", "1: apl is not a key of Lares; did you mean api?"),
        (
            "[API]",
            "1: API is not a key of Lares; use one of api, auth, dashboard, files, logging, runtime, locale, scenes, "
            "automations, scripts, history, notify, persistence, adapters",
        ),
        ("\n[log]", "2: log is not a key of Lares; did you mean logging?"),
        ("[adapter.roku_tv]", "1: adapter is not a key of Lares; did you mean adapters?"),
        ("[api]\nbind_adress = 'x'", "2: api.bind_adress is not a key of Lares; did you mean api.bind_address?"),
        ("bind_address = 'x'", "1: bind_address is not a key of Lares; did you mean api.bind_address?"),
        ("[api]\nmaster_key = 'x'", "2: api.master_key is not a key of Lares; did you mean auth.master_key?"),
        ("[auth]\nkey = 'x'", "2: auth.key is not a key of Lares; did you mean auth.master_key?"),
        ("[auth]\nzzz = 'x'", "2: auth.zzz is not a key of Lares; use one of auth.master_key"),
        (
            f"{TV}address = 'x'",
            "3: adapters.roku_tv.address is not a key of Lares; did you mean adapters.roku_tv.ip_address?",
        ),
        (
            f"{LIGHT}poll_interval = 3",
            "3: adapters.elgato_lights.poll_interval is not a key of Lares; "
            "did you mean adapters.elgato_lights.poll_interval_secs?",
        ),
        (
            f"{LIGHT}port = 3",
            "3: adapters.elgato_lights.port is not a key of Lares; use one of adapters.elgato_lights.type, "
            "adapters.elgato_lights.enabled, adapters.elgato_lights.base_url, "
            "adapters.elgato_lights.poll_interval_secs, adapters.elgato_lights.max_silence_secs",
        ),
        (
            "[api.tls]\ncert = 'x'",
            "1: api.tls is not a key of Lares; use one of api.bind_address, api.max_body_bytes, "
            "api.max_connections, api.max_connections_per_peer, api.trusted_proxies, api.rate_limit, api.cors",
        ),
        ("api.level = 'info'", "1: api.level is not a key of Lares; did you mean logging.level?"),
        (
            "[adapters.elgato_light]",
            f"1: adapters.elgato_light needs a type: {KIND_NAMES}; or did you mean adapters.elgato_lights?",
        ),
        ("[adapters.desk]\nenabled = false", f"1: adapters.desk needs a type: {KIND_NAMES}"),
        (
            "[adapters.desk]\nenabled = false\ntype = 'elgato'",
            f"3: adapters.desk.type must be {KIND_NAMES}, not 'elgato'; did you mean elgato_lights?",
        ),
        ("[adapters.desk]\ntype = 5", f"2: adapters.desk.type must be {KIND_NAMES}, not 5"),
        (
            "[adapters.Desk]\ntype = 'roku_tv'\nip_address = 'tv'",
            "1: adapters.Desk is not a valid adapter name; use only a-z, 0-9, and _",
        ),
        (
            "[adapters.'my desk']\ntype = 'roku_tv'\nip_address = 'tv'",
            "1: adapters.'my desk' is not a valid adapter name; use only a-z, 0-9, and _",
        ),
        (
            "[adapters.'']\ntype = 'roku_tv'\nip_address = 'tv'",
            "1: adapters.'' is not a valid adapter name; use only a-z, 0-9, and _",
        ),
        (
            f"[adapters.{'a' * 129}]\ntype = 'roku_tv'\nip_address = 'tv'",
            f"1: adapters.'{'a' * 58}… must have at most 128 characters, not 129",
        ),
    ],
)
def test_an_unknown_key_is_reported_with_the_nearest_one(text: str, fault: str) -> None:
    assert faults(text) == [f"home.toml:{fault}"]


def test_the_longest_name_of_a_section_is_valid() -> None:
    name = "a" * 128
    assert parse(f"[adapters.{name}]\ntype = 'roku_tv'\nip_address = 'tv'").adapter_names == {name}


def test_both_coordinates_are_required_together() -> None:
    assert faults("[locale]\nlatitude = 52.5") == ["home.toml:2: locale.latitude also needs locale.longitude"]
    assert faults('[history]\ninflux_token = "x"') == [
        "home.toml:2: history.influx_token also needs history.influx_url"
    ]
    assert faults("[locale]\nlongitude = 13.4") == ["home.toml:2: locale.longitude also needs locale.latitude"]


@each_row("text", ["5", "true", '"x"', "[]", "[{}]", "1979-05-27T07:32:00Z", "nan"])
def test_a_value_in_place_of_a_section_is_one_error(text: str) -> None:
    found = {section: faults(f"# first\n{section} = {text}") for section in SECTIONS}
    sentence = "home.toml:2: {0} must be a section, [{0}], not "
    assert not [
        each for each in found.items() if len(each[1]) != 1 or not each[1][0].startswith(sentence.format(each[0]))
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["5", "true", '"x"', "[]", "[{}]", "1979-05-27T07:32:00Z"])
def test_an_adapter_that_is_not_a_section_is_one_error(kind: str, text: str) -> None:
    [fault] = faults(f"[adapters]\n{kind} = {text}")
    assert fault.startswith(f"home.toml:2: adapters.{kind} must be a section, [adapters.{kind}], not ")


@each_row("text", ["adapters = 5", "adapters = [1]", "[[adapters]]", "adapters = 'x'"])
def test_values_in_place_of_adapters_are_one_error(text: str) -> None:
    assert faults(text) == ["home.toml:1: adapters must contain sections like [adapters.elgato_lights]"]


def test_all_errors_are_reported_at_once_in_the_order_of_their_lines() -> None:
    text = """\
[api]
bind_address = "0.0.0.0:99999"
max_body_bytes = 5
tls = true
[auth]
master_key = "a b"
[logging]
level = "all"
format = 1
[runtime]
event_bus_capacity = 0
[adapters.elgato_lights]
poll_interval_secs = 0.5
[adapters.roku_tv]
ip_address = 5
port = 0
[adapters.tv_upstairs]
type = "roku"
[watch]
"""
    places = [re.match(r"home\.toml:(\d+): (\S+)", fault) for fault in faults(text)]
    assert [(int(place[1]), place[2]) for place in places if place is not None] == [
        (2, "api.bind_address"),
        (3, "api.max_body_bytes"),
        (4, "api.tls"),
        (6, "auth.master_key"),
        (8, "logging.level"),
        (9, "logging.format"),
        (11, "runtime.event_bus_capacity"),
        (12, "adapters.elgato_lights.base_url"),
        (13, "adapters.elgato_lights.poll_interval_secs"),
        (15, "adapters.roku_tv.ip_address"),
        (16, "adapters.roku_tv.port"),
        (18, "adapters.tv_upstairs.type"),
        (19, "watch"),
    ]


def test_errors_of_the_file_and_of_the_environments_key_are_reported_together() -> None:
    text = '[api]\nbind_address = "0.0.0.0:3000"\nmax_body_bytes = 1'
    assert faults(text, LARES_MASTER_KEY="short") == [
        "LARES_MASTER_KEY: the master key is shorter than 16 characters; create one with `openssl rand -base64 32`",
        "home.toml:3: api.max_body_bytes must be a whole number from 1024 to 1073741824, not 1",
    ]


class TestLines:
    """The line of an error is the line of its key, or of the nearest section around the key."""

    @each_row(
        ("text", "line"),
        [
            ("[logging]\nlevel = 1", 2),
            ("[logging]\n\n# level = 'info'\n  level=1", 4),
            ("logging.level = 1", 1),
            ("\nlogging . level = 1", 2),
            ("[ logging ] # how loud\nlevel = 1", 2),
            ("[logging]\n'level' = 1", 2),
            ('["logging"]\n"level" = 1', 2),
            ("\nlogging = {level = 1}", 2),
            ("\nlogging = { format = 'text', level = 1 }", 2),
            ("[logging]\r\nformat = 'text'\r\nlevel = 1\r\n", 3),
            ("[logging]\nformat = 'text' # a \u2028 and a \x85 are no ends of lines\nlevel = 1", 3),
            ('[logging]\n"\\u006cevel" = 1', 1),
            ('["\\u006cogging"]\nlevel = 1', 0),
        ],
    )
    def test_the_line_is_found_in_every_spelling_of_a_key(self, text: str, line: int) -> None:
        place = f"home.toml:{line}" if line else "home.toml"
        assert faults(text) == [f"{place}: logging.level must be one of debug, info, warning, error, not 1"]

    def test_the_line_of_a_missing_key_is_its_sections(self) -> None:
        assert faults("[logging]\n[adapters.desk]\ntype = 'roku_tv'") == [
            "home.toml:2: adapters.desk.ip_address is missing"
        ]


class TestAdapters:
    def test_only_a_section_named_after_its_kind_needs_no_type(self) -> None:
        settings = parse(f'{LIGHT}{TV}port = 1\n[adapters.desk_2]\ntype = "elgato_lights"\nbase_url = "http://desk"')
        assert settings.adapters == {
            "elgato_lights": ElgatoLights(base_url="http://lamp:9123", poll_interval_secs=5),
            "roku_tv": RokuTv(ip_address="192.168.1.30", port=1, poll_interval_secs=5),
            "desk_2": ElgatoLights(base_url="http://desk", poll_interval_secs=5),
        }

    @each_row("kind", KINDS)
    def test_a_disabled_section_needs_no_other_key_and_is_ignored(self, kind: str) -> None:
        assert parse(f"[adapters.{kind}]\nenabled = false").adapters == {}

    def test_a_disabled_section_is_checked_too(self) -> None:
        assert len(faults("[adapters.roku_tv]\nenabled = false\nport = 0\nipaddress = 1")) == 2

    def test_the_type_can_repeat_the_name(self) -> None:
        assert set(parse(f'{TV}type = "roku_tv"').adapters) == {"roku_tv"}


class TestHostileFiles:
    """Every file is a configuration, or has a list of errors."""

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("[api", 1),
            ("\n\nbind_address", 3),
            ("[api]\nbind_address = ", 2),
            ("[api]\nbind_address = 'a", 2),
            ("[api]\n[api]", 2),
            ("a = 1\na = 2", 2),
            ("[api]\nx = 1\nx.y = 2", 3),
            ("a = 1979-13-45", 1),
            ("a = 01", 1),
            ("\x00", 1),
            ("a = '\x07'", 1),
            ("api = {a = 1, a = 2}", 1),
            ("\n}", 2),
            ("<html>", 1),
            ('{"api": {}}', 1),
        ],
        ids=repr,
    )
    def test_invalid_toml_is_one_error_with_its_line(self, text: str, line: int) -> None:
        [fault] = faults(text)
        assert fault.startswith(f"home.toml:{line}: is not valid TOML: ")

    @each_row("text", ["[api]\n[api]", "[auth]\nmaster_key = 'a'\nmaster_key = 'b'"])
    def test_repeated_keys_are_named(self, text: str) -> None:
        [fault] = faults(text)
        assert re.search(r"is not valid TOML: (section \[api\]|master_key) already exists on line [12]; ", fault)

    @pytest.mark.parametrize(
        "text",
        ["a = " + "[" * 3000, "a = " + "{a=" * 3000, "a." * 3000 + "a = 1", "a = " + "9" * 5000],
        ids=["arrays", "tables", "dots", "digits"],
    )
    def test_values_that_are_too_deep_or_too_long_are_one_error(self, text: str) -> None:
        [fault] = faults(text)
        assert fault.startswith("home.toml: cannot be read as TOML: ")
        assert len(fault) < 200

    @pytest.mark.parametrize(
        "text",
        ["", "\n\n", "# nothing", "\r\n", "[api]", "[adapters]", "adapters = {}", "\n" * 10_000, " " * 100_000],
        ids=lambda text: repr(text)[:20],
    )
    def test_an_empty_file_is_the_defaults(self, text: str) -> None:
        assert parse(text) == parse("")

    @pytest.mark.parametrize(
        "text",
        [
            *('"a\\nb" = 1', '"\\u001b[31m" = 1', '[api]\n"\\u202e" = 1', '[adapters."\\n"]', '"" = 1'),
            f'"{"x" * 9999}" = 1',
        ],
        ids=lambda text: text[:20],
    )
    def test_a_strange_key_is_shown_on_one_line_that_is_not_too_long(self, text: str) -> None:
        for fault in faults(text):
            assert fault.isprintable() and len(fault) < 300

    def test_a_missing_configured_folder_is_a_warning(self, tmp_path: Path) -> None:
        (tmp_path / "config").mkdir()
        file = tmp_path / "config" / "default.toml"
        file.write_text("[scenes]\ndirectory = 'config/scens'\n[scripts]\ndirectory = 'gone'\nenabled = false\n")
        warning = f"{file}:2: scenes.directory: the folder {tmp_path}/config/scens does not exist"
        assert config.load(file, {}).warnings == (warning,)

    def test_a_file_with_a_byte_order_mark_is_read(self, tmp_path: Path) -> None:
        file = tmp_path / "default.toml"
        file.write_bytes(b"\xef\xbb\xbf[logging]\nlevel = 'debug'\n")
        assert config.load(file, {}).logging.level == "debug"

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            (b"\xff\xfe[\x00a\x00]\x00", 1),
            (b"[api]\n# caf\xe9\n", 2),
            (b"\n\n\n\xed\xa0\x80", 4),
            (b"\xef\xbb\xbf\n\xff", 2),
            (b"[api]\nx = '\xc3", 2),
            (bytes(range(256)), 2),
        ],
        ids=repr,
    )
    def test_invalid_utf_8_is_one_error_with_its_line(self, tmp_path: Path, content: bytes, line: int) -> None:
        file = tmp_path / "default.toml"
        file.write_bytes(content)
        assert faults_of_file(file) == [Fault(str(file), line, "is not UTF-8 text")]

    def test_a_folder_or_a_missing_file_is_one_error(self, tmp_path: Path) -> None:
        missing = tmp_path / "default.toml"
        assert faults_of_file(tmp_path) == [Fault(str(tmp_path), 0, "cannot be read: Is a directory")]
        assert faults_of_file(missing) == [Fault(str(missing), 0, "cannot be read: No such file or directory")]
        assert faults_of_file(missing / "x") == [
            Fault(str(missing / "x"), 0, "cannot be read: No such file or directory")
        ]


class TestTheMasterKey:
    """The source of the master key, and its minimum strength."""

    LAN = '[api]\nbind_address = "0.0.0.0:3000"\n'

    def test_environment_before_file_before_configuration(self, tmp_path: Path) -> None:
        named, text = tmp_path / "key", f'[auth]\nmaster_key = "{STRONG}-3"'
        named.write_text(f" \n{STRONG}-2\r\n")
        sources = {"LARES_MASTER_KEY": f"{STRONG}-1", "LARES_MASTER_KEY_FILE": str(named)}
        chosen = []
        while True:
            auth = parse(text, **sources).auth
            chosen.append((auth.master_key, auth.source))
            if not sources:
                break
            del sources[next(iter(sources))]
        assert chosen == [
            (f"{STRONG}-1", "LARES_MASTER_KEY"),
            (f"{STRONG}-2", str(named)),
            (f"{STRONG}-3", "home.toml"),
        ]

    @each_row("variable", ["LARES_MASTER_KEY", "LARES_MASTER_KEY_FILE"])
    def test_an_empty_variable_is_ignored(self, variable: str) -> None:
        assert parse("", **{variable: ""}).auth.master_key is None

    def test_the_file_is_not_read_when_the_variable_holds_a_key(self) -> None:
        assert parse("", LARES_MASTER_KEY=STRONG, LARES_MASTER_KEY_FILE="/nowhere").auth.master_key == STRONG

    def test_an_unreadable_key_file_is_an_error(self, tmp_path: Path) -> None:
        why = "cannot be read (LARES_MASTER_KEY_FILE names it)"
        missing = str(tmp_path / "key")
        assert faults("", LARES_MASTER_KEY_FILE=missing) == [f"{missing}: {why}: No such file or directory"]
        assert faults("", LARES_MASTER_KEY_FILE=str(tmp_path)) == [f"{tmp_path}: {why}: Is a directory"]
        (tmp_path / "key").symlink_to("/dev/zero")
        assert faults("", LARES_MASTER_KEY_FILE=missing) == [f"{missing}: {why}: it is not a regular file"]

    @pytest.mark.parametrize("content", [b"", b" \n", b"two words and more", b"\xff\xfe" * 20, b"tab\tbed" * 5])
    def test_a_key_file_without_a_key_is_an_error(self, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "key"
        file.write_bytes(content)
        [fault] = faults("", LARES_MASTER_KEY_FILE=str(file))
        assert fault.startswith(f"{file}: the master key must ")

    @each_row("key", ["short", "x" * 15, "change-me", "change-me-please-now", "Change-Me-Or-Be-Sorry"])
    def test_an_easily_guessed_key_is_refused_if_others_can_reach_the_hub(self, key: str) -> None:
        text = f'{self.LAN}[auth]\nmaster_key = "{key}"'
        [fault] = faults(text)
        assert fault.startswith("home.toml:4: auth.master_key is ")
        assert fault.endswith("create one with `openssl rand -base64 32`")
        assert len(faults(self.LAN, LARES_MASTER_KEY=key)) == 1

    @each_row("address", ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "localhost:1"])
    def test_an_easily_guessed_key_is_a_warning_on_loopback(self, address: str) -> None:
        settings = parse(f'[auth]\nmaster_key = "short"\n[api]\nbind_address = "{address}"')
        assert settings.auth.master_key == "short"
        assert settings.warnings == (
            "home.toml:2: auth.master_key is shorter than 16 characters; create one with `openssl rand -base64 32`",
        )

    @each_row(
        ("key", "what"),
        [
            ("x" * 15, "is shorter than 16 characters"),
            ("changeme-changeme", "is a placeholder"),
            ("change_me_12345678", "is a placeholder"),
        ],
    )
    def test_the_warning_names_the_weakness(self, key: str, what: str) -> None:
        [warning] = parse("", LARES_MASTER_KEY=key).warnings
        assert warning.startswith(f"LARES_MASTER_KEY: the master key {what}; ")

    @each_row("key", ["x" * 16, "exchange-me-please", STRONG])
    def test_a_long_key_is_accepted_everywhere(self, key: str) -> None:
        assert parse(self.LAN, LARES_MASTER_KEY=key).warnings == ()

    def test_a_weak_key_in_the_file_does_not_matter_if_another_one_is_used(self) -> None:
        text = f'{self.LAN}[auth]\nmaster_key = "short"'
        assert parse(text, LARES_MASTER_KEY=STRONG).warnings == ()

    @each_row("text", ['"secret word"', '"secret-wörd"', "51423", '["secret"]', '"secret"', '"change-me-secret-key"'])
    def test_no_error_contains_the_master_key(self, text: str) -> None:
        for fault in faults(f"{self.LAN}[auth]\nmaster_key = {text}"):
            assert "secret" not in fault and "51423" not in fault
        [fault] = faults("", LARES_MASTER_KEY="secret word")
        assert "secret" not in fault


@each_row(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.255.255.255", True),
        ("::1", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.2", False),
        ("127.evil.example", False),
        ("localhost.example", False),
        ("hub.lan", False),
    ],
)
def test_loopback_addresses_are_recognized(host: str, is_loopback: bool) -> None:
    assert Address(host=host, port=1).is_loopback == is_loopback


WORDS = st.sampled_from(sorted({word for section, key in ALL_KEYS for word in (*section.split("."), key)} | {"type"}))
NAMES = WORDS | st.text(max_size=5)
STRINGS = st.text(max_size=12) | st.sampled_from(["127.0.0.1:3000", "http://lamp:1", "roku_tv", "info"])
SCALARS = st.booleans() | st.integers() | st.floats() | STRINGS | st.dates()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
SECTION = st.dictionaries(WORDS, VALUES | st.dictionaries(WORDS, VALUES, max_size=4), max_size=4)
DOCUMENTS = st.dictionaries(NAMES, VALUES | SECTION, max_size=5)


def toml_of(value: Any) -> str:
    """Convert a value to TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml_of(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_of, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value)
    return str(value).lower() if not isinstance(value, date) else value.isoformat()


def judge(text: str) -> None:
    """Check that a text is a configuration, or that each error is one line that begins with the file's name."""
    try:
        settings = parse(text)
    except ConfigFailed as failed:
        assert failed.faults
        for fault in failed.faults:
            assert str(fault).startswith("home.toml")
            assert str(fault).isprintable(), fault
            assert 0 <= fault.line <= text.count("\n") + 1
    else:
        assert settings.file == "home.toml"


@given(document=DOCUMENTS)
def test_every_toml_document_is_a_configuration_or_has_errors(document: dict[str, Any]) -> None:
    text = "".join(f"{json.dumps(key)} = {toml_of(value)}\n" for key, value in document.items())
    judge(text)
    if not any(character in text for character in ("\\ud", "\x7f")):
        tomli.loads(text)


@given(lines=st.lists(st.sampled_from(MANUAL.splitlines()) | st.text(max_size=20), max_size=30))
def test_every_sequence_of_lines_is_a_configuration_or_has_errors(lines: list[str]) -> None:
    judge("\n".join(lines))


@given(content=st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
def test_any_file_is_a_configuration_or_has_errors(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "hostile.toml"
    file.write_bytes(content)
    try:
        config.load(file, {})
    except ConfigFailed as failed:
        assert all(fault.file == str(file) for fault in failed.faults)


def test_a_weak_key_is_reported_next_to_an_invalid_address() -> None:
    with pytest.raises(ConfigFailed) as failed:
        config.parse('[api]\nbind_address = "0.0.0.0"\n[auth]\nmaster_key = "short"\n', "home.toml", {})
    assert [fault.line for fault in failed.value.faults] == [2, 4]


def test_an_invalid_url_of_influx_is_not_shown() -> None:
    with pytest.raises(Invalid) as error:
        write_url("http://a/?p=secret#x")
    assert "secret" not in str(error.value)
