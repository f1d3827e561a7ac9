"""The connection to a broker: who else uses its client id is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from appliance.adapters.mqtt import broker as hub
from appliance.adapters.mqtt.kind import Mqtt
from appliance.clock import Clock
from tests.adapters.mqtt.broker import PASSWORD, USER, Broker, both_brokers


class Impatient(Clock):
    """The box's clock, on which every pause is over once `may_go_on` is set; `pauses` has how long they should be."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def sleep(self, seconds: float) -> None:
        """Wait until one may go on."""
        self.pauses.append(seconds)
        await self.may_go_on.wait()


@asynccontextmanager
async def losing(ours: hub.Broker, clock: Clock) -> AsyncIterator[tuple[asyncio.Event, asyncio.Queue[str]]]:
    """A connection that is kept within the context: each time that it stands, and why it was lost."""
    connected, losses = asyncio.Event(), asyncio.Queue[str]()

    async def session(_: hub.BrokerConnection) -> None:
        connected.set()
        await asyncio.Event().wait()

    keeping = asyncio.create_task(
        hub.keep_connected(ours, clock, session, lambda error: losses.put_nowait(str(error)))
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
    async with losing(ours_at(broker), Impatient()) as (connected, losses):
        for _ in range(3):
            await connected.wait()
            connected.clear()
            async with broker.client("lares-7"):
                told.append(await losses.get())
    assert told[0].startswith(f"127.0.0.1:{broker.port} has closed the connection")
    assert "takes over the session of the client id lares-7" in told[1] and told[1] == told[2]


@both_brokers
async def test_a_broker_that_is_started_anew_within_seconds_is_no_takeover(broker: Broker) -> None:
    clock = Impatient()
    async with losing(ours_at(broker), clock) as (connected, losses):
        for _ in range(3):
            await connected.wait()
            connected.clear()
            clock.may_go_on.clear()
            broker.stop()
            assert "takes over" not in await losses.get()
            await broker.start()
            clock.may_go_on.set()
    assert len(clock.pauses) == 3 and max(clock.pauses) <= hub.MIN_PAUSE_SECS
