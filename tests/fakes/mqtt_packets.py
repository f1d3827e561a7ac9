"""Packets of MQTT 3.1.1, as far as clients of the tests send and read them."""

from __future__ import annotations

import asyncio

import msgspec

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK = range(1, 12)
PINGREQ, PINGRESP, DISCONNECT = 12, 13, 14

V311 = 4
"""The protocol level."""


class ProtocolError(Exception):
    """A packet that no client may send; the connection ends."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What is published at a topic."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False


class Connect(msgspec.Struct, frozen=True, kw_only=True):
    """What a client says first; `keepalive` in seconds, 0 for none."""

    client_id: str
    keepalive: int = 0
    will: Message | None = None
    user: str | None = None
    password: bytes | None = None


class Fields(msgspec.Struct):
    """The fields of a packet's body, read one after another; each raises `ProtocolError` where the body is over."""

    body: bytes
    at: int = 0

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if self.at + size > len(self.body):
            raise ProtocolError("a packet is shorter than its fields")
        self.at += size
        return self.body[self.at - size : self.at]

    def number(self, size: int) -> int:
        """An integer of so many bytes."""
        return int.from_bytes(self.take(size), "big")

    def binary(self) -> bytes:
        """Bytes with their length before them."""
        return self.take(self.number(2))

    def text(self) -> str:
        """A text with its length before it."""
        try:
            return self.binary().decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text is no UTF-8") from None

    @property
    def has_more(self) -> bool:
        """Whether there is another field."""
        return self.at < len(self.body)

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self.body) - self.at)


async def read_packet(reader: asyncio.StreamReader) -> tuple[int, int, Fields]:
    """The next packet: type, flags and body. Raises `ProtocolError`, and IncompleteReadError at the end."""
    [first] = await reader.readexactly(1)
    size = 0
    for shift in (0, 7, 14, 21):
        [byte] = await reader.readexactly(1)
        size |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return first >> 4, first & 0x0F, Fields(await reader.readexactly(size))
    raise ProtocolError("the length of a packet has more than four bytes")


def packet(kind: int, *parts: bytes, flags: int = 0) -> bytes:
    """A packet of this type."""
    body = b"".join(parts)
    size, head = len(body), bytearray([kind << 4 | flags])
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + body


def number(value: int) -> bytes:
    """An integer of two bytes."""
    return value.to_bytes(2, "big")


def text(value: str) -> bytes:
    """A text with its length before it."""
    return number(len(value.encode())) + value.encode()


def parse_connect(fields: Fields) -> Connect | None:
    """A CONNECT packet; None for another version."""
    if (fields.text(), fields.number(1)) != ("MQTT", V311):
        return None
    flags, keepalive = fields.number(1), fields.number(2)
    client_id, will = fields.text(), None
    if flags & 0x04:
        will = Message(topic=fields.text(), payload=fields.binary(), qos=flags >> 3 & 0x03, retain=bool(flags & 0x20))
    return Connect(
        client_id=client_id,
        keepalive=keepalive,
        will=will,
        user=fields.text() if flags & 0x80 else None,
        password=fields.binary() if flags & 0x40 else None,
    )


def is_filter(topic_filter: str) -> bool:
    """Whether a topic filter is well formed: `+` is a whole level and `#` the last one."""
    levels = topic_filter.split("/")
    if not topic_filter or "#" in levels[:-1]:
        return False
    return all(level in ("+", "#") or not {"+", "#"} & set(level) for level in levels)


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a filter has the topic: wildcards at the beginning leave out topics that begin with `$`."""
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if topic.startswith("$") and wanted[0] in ("+", "#"):
        return False
    for at, level in enumerate(wanted):
        if level == "#":
            return True
        if at >= len(levels) or level not in ("+", levels[at]):
            return False
    return len(wanted) == len(levels)
