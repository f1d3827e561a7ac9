"""The topics of other hubs' states, and the versions in these states."""

from __future__ import annotations

import re
from contextlib import suppress

from appliance.adapters.mqtt.messages import parse_payload
from appliance.errors import Invalid

HUB_STATE = re.compile(r"lares/[^/]+/devices/[^/]+/state")

HUB_STATUS = re.compile(r"(lares/[^/]+/)status")

MAX_BOOT = 2**53 - 1
"""Maximum `boot` of a version. States with a higher `boot` have no version, so that a publishing hub can always
publish a state that no other hub ignores."""


def parse_version(text: str) -> tuple[int, int] | None:
    """Return `boot` and `seq` of a state, or None if it has no version."""
    with suppress(Invalid, TypeError, LookupError):
        state = parse_payload(text)
        boot, seq = state["boot"], state["seq"]
        if isinstance(boot, int) and isinstance(seq, int) and boot <= MAX_BOOT:
            return boot, seq
    return None
