"""Access of the publisher to the hub, its topics, and ids in topics."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

import orjson
from msgspec import Struct

from appliance.adapters.base import Secrets
from appliance.adapters.dispatch import Outcome
from appliance.adapters.mqtt.messages import Outgoing
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.events import Event
from appliance.home.model import Device
from appliance.home.registry import Registry

_ENCODED = str.maketrans({"%": "%25", "/": "%2F", "+": "%2B", "#": "%23"})
"""Characters that are percent-encoded in an id that is a level of a topic."""


MAX_LEVEL_CHARS = 200
"""Characters of a level; the end of a longer level is replaced by digits of its SHA-256."""


def discovery_id(id_: str) -> str:
    """Return an id as a level of a discovery topic, which allows only letters, digits, `_` and `-`; two ids never
    give the same level.

    Any other character becomes its code between two `_`; so does a `_` that would look like the beginning of such a
    code.
    """
    level = re.sub(r"[^a-zA-Z0-9_-]|_(?=[0-9a-f]{2,}[^a-zA-Z0-9-])", lambda char: f"_{ord(char[0]):x}_", id_)
    if len(level) <= MAX_LEVEL_CHARS:
        return level
    return f"{level[: MAX_LEVEL_CHARS - 13]}_{hashlib.sha256(id_.encode()).hexdigest()[:12]}"


class HubTopics(Struct, frozen=True):
    """The topics of one hub."""

    hub_id: str
    prefix: str

    @property
    def status(self) -> str:
        """Retained `online` or `offline`."""
        return f"lares/{self.hub_id}/status"

    @property
    def events(self) -> str:
        """Every event, in the frames of the event stream."""
        return f"lares/{self.hub_id}/events"

    @property
    def commands(self) -> tuple[str, ...]:
        """The topics of commands to the hub."""
        return tuple(f"lares/{self.hub_id}/{each}" for each in ("devices/+/set", "scenes/+/run", "automations/+/set"))

    @property
    def leftovers(self) -> tuple[str, ...]:
        """The topics at which an earlier run may have left outdated messages."""
        states = (f"lares/{self.hub_id}/{each}/+/state" for each in ("devices", "automations"))
        return self.config("+"), *states

    def of(self, kind: str, id_: str, last: str) -> str:
        """Return the topic `last`, such as `state` or `set`, of a device, scene or automation."""
        return f"lares/{self.hub_id}/{kind}/{id_.translate(_ENCODED)}/{last}"

    def config(self, level: str) -> str:
        """Return the topic of a configuration; `level` is an id as `discovery_id` writes it."""
        return f"{self.prefix}/device/lares_{self.hub_id}/{level}/config"

    def identifier(self, device_id: str) -> str:
        """Return the identifier of a device in its configuration."""
        return f"lares_{self.hub_id}_{device_id}"


FrameOf = Callable[[Event], bytes | None]


def no_frame(_: Event) -> None:
    """Return None: no event has a frame."""


class HomeAccess(Struct, frozen=True, kw_only=True):
    """Access of the publisher to the hub. `send` is `Dispatcher.send`.

    `scenes` gives the name of each id, `automations` the name and whether the automation is enabled. `run_scene` and
    `switch` raise `LaresError`. `frame_of` gives the JSON of an event as in the event stream, or None if the stream
    omits the event.
    """

    registry: Registry
    bus: Bus
    send: Callable[[Sequence[Device], Command, str], Awaitable[Sequence[Outcome]]]
    scenes: Callable[[], Mapping[str, str]]
    run_scene: Callable[[str], object]
    automations: Callable[[], Mapping[str, tuple[str, bool]]]
    switch: Callable[[str, bool], Awaitable[object]]
    frame_of: FrameOf


def published_topics(secrets: Secrets) -> HubTopics | None:
    """Return the topics of an earlier run that still hold its messages; None if all are cleared."""
    kept = secrets.get("published")
    hub_id, prefix = orjson.loads(kept) if kept else ("", "")
    return HubTopics(hub_id, prefix) if hub_id else None


async def keep_published(secrets: Secrets, topics: HubTopics | None) -> None:
    """Store that a hub publishes at these topics; None: at none. Raises `StoreFailed`."""
    if published_topics(secrets) != topics:
        await secrets.put(
            "published", "" if topics is None else orjson.dumps([topics.hub_id, topics.prefix]).decode()
        )


def retained(topic: str, payload: str) -> Outgoing:
    """Return a message for the broker to retain; an empty payload removes it."""
    return Outgoing(topic, payload, qos=1, retain=True)
