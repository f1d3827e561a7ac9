"""Cameras and images: what is a picture, and the newest one of each entity, in memory only, within a budget."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from appliance.adapters.base import Picture
from appliance.adapters.mqtt.entities.entity import Entity, TopicReader
from appliance.adapters.mqtt.inbox import Received
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.errors import Invalid
from appliance.home.values import Value

MAX_PICTURE_BYTES = 1024 * 1024
"""Bytes of a picture, as it is shown."""

PICTURE_EVENT = "picture"
"""The name of the event that an entity shows another picture."""

HEAD_BYTES = 12
"""Bytes at the beginning of a picture that tell its type."""

_BLANKS = b" \t\r\n"


class StillPicture(Entity):
    """A camera or an image: its custom attribute shows the media type of the newest picture, once one has come.

    Messages of `picture_filter` are pictures, in base64 where it `is_base64`; nothing else is read.
    """

    def setup(self) -> None:
        key = "topic" if self.announcement.component == "camera" else "image_topic"
        self.event_names = (PICTURE_EVENT,)
        topic = self.config.topic(key)
        if topic is None and "url_topic" in self.config:
            raise Invalid("names its picture by an address (url_topic); the hub fetches nothing from such addresses")
        if topic is None:
            raise Invalid(f"has no usable {key}")
        encoding = self.config.text("image_encoding")
        if encoding not in ("", "b64"):
            raise Invalid(f"image_encoding is {encoding[:40]!r}; b64 alone is known")
        self.is_base64 = encoding == "b64"
        self.picture_filter = topic
        self.readers.append(TopicReader(topic, None, lambda _: {}))

    def restore(self, shown: Mapping[str, Value]) -> bool:
        """Restore nothing: no picture outlives a restart."""
        return False

    def media_type_of(self, payload: bytes) -> str:
        """The media type of the picture that is this message; raises `Invalid` where it is none, or too large."""
        if _decoded_size(payload, is_base64=self.is_base64) > MAX_PICTURE_BYTES:
            raise Invalid(f"a picture is larger than {MAX_PICTURE_BYTES // 1024**2} MiB")
        media_type = _media_type(_decoded_head(payload) if self.is_base64 else payload[:HEAD_BYTES])
        if media_type is None:
            coding = " in base64" if self.is_base64 else ""
            raise Invalid(f"a message is no picture: it must be JPEG, PNG, GIF or WebP{coding}")
        return media_type

    def decode(self, payload: bytes) -> bytes:
        """The picture of a message that has a media type; raises `Invalid` where its base64 is cut off."""
        if not self.is_base64:
            return payload
        try:
            return binascii.a2b_base64(payload)
        except binascii.Error:
            raise Invalid("a picture is no base64 to its end") from None


def _decoded_size(payload: bytes, *, is_base64: bool) -> int:
    if not is_base64 or len(payload) * 3 // 4 <= MAX_PICTURE_BYTES:
        return len(payload) * 3 // 4 if is_base64 else len(payload)
    bare = payload.translate(None, _BLANKS).rstrip(b"=")
    return len(bare) * 3 // 4


def _decoded_head(payload: bytes) -> bytes:
    text = payload[: 8 * HEAD_BYTES].translate(None, _BLANKS)[: HEAD_BYTES * 4 // 3]
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error:
        return b""


def _media_type(head: bytes) -> str | None:
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if head.startswith(b"RIFF") and head[8:] == b"WEBP" else None


MAX_PICTURES_BYTES = 32 * 1024 * 1024
"""Bytes of all pictures of a broker, as they came; beyond that the oldest are dropped."""

MIN_EVENT_SECS = 1.0
"""Seconds between two events about pictures of one entity; changes in between are one."""


class _Key(Struct, frozen=True):
    """An entity and the topic that it names: one that is announced with another topic has no picture yet."""

    device_id: str
    announcement: str
    topic: str
    attribute: str


class PictureStore:
    """The newest picture of each entity, as it came: it is decoded when it is asked for, as most never are.

    Another picture is an event at the device, which costs the card nothing; its type alone is an attribute.
    """

    def __init__(self, publish: Publisher, clock: Clock) -> None:
        self._publish = publish
        self._clock = clock
        self._pictures: dict[_Key, tuple[StillPicture, Picture]] = {}
        self._bytes = 0
        self._changed: set[_Key] = set()
        self._published_at: dict[_Key, float] = {}

    def take(self, device_id: str, entity: StillPicture, received: Received) -> Value:
        """Keep the picture of a message in the place of the former; its media type, None for an empty message.

        Raises `Invalid` for what is no picture; the former one then stays.
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
        """The picture of an attribute of the device, without one the first by name; None where there is none."""
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
        """The type of the entity's picture, None where there is none."""
        kept = self._pictures.get(_key(device_id, entity))
        return None if kept is None else kept[1].media_type

    def keep_only(self, entities_of: Callable[[str], Iterable[Entity]]) -> None:
        """Forget the pictures of entities that the devices, each by its id, do not have."""
        ids = {key.device_id for key in self._pictures}
        kept = {_key(id_, each) for id_ in ids for each in entities_of(id_) if isinstance(each, StillPicture)}
        for key in self._pictures.keys() - kept:
            self._drop(key)

    def forget(self, device_id: str, entity: StillPicture) -> None:
        """Forget the picture of an entity."""
        self._drop(_key(device_id, entity))

    def publish_changes(self) -> None:
        """Publish which entities show another picture, each at most once in `MIN_EVENT_SECS`."""
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
    return _Key(device_id, entity.announcement.key, entity.picture_filter, entity.custom)
