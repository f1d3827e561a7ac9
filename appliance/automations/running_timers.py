"""Running timers: what is kept of each, in memory and on the card, and what a timer may be."""

from __future__ import annotations

from typing import Any

import orjson
from msgspec import Struct

from appliance.automations.alarms import TimerHandle
from appliance.errors import Invalid
from appliance.home.texts import strip_id
from appliance.home.values import Value, to_bytes
from appliance.tables.checks import is_number

MAX_SECS = 400 * 86_400
MAX_TIMER_PAYLOAD_BYTES = 16 << 10

MAX_MILLIS = 253_402_300_799_999
"""The end of the year 9999."""


class RunningTimer(Struct, eq=False):
    """A timer that is under way: `payload` as JSON, the times in milliseconds since 1970; `is_dated`: whether
    the clock was trusted then.

    `alarm` is None while it does not run: the clock is not trusted yet, or it is over and waits for no pause to end.
    `late_secs` is how long it was overdue when it went on. `unheard_since`: when it was over and no automation
    listened for it, in milliseconds since 1970.
    """

    name: str
    payload: bytes
    started_at: int
    due_at: int
    is_dated: bool
    alarm: TimerHandle | None = None
    late_secs: float | None = None
    unheard_since: int | None = None

    @staticmethod
    def of(name: str, raw: Any) -> RunningTimer | None:
        """The timer that `to_json` encoded; None for what is not of that form."""
        fields = raw if isinstance(raw, dict) else {}
        started_at, due_at = _millis(fields.get("started_at")), _millis(fields.get("due_at"))
        if started_at is None or due_at is None:
            return None
        timer = RunningTimer(
            name, to_bytes(fields.get("payload")), started_at, due_at, fields.get("is_dated") is not False
        )
        timer.unheard_since = _millis(fields.get("unheard_since"))
        return timer

    def to_json(self) -> dict[str, Any]:
        """The form in which it is stored."""
        times = {"started_at": self.started_at, "due_at": self.due_at, "is_dated": self.is_dated}
        awaiting = {} if self.unheard_since is None else {"unheard_since": self.unheard_since}
        return {**times, **awaiting, "payload": self.load_payload()}

    def load_payload(self) -> Value:
        """The payload as JSON data; None where the timer has none."""
        return orjson.loads(self.payload)

    @property
    def whole_secs(self) -> float:
        """How long it takes from its start to its end."""
        return (self.due_at - self.started_at) / 1000


def _millis(raw: Value) -> int | None:
    return int(raw) if is_number(raw) and 0 <= raw <= MAX_MILLIS else None


def check_timer(name: str, secs: float, payload: Value) -> str:
    """The name without white space around it; `Invalid` where name, seconds or payload are not allowed."""
    name = strip_id(name)
    if not is_number(secs) or not 0 <= secs <= MAX_SECS:
        raise Invalid(f"timer '{name}': must take 0 to {MAX_SECS} seconds (400 days), not {secs!r}")
    try:
        size = len(orjson.dumps(payload))
    except (orjson.JSONEncodeError, RecursionError):
        raise Invalid(f"timer '{name}': the payload is no JSON") from None
    if size > MAX_TIMER_PAYLOAD_BYTES:
        raise Invalid(
            f"timer '{name}': the payload takes {size} bytes as JSON; {MAX_TIMER_PAYLOAD_BYTES} are allowed"
        )
    return name
