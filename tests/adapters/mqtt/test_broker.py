"""The connection to a broker: who else uses its client id is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from appliance.adapters.mqtt import broker as hub
from appliance.adapters.mqtt.mqtt_settings import Mqtt
from appliance.clock import Clock
from tests.adapters.mqtt.broker import PASSWORD, USER, Broker, both_brokers


class Impatient(Clock):
    """The box's clock, on which every pause is short."""

    async def sleep(self, seconds: float) -> None:
        """Wait next to nothing."""
        await super().sleep(min(seconds, 0.01))


@asynccontextmanager
async def losing(ours: hub.Broker) -> AsyncIterator[tuple[asyncio.Event, asyncio.Queue[str]]]:
    """A connection that is kept within the context: each time that it stands, and why it was lost."""
    connected, losses = asyncio.Event(), asyncio.Queue[str]()

    async def session(_: hub.BrokerConnection) -> None:
        connected.set()
        await asyncio.Event().wait()

    keeping = asyncio.create_task(
        hub.keep_connected(ours, Impatient(), session, lambda error: losses.put_nowait(str(error)))
    )
    try:
        yield connected, losses
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


def ours_at(broker: Broker) -> hub.Broker:
    """The hub's side of that broker."""
    settings = Mqtt(host="127.0.0.1", port=broker.port, username=USER, password=PASSWORD)
    return hub.Broker(settings, "lares-7", None, lambda _: None)


@both_brokers
async def test_who_takes_the_session_over_again_is_told_with_the_client_id(broker: Broker) -> None:
    told = []
    async with losing(ours_at(broker)) as (connected, losses):
        for _ in range(3):
            await connected.wait()
            connected.clear()
            async with broker.client("lares-7"):
                told.append(await losses.get())
    assert told[0].startswith(f"127.0.0.1:{broker.port} has closed the connection")
    assert "takes over the session of the client id lares-7" in told[1] and told[1] == told[2]
