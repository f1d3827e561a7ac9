"""The topics of a hub that publishes its devices, and the encoding of ids in topics."""

from __future__ import annotations

import hashlib
import re

from msgspec import Struct

_ENCODED = str.maketrans({"%": "%25", "/": "%2F", "+": "%2B", "#": "%23"})
"""Characters that are percent-encoded in a topic level."""

MAX_LEVEL_CHARS = 200
"""Maximum length of a topic level. A longer level ends in digits of its SHA-256."""


def discovery_id(id_: str) -> str:
    """Encode an id as a discovery topic level of letters, digits, `_`, and `-`. Different ids have different levels.

    Any other character becomes its code between two `_`. An underscore that looks like the beginning of a code is
    also encoded.
    """
    level = re.sub(r"[^a-zA-Z0-9_-]|_(?=[0-9a-f]{2,}[^a-zA-Z0-9-])", lambda char: f"_{ord(char[0]):x}_", id_)
    if len(level) <= MAX_LEVEL_CHARS:
        return level
    return f"{level[: MAX_LEVEL_CHARS - 13]}_{hashlib.sha256(id_.encode()).hexdigest()[:12]}"


class HubTopics(Struct, frozen=True):
    """The topics of one hub, with ids in percent-encoding."""

    hub_id: str
    prefix: str

    @property
    def status(self) -> str:
        """Topic of the retained status, `online` or `offline`."""
        return f"lares/{self.hub_id}/status"

    @property
    def events(self) -> str:
        """Topic of all events, in the format of the event stream."""
        return f"lares/{self.hub_id}/events"

    @property
    def commands(self) -> tuple[str, ...]:
        """Topic filters for commands to the hub."""
        return tuple(f"lares/{self.hub_id}/{each}" for each in ("devices/+/set", "scenes/+/run", "automations/+/set"))

    @property
    def leftovers(self) -> tuple[str, ...]:
        """Topic filters for outdated messages of an earlier run."""
        states = (f"lares/{self.hub_id}/{each}/+/state" for each in ("devices", "automations"))
        return self.config("+"), *states

    def of(self, kind: str, id_: str, last: str) -> str:
        """Return a topic of a device, scene, or automation. `last` is the topic's last level, such as `state` or
        `set`."""
        return f"lares/{self.hub_id}/{kind}/{id_.translate(_ENCODED)}/{last}"

    def config(self, level: str) -> str:
        """Return the topic of a discovery payload. `level` is a result of `discovery_id`."""
        return f"{self.prefix}/device/lares_{self.hub_id}/{level}/config"

    def identifier(self, device_id: str) -> str:
        """Return the identifier for a device's discovery payload."""
        return f"lares_{self.hub_id}_{device_id}"
