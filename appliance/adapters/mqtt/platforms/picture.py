"""Cameras and images."""

from __future__ import annotations

import binascii
from collections.abc import Mapping

from appliance.adapters.mqtt.platforms.entity import Entity, TopicReader
from appliance.adapters.mqtt.platforms.payloads import Update
from appliance.errors import Invalid
from appliance.home.values import Value

MAX_PICTURE_BYTES = 1024 * 1024
"""Size limit of a decoded picture."""

PICTURE_EVENT = "picture"

HEAD_BYTES = 12
"""The type of a picture is identified by this number of bytes at the beginning."""

_BLANKS = b" \t\r\n"


class StillPicture(Entity):
    """A camera or an image. The custom attribute is the media type of the newest picture.

    Only messages that match `picture_filter` are read. Each message is a picture, encoded in base64 if `is_base64`
    is set.
    """

    def setup(self) -> None:
        key = "topic" if self.announcement.component == "camera" else "image_topic"
        self.event_names = (PICTURE_EVENT,)
        topic = self.config.topic(key)
        if topic is None and "url_topic" in self.config:
            raise Invalid("the entity announces its picture as an address (url_topic), which the hub does not fetch")
        if topic is None:
            raise Invalid(f"the entity has no usable {key}")
        encoding = self.config.text("image_encoding")
        if encoding not in ("", "b64"):
            raise Invalid(f"image_encoding is {encoding[:40]!r}; only b64 is supported")
        self.is_base64 = encoding == "b64"
        self.picture_filter = topic
        self.readers = (TopicReader(topic, None, _ignore),)

    def restore(self, shown: Mapping[str, Value]) -> bool:
        """Restore nothing, because pictures are lost at a restart."""
        return False

    def media_type_of(self, payload: bytes) -> str:
        """Return the picture's media type. Raise `Invalid` if the message is not a picture, or too large."""
        if _decoded_size(payload, is_base64=self.is_base64) > MAX_PICTURE_BYTES:
            raise Invalid(f"the picture is larger than {MAX_PICTURE_BYTES // 1024**2} MiB")
        media_type = _media_type(_decoded_head(payload) if self.is_base64 else payload[:HEAD_BYTES])
        if media_type is None:
            coding = " in base64" if self.is_base64 else ""
            raise Invalid(f"the message is not a JPEG, PNG, GIF, or WebP picture{coding}")
        return media_type

    def decode(self, payload: bytes) -> bytes:
        """Return the picture in a message. The media type must be known. Raise `Invalid` for incomplete base64."""
        if not self.is_base64:
            return payload
        try:
            return binascii.a2b_base64(payload)
        except binascii.Error:
            raise Invalid("the base64 text of the picture is incomplete") from None


def _ignore(_: Entity, __: str) -> Update:
    return {}


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
