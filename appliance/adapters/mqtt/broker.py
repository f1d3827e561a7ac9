"""The connection to a broker, with MQTT 3.1.1, which all brokers support. Only this file and `aiomqtt_client` use the
MQTT library."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiomqtt
from aiomqtt.exceptions import MqttConnectError

from appliance.adapters.mqtt.aiomqtt_client import CLOSED_EARLY, Client
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.messages import Outgoing, Received
from appliance.adapters.secret_files import secret_of
from appliance.adapters.tls import open_tls, share_tls
from appliance.computing import compute_alone
from appliance.errors import AdapterFailed, Unreachable
from appliance.tables.addresses import DEFAULT_PORTS

BROKER_TIMEOUT_SECS = 5.0
"""Time limit for the broker to accept a connection or a subscription."""

DISCONNECT_SECS = 0.5
"""Time limit for sending the status `offline`, and then for sending the end of the session."""

KEEPALIVE_SECS = 60
"""Seconds without a packet after which a ping is sent."""

END_SECS = 0.25
"""Time limit for a stopping broker to close a connection that it still accepted."""

SUBSCRIBE_AT_ONCE = 500

MAX_UNACKNOWLEDGED = 1_000
"""Maximum number of unacknowledged messages. Beyond this number, publishing waits."""

_library_log = logging.getLogger("adapters.mqtt.library")
_library_log.setLevel(logging.CRITICAL)

_BAD_CREDENTIALS = (4, 5, 134, 135)
"""Return codes for rejected credentials. A retry cannot succeed. The library uses the MQTT 5 names of these codes."""


class BrokerRefused(Unreachable):
    """The broker rejected the user or the password."""


class NoBroker(Unreachable):
    """The peer answers, but does not speak MQTT."""


class BrokerConnection:
    """One connection to the broker, usable while `Broker.connect` is open."""

    def __init__(self, client: aiomqtt.Client, address: str, status_topic: str | None) -> None:
        self._client = client
        self._address = address
        self._status_topic = status_topic
        self._is_online = False
        self._slots = asyncio.Semaphore(MAX_UNACKNOWLEDGED)

    async def publish(self, message: Outgoing) -> None:
        """Publish a message. With QoS 1 or 2, return when the broker has acknowledged the message. Raise
        `Unreachable`."""
        async with self._slots:
            try:
                await self._client.publish(message.topic, message.payload, qos=message.qos, retain=message.retain)
            except (aiomqtt.MqttError, OSError, ValueError) as error:
                raise Unreachable(f"the message to {message.topic} was not sent ({error})") from None

    async def publish_online(self) -> None:
        """Publish the status `online` if there is a status topic. Raise `Unreachable`."""
        if self._status_topic is not None:
            self._is_online = True
            await self.publish(Outgoing(self._status_topic, "online", qos=1, retain=True))

    async def end(self) -> None:
        """Publish `offline`, because a broker publishes no last will for a client that disconnects properly.

        With QoS 0, the message does not wait for the acknowledgements of earlier messages.
        """
        if self._status_topic is not None and self._is_online and not self._client._disconnected.done():
            with suppress(aiomqtt.MqttError, OSError, TimeoutError):
                async with asyncio.timeout(DISCONNECT_SECS):
                    await self._client.publish(self._status_topic, "offline", retain=True)

    async def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe with QoS 0. Return when the broker has acknowledged the subscription. Raise `Unreachable`."""
        for at in range(0, len(topics), SUBSCRIBE_AT_ONCE):
            await self._acknowledged(
                self._client.subscribe([(topic, 0) for topic in topics[at : at + SUBSCRIBE_AT_ONCE]])
            )

    async def unsubscribe(self, topics: Sequence[str]) -> None:
        """Unsubscribe. Return when the broker has acknowledged the request. Raise `Unreachable`."""
        for at in range(0, len(topics), SUBSCRIBE_AT_ONCE):
            await self._acknowledged(self._client.unsubscribe(list(topics[at : at + SUBSCRIBE_AT_ONCE])))

    async def until_lost(self) -> None:
        """Wait until the connection ends, then raise `Unreachable`."""
        try:
            async for _ in self._client.messages:
                pass
        except aiomqtt.MqttError as error:
            raise _failure(self._address, "has closed the connection", error) from None

    async def _acknowledged(self, request: Awaitable[Any]) -> None:
        try:
            await request
        except (aiomqtt.MqttError, OSError, ValueError) as error:
            raise Unreachable(f"the broker did not accept the request ({error})") from None


