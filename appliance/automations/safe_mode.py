"""Safe mode: no trigger fires, because the hub was started with `--safe`, or because the hub crashed repeatedly."""

from __future__ import annotations

import logging

from appliance.store.crashes import CrashCounter

SAFE_SECS = 600.0
"""After this number of seconds without a crash, automations run again."""

CRASHED_OFTEN = (
    "safe mode: the hub crashed three times within five minutes, so automations are paused for ten minutes; "
    "to end it earlier, reload the automations "
    "(POST /automations/reload, SIGHUP, or the button Lua files under Automations on the page)"
)

STARTED_SAFE = "the hub was started with --safe, so automations do not run; restart it without --safe to run them"

log = logging.getLogger("hub")


class SafeMode:
    """`reason` is the reason why enabled automations do not run, or None. With `--safe`, this mode lasts until the
    hub stops. After crashes, `Automations` ends this mode after `SAFE_SECS`, or after a reload."""

    _crashes: CrashCounter

    def __init__(self, *, is_requested: bool = False) -> None:
        self.reason = STARTED_SAFE if is_requested else None

    @property
    def is_requested(self) -> bool:
        return self.reason == STARTED_SAFE

    @property
    def is_after_crashes(self) -> bool:
        return self.reason == CRASHED_OFTEN

    def begin_after_crashes(self, crashes: CrashCounter) -> None:
        """Begin the mode, unless the hub was started with `--safe`."""
        if self.reason is None:
            self.reason, self._crashes = CRASHED_OFTEN, crashes
            log.warning("%s", CRASHED_OFTEN)

    def end(self, because: str) -> None:
        """End a mode that began after crashes. The caller has activated the automations."""
        self.reason = None
        self._crashes.end_series()
        log.info("safe mode ended: %s", because)
