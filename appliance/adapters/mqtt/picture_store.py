"""The newest picture of each camera and image, in memory only."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from appliance.adapters.base import Picture
from appliance.adapters.mqtt.messages import Received
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.picture import PICTURE_EVENT, StillPicture
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.errors import Invalid
from appliance.home.values import Value

MAX_PICTURES_BYTES = 32 * 1024 * 1024
"""Maximum total size of a broker's pictures, as received. Beyond this size, the oldest pictures are dropped."""

MIN_EVENT_SECS = 1.0
"""Minimum seconds between two picture events of one entity. Changes in between are combined into one event."""


class _Key(Struct, frozen=True):
    """An entity and its topic. If the topic changes, the entity has no picture until a new one arrives."""

    device_id: str
    announcement: str
    topic: str
    attribute: str


class PictureStore:
    """The newest picture of each entity, as received. A picture is decoded only on request.

    A new picture causes a device event, which is not written to storage. Only the picture's media type is an
    attribute.
    """

    def __init__(self, publish: Publisher, clock: Clock) -> None:
        self._publish = publish
        self._clock = clock
        self._pictures: dict[_Key, tuple[StillPicture, Picture]] = {}
        self._bytes = 0
        self._changed: set[_Key] = set()
        self._published_at: dict[_Key, float] = {}

    def take(self, device_id: str, entity: StillPicture, received: Received) -> Value:
        """Store a picture, and return its media type. Return None for an empty message.

        If the message is not a picture, keep the previous picture and raise `Invalid`.
        """
        key, payload = _key(device_id, entity), received.payload
        media_type = entity.media_type_of(payload) if payload else None
        former, is_unpublished = self._pictures.get(key), key in self._changed
        self._drop(key)
        if media_type is None:
            return None
        self._pictures[key] = entity, Picture(media_type=media_type, body=payload, at=self._clock.now())
        self._bytes += len(payload)
        is_other = former is None or former[1].body != payload
        if is_unpublished or (is_other and not received.is_retained):
            self._changed.add(key)
        while self._bytes > MAX_PICTURES_BYTES:
            self._drop(next(iter(self._pictures)))
        return media_type

    def find(self, device_id: str, attribute: str | None) -> Picture | None:
        """Return the picture of an attribute, or None. The default is the first attribute with a picture, by name."""
        of_device = [key for key in self._pictures if key.device_id == device_id]
        for key in sorted(of_device, key=lambda each: each.attribute):
            if attribute in (None, key.attribute):
                entity, picture = self._pictures[key]
                try:
                    return replace(picture, body=entity.decode(picture.body))
                except Invalid as fault:
                    self._publish.dropped(device_id, key.attribute, str(fault))
        return None

    def media_type(self, device_id: str, entity: StillPicture) -> str | None:
        kept = self._pictures.get(_key(device_id, entity))
        return None if kept is None else kept[1].media_type

    def keep_only(self, entities_of: Callable[[str], Iterable[Entity]]) -> None:
        """Delete the pictures of entities that no longer exist."""
        ids = {key.device_id for key in self._pictures}
        kept = {_key(id_, each) for id_ in ids for each in entities_of(id_) if isinstance(each, StillPicture)}
        for key in self._pictures.keys() - kept:
            self._drop(key)

    def forget(self, device_id: str, entity: StillPicture) -> None:
        self._drop(_key(device_id, entity))

    @property
    def has_changes(self) -> bool:
        """Whether `publish_changes` has an event to publish, now or soon."""
        return bool(self._changed)

    def publish_changes(self) -> None:
        """Publish an event for each entity with a new picture, at most one per entity in `MIN_EVENT_SECS`."""
        now = self._clock.monotonic()
        self._published_at = {key: at for key, at in self._published_at.items() if now - at < MIN_EVENT_SECS}
        for key in sorted(self._changed - self._published_at.keys(), key=lambda each: each.attribute):
            self._changed.discard(key)
            self._published_at[key] = now
            media_type = self._pictures[key][1].media_type
            self._publish.event(key.device_id, PICTURE_EVENT, {"attribute": key.attribute, "media_type": media_type})

    def _drop(self, key: _Key) -> None:
        if (kept := self._pictures.pop(key, None)) is not None:
            self._bytes -= len(kept[1].body)
            self._changed.discard(key)


def _key(device_id: str, entity: StillPicture) -> _Key:
    return _Key(device_id, entity.announcement.key, entity.picture_filter, entity.custom_key)
