"""The topics of a hub that publishes, and what stands in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

_ESCAPED = {"%": "%25", "/": "%2F", "+": "%2B", "#": "%23"}


def encoded(id_: str) -> str:
    """An id as a level of a topic: `/`, `+`, `#` and `%` percent-encoded."""
    return "".join(_ESCAPED.get(sign, sign) for sign in id_)


def decoded(level: str) -> str:
    """The id that a level of a topic stands for."""
    return unquote(level)


def discovery_id(id_: str) -> str:
    """An id as a level of a discovery topic, which knows only letters, digits, `_` and `-`; no two ids share one."""
    return re.sub(r"[^a-zA-Z0-9-]", lambda sign: "_" if sign[0] == "_" else f"_{ord(sign[0]):x}_", id_)[:200]


@dataclass(frozen=True, slots=True)
class HubTopics:
    """The topics of one hub."""

    hub_id: str
    prefix: str

    @property
    def status(self) -> str:
        """Where the broker says whether the hub is there."""
        return f"lares/{self.hub_id}/status"

    @property
    def events(self) -> str:
        """Where everything that happens is told, as the event stream tells it."""
        return f"lares/{self.hub_id}/events"

    @property
    def commands(self) -> tuple[str, ...]:
        """What the hub listens to."""
        base = f"lares/{self.hub_id}"
        return f"{base}/devices/+/set", f"{base}/scenes/+/run", f"{base}/automations/+/set"

    @property
    def leftovers(self) -> tuple[str, ...]:
        """Where an earlier run may have left what is not true any more."""
        return self.config("+"), self.device("+", "state"), self.automation("+", "state")

    def device(self, level: str, last: str) -> str:
        """A topic of a device, by its id as a level."""
        return f"lares/{self.hub_id}/devices/{level}/{last}"

    def scene(self, level: str) -> str:
        """Where a scene is run."""
        return f"lares/{self.hub_id}/scenes/{level}/run"

    def automation(self, level: str, last: str) -> str:
        """A topic of an automation."""
        return f"lares/{self.hub_id}/automations/{level}/{last}"

    def config(self, level: str) -> str:
        """Where a device is announced."""
        return f"{self.prefix}/device/lares_{self.hub_id}/{level}/config"

    def identifier(self, device_id: str) -> str:
        """By what other hubs know a device of this one."""
        return f"lares_{self.hub_id}_{device_id}"