class Broker:
    """The address and login of one broker. `receive` is called with each message as soon as it is read.

    When a connection ends, the hub publishes `offline` at `status_topic`. If the connection was lost, the broker
    publishes `offline` as the hub's last will.
    """

    def __init__(
        self,
        settings: Mqtt,
        client_id: str,
        status_topic: str | None,
        receive: Callable[[Received], None],
        *,
        timeout_secs: float = BROKER_TIMEOUT_SECS,
        keepalive_secs: int = KEEPALIVE_SECS,
    ) -> None:
        self._port = settings.port or DEFAULT_PORTS["mqtts" if settings.tls else "mqtt"]
        self.address = f"{settings.host}:{self._port}"
        self._settings = settings
        self._client_id = client_id
        self._status_topic = status_topic
        self._receive = receive
        self._timeout_secs = timeout_secs
        self._keepalive_secs = keepalive_secs

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[BrokerConnection]:
        """Open a connection. Raise `BrokerRefused` or `Unreachable`."""
        try:
            client = await self._client()
            await client.__aenter__()
        except MqttConnectError as error:
            raise self._refusal(error) from None
        except AdapterFailed as error:
            raise Unreachable(str(error)) from None
        except (aiomqtt.MqttError, OSError, ValueError) as error:
            is_closed = CLOSED_EARLY in str(error)
            reason = "closes the connection at once" if is_closed else f"does not answer ({_reason(error)})"
            raise _failure(self.address, reason + self._hint(error), error) from None
        connection = BrokerConnection(client, self.address, self._status_topic)
        try:
            yield connection
        finally:
            await connection.end()
            await client.close(DISCONNECT_SECS)

    async def has_ended(self) -> bool:
        """Return whether the broker no longer accepts connections. A running broker accepts a connection and waits
        for the first packet.

        Call this method as soon as a connection is lost, because a restarting broker is back within a second.
        """
        try:
            async with asyncio.timeout(END_SECS):
                reader, writer = await asyncio.open_connection(self._settings.host, self._port)
                try:
                    return await reader.read(1) == b""
                finally:
                    writer.close()
        except TimeoutError:
            return False
        except OSError:
            return True

    def _hint(self, error: BaseException) -> str:
        """Return advice for a connection error that may be caused by a wrong setting, such as the port. If there is
        no advice, return an empty string."""
        text, uses_tls = str(error).lower(), self._settings.tls
        if uses_tls and any(each in text for each in ("wrong_version", "record layer", "unexpected eof")):
            return "; this port does not use TLS, so remove tls, or set port to the broker's TLS port"
        if CLOSED_EARLY in text:
            return "; port must be the broker's MQTT port" + (
                "" if uses_tls else "; if it expects TLS, set tls = true"
            )
        if "timed out" in text:
            return "; port must be the broker's MQTT port, not one for websockets or HTTP"
        if not uses_tls and "reset" in text:
            return "; if this port expects TLS, set tls = true"
        return ""

    def conflict(self) -> str:
        """Return the error message for another client with the same client id."""
        return (
            f"{self.address} has ended the session of client id {self._client_id} repeatedly: the broker was "
            f"restarted, or another client uses this id. If a second hub uses a copy of this data directory, stop "
            f"one of the two hubs"
        )

    async def _client(self) -> Client:
        settings, status = self._settings, self._status_topic
        tls = await _tls_context(settings) if settings.tls else None
        return Client(
            settings.host,
            self._port,
            self._receive,
            username=settings.username,
            password=secret_of("password", settings.password, Path(), settings.password_file),
            identifier=self._client_id,
            protocol=aiomqtt.ProtocolVersion.V311,
            will=None if status is None else aiomqtt.Will(status, "offline", qos=1, retain=True),
            timeout=self._timeout_secs,
            keepalive=self._keepalive_secs,
            tls_context=tls,
            max_inflight_messages=MAX_UNACKNOWLEDGED,
            logger=_library_log,
        )

    def _refusal(self, error: MqttConnectError) -> Unreachable:
        code = getattr(error.rc, "value", error.rc)
        if code in _BAD_CREDENTIALS:
            return BrokerRefused(f"{self.address} rejects the username or password; check both in the section")
        return Unreachable(f"{self.address} rejects the connection ({_reason(error)})")


async def _tls_context(settings: Mqtt) -> ssl.SSLContext:
    """Return a context that checks certificates and host names. Raise `AdapterFailed` or `OSError`."""
    ca_file = None if settings.ca_file is None else Path(settings.ca_file)
    if settings.cert_file is None:
        return await share_tls(ca_file)
    return await compute_alone("tls", _own_tls, settings, ca_file)


def _own_tls(settings: Mqtt, ca_file: Path | None) -> ssl.SSLContext:
    """Return a context with the hub's certificate for this broker."""
    for name in (settings.cert_file, settings.key_file):
        if name is not None and Path(name).exists() and not Path(name).is_file():
            raise OSError(f"{name} is not a regular file")  # the library would block on a named pipe
    context = open_tls(ca_file)
    assert settings.cert_file is not None
    context.load_cert_chain(settings.cert_file, settings.key_file)
    return context


def _failure(address: str, what: str, error: BaseException) -> Unreachable:
    reasons = f"{error} {error.__cause__}"
    if "Protocol error" in reasons:
        return NoBroker(f"{address} does not speak MQTT; set host and port to a broker's address")
    return Unreachable(f"{address} {'no longer answers' if 'Keep alive' in reasons else what}")


def _reason(error: BaseException) -> str:
    text = re.sub(r"\[Errno -?\d+\] (.)", lambda found: found[1].lower(), str(error))
    return text.replace("\n", " ")[:200] or type(error).__name__
