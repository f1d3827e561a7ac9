"""Parser for MQTT packets that contain messages."""

from __future__ import annotations

from appliance.adapters.mqtt.inbox import Received

_PUBLISH, _PUBLISH_BITS, _RETAINED_BIT = 0x30, 0xF6, 0x01
"""First byte of a message with QoS 0, mask without the bits for duplicate and retained, and the bit for retained."""

_MAX_SIZE_BYTES = 4
"""Maximum bytes of a packet's length field."""


def parse_message(data: bytearray) -> tuple[Received, int] | None:
    """Return the message with QoS 0 at the beginning of the data, and its length in bytes.

    Return None for any other packet, an incomplete packet, or an invalid topic.
    """
    if not data or data[0] & _PUBLISH_BITS != _PUBLISH:
        return None
    size, at, has_more = 0, 1, True
    while has_more:
        if at > _MAX_SIZE_BYTES or at == len(data):
            return None
        size |= (data[at] & 0x7F) << 7 * (at - 1)
        has_more = data[at] > 0x7F
        at += 1
    end = at + size
    topic_end = at + 2 + int.from_bytes(data[at : at + 2], "big")
    if not topic_end <= end <= len(data):
        return None
    try:
        topic = data[at + 2 : topic_end].decode()
    except UnicodeDecodeError:
        return None
    if not topic or "+" in topic or "#" in topic:
        return None
    return Received(topic, bytes(data[topic_end:end]), bool(data[0] & _RETAINED_BIT)), end
