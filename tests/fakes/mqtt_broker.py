"""A small fake MQTT 3.1.1 broker on loopback, in the test's event loop.

The broker supports QoS 0 and 1, retained messages, wills, wildcards, passwords, access lists, TLS, keepalive, and the
takeover of a session by a client with the same client id. Sessions end with their connection. Retained messages are
lost when the broker stops.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import ssl
from collections.abc import Mapping
from contextlib import suppress

import msgspec

CONNECT, CONNACK, PUBLISH, PUBACK = 1, 2, 3, 4
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT = range(8, 15)

V311 = 4
"""The protocol level."""


class ProtocolError(Exception):
    """A client sent an invalid packet, so its connection is closed."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False


class Connect(msgspec.Struct, frozen=True, kw_only=True):
    """A client's first packet. `keepalive` is in seconds; 0 disables the keepalive."""

    client_id: str
    keepalive: int = 0
    will: Message | None = None
    user: str | None = None
    password: bytes | None = None


class Fields(msgspec.Struct):
    """The fields of a packet's body, read one after another. Reading beyond the end raises `ProtocolError`."""

    body: bytes
    at: int = 0

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.body):
            raise ProtocolError("a packet is shorter than its fields")
        self.at += size
        return self.body[self.at - size : self.at]

    def number(self, size: int) -> int:
        """Return an integer with this number of bytes."""
        return int.from_bytes(self.take(size), "big")

    def binary(self) -> bytes:
        """Return bytes that follow their length."""
        return self.take(self.number(2))

    def text(self) -> str:
        """Return a text that follows its length."""
        try:
            return self.binary().decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text is not UTF-8") from None

    @property
    def has_more(self) -> bool:
        """Whether there is another field."""
        return self.at < len(self.body)

    def rest(self) -> bytes:
        return self.take(len(self.body) - self.at)


async def read_packet(reader: asyncio.StreamReader) -> tuple[int, int, Fields]:
    """Return the next packet: type, flags, and body. Raise `ProtocolError`, or IncompleteReadError at the end."""
    [first] = await reader.readexactly(1)
    size = 0
    for shift in (0, 7, 14, 21):
        [byte] = await reader.readexactly(1)
        size |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return first >> 4, first & 0x0F, Fields(await reader.readexactly(size))
    raise ProtocolError("the length of a packet has more than four bytes")


def packet(kind: int, *parts: bytes, flags: int = 0) -> bytes:
    body = b"".join(parts)
    size, head = len(body), bytearray([kind << 4 | flags])
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + body


def number(value: int) -> bytes:
    return value.to_bytes(2, "big")


def text(value: str) -> bytes:
    return number(len(value.encode())) + value.encode()


def parse_connect(fields: Fields) -> Connect | None:
    """Parse a CONNECT packet. Return None for another version."""
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
    """Return whether a filter is valid. `+` must be a whole level, and `#` must be the last level."""
    levels = topic_filter.split("/")
    if not topic_filter or "#" in levels[:-1]:
        return False
    return all(level in ("+", "#") or not {"+", "#"} & set(level) for level in levels)


def matches(topic_filter: str, topic: str) -> bool:
    """Return whether a topic matches a filter. Filters that begin with a wildcard do not match topics that begin with
    `$`."""
    expected, levels = topic_filter.split("/"), topic.split("/")
    if topic.startswith("$") and expected[0] in ("+", "#"):
        return False
    for at, level in enumerate(expected):
        if level == "#":
            return True
        if at >= len(levels) or level not in ("+", levels[at]):
            return False
    return len(expected) == len(levels)


CONNECT_SECS = 20.0
"""A client must send its first packet within this number of seconds."""

REFUSED_LEVEL, REFUSED_LOGIN = b"\x00\x01", b"\x00\x04"
"""The responses to a CONNECT with an unknown version, and to a CONNECT with a wrong user or password."""


