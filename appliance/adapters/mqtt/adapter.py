"""The adapter for a broker: maintains the connection, and sends commands and messages."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from appliance.adapters.base import Adapter, AdapterContext, CommandResult, Operation, Picture
from appliance.adapters.confirmation import RESULT_SECS
from appliance.adapters.mqtt.broker import Broker, BrokerConnection
from appliance.adapters.mqtt.broker_reconnection import BrokerReconnection
from appliance.adapters.mqtt.kind import Mqtt
from appliance.adapters.mqtt.message_loop import MessageLoop
from appliance.adapters.mqtt.messages import outgoing_of
from appliance.adapters.mqtt.stored_texts import client_id_of, hub_id_of, keep_stop, stopped_at
from appliance.errors import StoreFailed, Unreachable
from appliance.event_loop import in_steps, wait_for_short_turn
from appliance.home.commands import Command
from appliance.home.values import Value
from appliance.tasks import run_together


class MqttAdapter(Adapter):
    """One broker. Reconnects after each loss of the connection.

    Commands to different devices run concurrently, because the broker forwards all of them.
    """

    concurrency = 1_000
    command_secs = 3 * RESULT_SECS
    """The timeouts inside a command are far shorter, so that they expire first even on a busy event loop."""

    def __init__(self, context: AdapterContext, settings: Mqtt) -> None:
        super().__init__(context)
        self._settings = settings.located(context.root)
        self._secrets = context.secrets
        self._locale = context.locale
        self.message_loop: MessageLoop | None = None
        """None until the id of the hub is known."""

    async def run(self) -> None:
        """Keep the connection and publish changes until cancelled."""
        hub_id = await hub_id_of(self._settings, self._secrets)
        # If this hub publishes its own devices, the publisher's connection has the status topic and the last will.
        status = None if self._settings.publish else f"lares/{hub_id}/status"
        stopped = stopped_at(self._secrets)
        loop = MessageLoop(self._settings, hub_id, status, self.publish, self.clock, self._locale, stopped)
        self.message_loop = loop
        broker = Broker(self._settings, await client_id_of(self.name, self._secrets), status, loop.inbox.put)
        connecting = BrokerReconnection(broker, self.clock, loop.run_session, self._publish_loss).run()
        await run_together(connecting, loop.keep_reading(), loop.keep_time())

    async def __aexit__(self, *_: object) -> None:
        """Store the stop time. After a restart, a retained value that had not yet expired at that time is newer than
        the stored state."""
        with contextlib.suppress(StoreFailed):
            await keep_stop(self._secrets, self.clock)
        if self.message_loop is not None:
            await in_steps(self.clock, self.message_loop.inbox.discard_all())

    async def command(self, device_id: str, command: Command) -> CommandResult:
        """Publish a command. Return when the device reports the result. If there is no state topic, return
        immediately."""
        loop, connection = self._connected("command")
        await loop.processor.commands.run(connection, device_id, command)
        return CommandResult()

    async def picture(self, device_id: str, attribute: str | None = None) -> Picture | None:
        """Return the newest still picture of a camera or an image, or None."""
        await wait_for_short_turn()  # the pictures for several clients would make one turn long
        return None if self.message_loop is None else self.message_loop.processor.pictures.find(device_id, attribute)

    @property
    def operations(self) -> Mapping[str, Operation]:
        """`publish` sends a message to the broker. `notify` displays a message on devices."""
        return {"publish": self._publish_message, "notify": self._notify}

    async def _publish_message(self, payload: Mapping[str, Value]) -> Value:
        """Publish `{topic, payload, retain?, qos?}`. With QoS 1 or 2, return when the broker has acknowledged the
        message."""
        hub_id = "" if self.message_loop is None else self.message_loop.hub_id
        message = outgoing_of(payload, (self._settings.discovery_prefix, f"lares/{hub_id}"))
        _, connection = self._connected("message")
        await connection.publish(message)
        return {"topic": message.topic}

    async def _notify(self, payload: Mapping[str, Value]) -> Value:
        """Send `{message, title?, device_id?}` to the devices that display messages. Return once the message is
        sent."""
        loop, connection = self._connected("message")
        return {"status": "sent", "devices": await loop.processor.commands.notify(connection, payload)}

    def _connected(self, what: str) -> tuple[MessageLoop, BrokerConnection]:
        """Return the loop and its connection. Raise `Unreachable` if the broker is not connected."""
        if self.message_loop is None or self.message_loop.connection is None:
            raise Unreachable(f"the broker {self._settings.host} is not connected; the {what} was not sent")
        return self.message_loop, self.message_loop.connection

    def _publish_loss(self, error: Unreachable) -> None:
        self.publish.lost(error)
        self.publish.started()


def build(settings: Mqtt, context: AdapterContext) -> Adapter:
    return MqttAdapter(context, settings)
