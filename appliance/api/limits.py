"""The limits of the API."""

from __future__ import annotations

from msgspec import Struct

from appliance.settings import Api, RateLimit
from appliance.tables.addresses import Network

MAX_SMALL_BODY_BYTES = 64 << 10
"""Maximum size of a body, except on routes for files."""

MAX_FILE_BODY_BYTES = 1 << 20
"""Maximum size of a body that contains a recording or a file's text. The characters of the text may be escaped."""

MAX_HOOK_BYTES = 16 << 10
"""Maximum size of a hook's body."""

MAX_PREFERENCES_BYTES = 16 << 10
"""Maximum size of a key's preferences as JSON without blanks."""


_DEFAULTS = Api()


class ApiLimits(Struct, frozen=True, kw_only=True):
    """The configurable limits of the API, as counts, bytes, and seconds.

    - `rate`: the limit of writes per key; None if writes are unlimited.
    - `origins`: the web origins that CORS allows; None if CORS is off.
    - `trusted_proxies`: requests from these proxies are counted for the client address in the proxy's headers.
    - `half_closed_secs`: the time limit for a response to a client that has closed its sending side.
    """

    connections: int = _DEFAULTS.max_connections
    connections_per_peer: int = _DEFAULTS.max_connections_per_peer
    body_bytes: int = _DEFAULTS.max_body_bytes
    bodies_bytes: int = 8 << 20
    frames_bytes: int = 8 << 20
    unsent_bytes: int = 32 << 20
    head_bytes: int = 8192
    head_secs: float = 10.0
    body_secs: float = 30.0
    idle_secs: float = 60.0
    message_bytes: int = 64 * 1024
    ping_secs: float = 20.0
    stall_secs: float = 30.0
    stop_secs: float = 3.0
    half_closed_secs: float = 10.0
    abort_secs: float = 0.4
    rate: RateLimit | None = None
    origins: frozenset[str] | None = None
    trusted_proxies: tuple[Network, ...] = ()

    @staticmethod
    def of(api: Api) -> ApiLimits:
        return ApiLimits(
            connections=api.max_connections,
            connections_per_peer=api.max_connections_per_peer,
            trusted_proxies=api.trusted_proxies,
            body_bytes=api.max_body_bytes,
            rate=api.rate_limit if api.rate_limit.enabled else None,
            origins=frozenset(api.cors.allowed_origins) if api.cors.enabled else None,
        )