class Broker:
    def __init__(self, passwords: Mapping[str, str], access: str | None = None) -> None:
        """Accept these users. `access` is an access list in Mosquitto's format. If there is no access list,
        everything is allowed."""
        self.port = self.tls_port = 0
        self.passwords = dict(passwords)
        self.tls: ssl.SSLContext | None = None
        self.clients: dict[str, _Connection] = {}
        self.retained: dict[str, Message] = {}
        self.ids = itertools.count(1)
        self._access = None if access is None else read_access(access)
        self._servers: list[asyncio.Server] = []
        self._connections: dict[_Connection, asyncio.Task[None]] = {}

    async def start(self) -> None:
        self.port = await self._listen(self.port, None)
        if self.tls is not None:
            self.tls_port = await self._listen(self.tls_port, self.tls)

    async def _listen(self, port: int, tls: ssl.SSLContext | None) -> int:
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=tls)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop the broker: in order, or as after SIGKILL. After SIGKILL, no message is sent, and unsent data is
        lost."""
        for server in self._servers:
            server.close()
        for connection in tuple(self._connections):
            connection.will = None
            connection.end(at_once=how is signal.SIGKILL)
        self._servers.clear()
        self.clients.clear()
        self.retained.clear()

    async def close(self) -> None:
        """Stop the broker, and wait until all connections have ended. Otherwise, asyncio logs an error for each
        connection when the event loop closes."""
        connections = [*self._connections.values()]
        self.stop(signal.SIGKILL)
        await asyncio.gather(*connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection, task = _Connection(self, reader, writer), asyncio.current_task()
        assert task is not None
        self._connections[connection] = task
        try:
            await connection.serve()
        finally:
            del self._connections[connection]

    def may(self, user: str | None, verb: str, topic: str) -> bool:
        if self._access is None:
            return True
        return any(verb in verbs and matches(allowed, topic) for verbs, allowed in self._access.get(user, ()))

    def publish(self, message: Message) -> None:
        """Store a message if it is retained, and deliver it once to each client."""
        if message.retain and message.payload:
            self.retained[message.topic] = message
        elif message.retain:
            self.retained.pop(message.topic, None)
        for client in tuple(self.clients.values()):
            granted = [qos for expected, qos in client.subscriptions.items() if matches(expected, message.topic)]
            if granted:
                client.deliver(message, max(granted), is_retained=False)


class _Connection:
    """One client, from its CONNECT to the end of the connection."""

    def __init__(self, broker: Broker, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.subscriptions: dict[str, int] = {}
        self.will: Message | None = None
        self._broker, self._reader, self._writer = broker, reader, writer
        self._connect = Connect(client_id="")
        self._ids = itertools.cycle(range(1, 0x10000))

    async def serve(self) -> None:
        """Serve the client until either side closes the connection. If the client closes the connection without a
        DISCONNECT, publish the client's will."""
        try:
            if await self._accept():
                await self._handle_packets()
        except TimeoutError:
            self.end()
        except (OSError, asyncio.IncompleteReadError, ProtocolError):
            pass
        finally:
            self.end(at_once=True)
            if self._broker.clients.get(self._connect.client_id) is self:
                del self._broker.clients[self._connect.client_id]
            self.publish_will()

    def publish_will(self) -> None:
        """Publish the will once, if there is one."""
        will, self.will = self.will, None
        if will is not None:
            self._publish(will)

    def end(self, *, at_once: bool = False) -> None:
        """Close the connection, in order or abruptly."""
        if at_once:
            self._writer.transport.abort()
        else:
            self._writer.close()

    def deliver(self, message: Message, granted: int, *, is_retained: bool) -> None:
        """Send a message if the user may read it."""
        if not self._broker.may(self._connect.user, "read", message.topic):
            return
        qos = min(message.qos, granted)
        packet_id = number(next(self._ids)) if qos else b""
        body = (text(message.topic), packet_id, message.payload)
        self._send(packet(PUBLISH, *body, flags=qos << 1 | is_retained))

    async def _accept(self) -> bool:
        """Read CONNECT and respond. Return whether the client is accepted. Close an older connection with the same
        client id."""
        async with asyncio.timeout(CONNECT_SECS):
            kind, _, fields = await read_packet(self._reader)
        if kind != CONNECT:
            raise ProtocolError("the first packet is not CONNECT")
        reply = parse_connect(fields)
        if reply is None:
            return await self._refuse(REFUSED_LEVEL)
        password = self._broker.passwords.get(reply.user or "")
        if password is None or reply.password != password.encode():
            return await self._refuse(REFUSED_LOGIN)
        client_id = reply.client_id or f"unnamed-{next(self._broker.ids)}"
        self._connect = msgspec.structs.replace(reply, client_id=client_id)
        if (older := self._broker.clients.get(self._connect.client_id)) is not None:
            older.publish_will()  # the will must precede all messages from the newer client
            older.end()
        self.will = reply.will
        self._broker.clients[self._connect.client_id] = self
        self._send(packet(CONNACK, b"\x00\x00"))
        return True

    async def _refuse(self, answer: bytes) -> bool:
        self._send(packet(CONNACK, answer))
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
        return False

    async def _handle_packets(self) -> None:
        limit = self._connect.keepalive * 1.5 or None
        while True:
            async with asyncio.timeout(limit):
                kind, flags, fields = await read_packet(self._reader)
            if kind == DISCONNECT:
                self.will = None
                return
            self._handle(kind, flags, fields)

    def _handle(self, kind: int, flags: int, fields: Fields) -> None:
        if kind == PINGREQ:
            self._send(packet(PINGRESP))
        elif kind == PUBLISH:
            self._take(flags, fields)
        elif kind == SUBSCRIBE:
            self._subscribe(fields)
        elif kind == UNSUBSCRIBE:
            self._unsubscribe(fields)
        elif kind != PUBACK:
            raise ProtocolError(f"a client sends no packet of type {kind}")

    def _take(self, flags: int, fields: Fields) -> None:
        """Process a published message, and acknowledge it if it has QoS 1."""
        topic, qos = fields.text(), flags >> 1 & 0x03
        if not topic or {"+", "#"} & set(topic) or qos > 1:
            raise ProtocolError("nothing can be published so")
        packet_id = fields.number(2) if qos else 0
        self._publish(Message(topic=topic, payload=fields.rest(), qos=qos, retain=bool(flags & 1)))
        if qos:
            self._send(packet(PUBACK, number(packet_id)))

    def _publish(self, message: Message) -> None:
        """Publish the message if the user may write it. Otherwise, ignore it."""
        if self._broker.may(self._connect.user, "write", message.topic):
            self._broker.publish(message)

    def _subscribe(self, fields: Fields) -> None:
        packet_id = fields.number(2)
        granted: dict[str, int] = {}
        codes = bytearray()
        while fields.has_more:
            expected, qos = fields.text(), min(fields.number(1) & 0x03, 1)
            codes.append(qos if is_filter(expected) else 0x80)
            if is_filter(expected):
                granted[expected] = qos
        self._send(packet(SUBACK, number(packet_id), bytes(codes)))
        self.subscriptions |= granted
        retained = self._broker.retained
        for expected, qos in granted.items():
            is_exact = not {"+", "#"} & set(expected)
            for topic in filter(retained.__contains__, (expected,)) if is_exact else tuple(retained):
                if matches(expected, topic):
                    self.deliver(retained[topic], qos, is_retained=True)

    def _unsubscribe(self, fields: Fields) -> None:
        packet_id = fields.number(2)
        while fields.has_more:
            self.subscriptions.pop(fields.text(), None)
        self._send(packet(UNSUBACK, number(packet_id)))

    def _send(self, data: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(data)


def read_access(listed: str) -> dict[str | None, list[tuple[tuple[str, ...], str]]]:
    """Parse an access list with the lines `user NAME` and `topic [read|write|readwrite] FILTER`. Return the rights
    of each user."""
    access: dict[str | None, list[tuple[tuple[str, ...], str]]] = {}
    user = None
    for line in listed.splitlines():
        word, _, rest = line.partition(" ")
        if word == "user":
            user = rest
        elif word == "topic":
            verb, _, allowed = rest.partition(" ")
            access.setdefault(user, []).append((("read", "write") if verb == "readwrite" else (verb,), allowed))
    return access
