"""The keys of each configuration section as frozen data, and the check of each key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from appliance.errors import Invalid
from appliance.home_locale import Locale
from appliance.tables.addresses import Address, Network, address, network, origin, write_url
from appliance.tables.checks import boolean, listed, matching, number_within, one_of, whole
from appliance.tables.fields import Fields, Settings, key, section

DEFAULT_ADDRESS = Address(host="127.0.0.1", port=3000)

MAX_MASTER_KEY_CHARS = 1024
"""Maximum length of the master key. Each request has room for a key of this length in its head."""


def check_master_key(value: Any) -> str:
    """Return the master key if it is valid. Error messages never contain the key."""
    if not isinstance(value, str) or re.fullmatch(r"[\x21-\x7e]+", value) is None:
        expected = "not be empty" if value == "" else "be a string of visible ASCII characters without spaces"
        raise Invalid(f"must {expected}")
    if len(value) > MAX_MASTER_KEY_CHARS:
        raise Invalid(
            f"must have at most {MAX_MASTER_KEY_CHARS} characters; `openssl rand -base64 32` makes a good key"
        )
    return value


def check_token(value: Any) -> str:
    """Return the token, with an optional scheme, if it is valid. Error messages never contain the token."""
    if not isinstance(value, str) or re.fullmatch(r"([A-Za-z]+ )?[\x21-\x7e]+", value) is None:
        raise Invalid('must be a token, or a scheme and a token like "Bearer …"')
    return value


_directory = matching(r"[^\0]+", 'a folder like "config/scenes"')
_target = matching(r"[a-z0-9_]+:[a-z0-9_]+", 'operations like "phone:send"')


class RateLimit(Settings, frozen=True, kw_only=True):
    """`[api.rate_limit]`: the rate limit per API key for requests that write."""

    enabled: bool = key(boolean, default=False)
    requests_per_second: float = key(number_within(0.001, 1_000_000), 100)
    burst_size: int = key(whole(1, 1_000_000), 20)


class CorsSettings(Settings, frozen=True, kw_only=True):
    """`[api.cors]`: the origins of other web pages whose scripts may use the API."""

    enabled: bool = key(boolean, default=False)
    allowed_origins: tuple[str, ...] = key(listed(origin), ())


MAX_PROXIES = 64
"""Maximum number of trusted networks."""


class Api(Settings, frozen=True, kw_only=True):
    """`[api]`."""

    bind_address: Address = key(address, DEFAULT_ADDRESS)
    max_body_bytes: int = key(whole(1024, 1 << 30), 1 << 20)
    max_connections: int = key(whole(1, 1 << 16), 1000)
    max_connections_per_peer: int = key(whole(1, 1 << 16), 600)
    trusted_proxies: tuple[Network, ...] = key(listed(network, MAX_PROXIES), ())
    rate_limit: RateLimit = section(RateLimit)
    cors: CorsSettings = section(CorsSettings)


class Auth(Settings, frozen=True, kw_only=True):
    """`[auth]`, or the master key from the environment. `source` and `line` are the key's origin; `line` is 0 if the
    source has no lines."""

    master_key: str | None = key(check_master_key, required=False, secret=True)
    source: str = ""
    line: int = 0


class DashboardSettings(Settings, frozen=True, kw_only=True):
    """`[dashboard]`."""

    enabled: bool = key(boolean, default=True)


class FilesSettings(Settings, frozen=True, kw_only=True):
    """`[files]`."""

    enabled: bool = key(boolean, default=True)


class Logging(Settings, frozen=True, kw_only=True):
    """`[logging]`."""

    level: str = key(one_of("debug", "info", "warning", "error"), "info")
    format: str = key(one_of("text", "json"), "text")


class Runtime(Settings, frozen=True, kw_only=True):
    """`[runtime]`."""

    event_bus_capacity: int = key(whole(1, 1 << 20), 1024)


class HistorySettings(Settings, frozen=True, kw_only=True):
    """`[history]`."""

    max_mb: int = key(whole(1, 256), 4)
    keep_days: int = key(whole(0, 3660), 30)
    card_kb_per_day: int = key(whole(16, 1 << 16), 1024)
    influx_url: str | None = key(write_url, required=False, secret=True)
    influx_token: str | None = key(check_token, required=False, secret=True)


class Notify(Settings, frozen=True, kw_only=True):
    """`[notify]`: the operations that `ctx:notify` calls, as `<section>:<operation>`."""

    targets: tuple[str, ...] = key(listed(_target), ())


class Persistence(Settings, frozen=True, kw_only=True):
    """`[persistence]`."""

    flush_secs: int = key(whole(1, 86_400), 300)


class LuaFolder(Settings, frozen=True, kw_only=True):
    """A section with a folder of Lua files. `directory` is the path as configured."""

    enabled: bool = key(boolean, default=True)
    directory: str
    watch: bool = key(boolean, default=False)


class ScenesSettings(LuaFolder, frozen=True, kw_only=True):
    """`[scenes]`."""

    directory: str = key(_directory, "config/scenes")


class AutomationRunner(Settings, frozen=True, kw_only=True):
    """`[automations.runner]`: settings for all executions, including scenes."""

    default_max_concurrent: int = key(whole(1, 1000), 8)
    backstop_timeout_secs: float = key(number_within(0.1, 604_800), 3600)
    brake_runs: int = key(whole(1, 1000), 10)
    brake_secs: float = key(number_within(0.1, 3600), 10)


class AutomationsSettings(LuaFolder, frozen=True, kw_only=True):
    """`[automations]`."""

    directory: str = key(_directory, "config/automations")
    runner: AutomationRunner = section(AutomationRunner)


class ScriptsSettings(LuaFolder, frozen=True, kw_only=True):
    """`[scripts]`. The limits apply to each execution of Lua."""

    directory: str = key(_directory, "config/scripts")
    max_memory_mb: int = key(whole(1, 1024), 16)
    max_cpu_secs: float = key(number_within(0.05, 3600), 5)
    max_cpu_total_secs: float = key(number_within(0.05, 86_400), 60)


class Sections(Settings, frozen=True, kw_only=True):
    """All configuration sections except adapters."""

    api: Api = section(Api)
    auth: Auth = section(Auth)
    dashboard: DashboardSettings = section(DashboardSettings)
    files: FilesSettings = section(FilesSettings)
    logging: Logging = section(Logging)
    runtime: Runtime = section(Runtime)
    locale: Locale = section(Locale)
    scenes: ScenesSettings = section(ScenesSettings)
    automations: AutomationsSettings = section(AutomationsSettings)
    scripts: ScriptsSettings = section(ScriptsSettings)
    history: HistorySettings = section(HistorySettings)
    notify: Notify = section(Notify)
    persistence: Persistence = section(Persistence)


def list_sections(of: type[Settings], name: str = "") -> dict[str, Fields]:
    """Return the keys of this section and its inner sections, by dotted section name."""
    found: dict[str, Fields] = {name: {key: each for key, each in of.FIELDS.items() if not each.is_section}}
    for inner, each in of.FIELDS.items():
        found |= list_sections(each.check, f"{name}.{inner}".lstrip(".")) if each.is_section else {}
    return found


SECTIONS: Mapping[str, Fields] = {name: keys for name, keys in list_sections(Sections).items() if name}
"""The keys of all sections, by dotted section name."""
