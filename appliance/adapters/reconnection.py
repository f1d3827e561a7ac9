"""Keeps a connection open, and reconnects with back-off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn

from appliance.clock import Clock
from appliance.errors import AdapterFailed
from appliance.tasks import MAX_BACK_OFF_SECS, back_off


async def keep_open(
    clock: Clock,
    session: Callable[[], Awaitable[None]],
    on_end: Callable[[AdapterFailed | None, int], float | None],
    *,
    first_secs: float = 1.0,
    most_secs: float = MAX_BACK_OFF_SECS,
    is_stable: Callable[[], bool] | None = None,
) -> NoReturn:
    """Run one session after another until cancelled. Pauses grow from `first_secs` to `most_secs`.

    `session` connects and works until the connection ends. `session` may raise `AdapterFailed`. After each session,
    `on_end` gets the error and the number of consecutive unstable sessions, and may return another pause. A stable
    session resets that number. `is_stable`, if given, decides whether a session was stable. If `is_stable` is not
    given, a session is stable after `most_secs`.
    """
    failures = 0
    while True:
        began, error = clock.monotonic(), None
        try:
            await session()
        except AdapterFailed as failure:
            error = failure
        is_long = clock.monotonic() - began >= most_secs
        failures = 1 if (is_long if is_stable is None else is_stable()) else failures + 1
        pause = on_end(error, failures)
        # Before the pause, release the frames of the attempt, and any socket that a library left open.
        error = None
        await clock.sleep(back_off(failures, first_secs, most_secs) if pause is None else pause)
