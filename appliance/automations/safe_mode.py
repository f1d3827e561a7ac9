"""Safe mode: no automation runs, because `--safe` was given, or because the hub crashed several times."""

from __future__ import annotations

import logging
from collections.abc import Callable

from appliance.errors import Fault
from appliance.lua.reload import LoadWork
from appliance.settings import LuaFolder
from appliance.store.crashes import CrashCounter

log = logging.getLogger("hub")

BY_ITSELF = (
    "safe mode: the hub crashed three times within five minutes, so that no automation runs; "
    "a reload of the automations ends it (POST /automations/reload, SIGHUP, or the page's Automations, Lua files)"
)
"""Why no automation runs after a series of crashes."""

ASKED = "the hub was started with --safe, so that no automation runs; start it without to have them"
"""What a reload of the automations answers then."""


class SafeMode:
    """`because` is the sentence that says why no automation runs, None where they do."""

    def __init__(self, *, is_asked: bool) -> None:
        self.because: str | None = ASKED if is_asked else None
        self._is_asked = is_asked

    @property
    def is_by_itself(self) -> bool:
        """Whether crashes, not `--safe`, began it."""
        return self.because == BY_ITSELF

    def refusal_of(self, section: LuaFolder) -> Fault | None:
        """What a reload of the automations answers, where `--safe` was given; None else."""
        return Fault(section.directory, 0, ASKED) if self._is_asked else None

    async def note_start(self, crashes: CrashCounter, *, has_crashed: bool, is_enabled: bool) -> None:
        """Note that the hub runs, and begin safe mode where it has automations and crashed several times lately."""
        if await crashes.note_start(has_crashed=has_crashed) and is_enabled:
            self.because = BY_ITSELF
            log.warning("%s", BY_ITSELF)

    def ended_by(self, reload: LoadWork, crashes: CrashCounter, release: Callable[[], None]) -> LoadWork:
        """The reload of the automations: where it succeeds, safe mode that came by itself is over."""

        async def work() -> tuple[int, list[Fault]]:
            count, faults = await reload()
            if self.is_by_itself and not faults:
                self.because = None
                crashes.end_series()
                release()
                log.info("safe mode is over: the automations were reloaded")
            return count, faults

        return work
