"""The rate limit: a token bucket for each key."""

from __future__ import annotations

from appliance.clock import Clock
from appliance.errors import RateLimited
from appliance.settings import RateLimit

MAX_KEPT_BUCKETS = 256
"""Number of buckets above which full buckets are removed."""


class Buckets:
    """Allows each key a burst of `burst_size` writes, and `requests_per_second` on average. If `rate` is None, there
    is no limit.

    A bucket is stored as the time when it will be full again. Full buckets are not stored.
    """

    def __init__(self, rate: RateLimit | None, clock: Clock) -> None:
        self._clock = clock
        self._is_limited = rate is not None
        self._cost = 1 / rate.requests_per_second if rate is not None else 0.0
        self._capacity = self._cost * rate.burst_size if rate is not None else 0.0
        self._full_at: dict[str, float] = {}

    def take(self, key_id: str) -> None:
        """Count one write of the key. Raise `RateLimited` if the key's bucket is empty."""
        if not self._is_limited:
            return
        now = self._clock.monotonic()
        full_at = max(self._full_at.get(key_id, now), now) + self._cost
        if (wait := full_at - now - self._capacity) > _ROUNDING * self._cost:
            raise RateLimited(wait)
        self._full_at[key_id] = full_at
        if len(self._full_at) > MAX_KEPT_BUCKETS:
            self._full_at = {each: moment for each, moment in self._full_at.items() if moment > now}


_ROUNDING = 1e-3
"""The tolerance for rounding errors, as a fraction of one write."""
