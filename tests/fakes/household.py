"""A household with a broker: devices that execute commands, a hub that is stopped, started, and killed, and a
clock that jumps."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from appliance import config
from appliance.adapters.mqtt.announcements.discovery import QUIET_SECS
from appliance.adapters.mqtt.message_loop import TICK_SECS
from appliance.clock import Clock
from tests.fakes.app import App, open_app
from tests.fakes.mqtt_broker import Message
from tests.fakes.patience import until

TICKS = frozenset({QUIET_SECS, TICK_SECS, 2.0})
"""A wait of exactly this number of seconds is a tick, which has no effect on the home. A jump skips ticks."""

OFF_SECS = 20
"""The number of seconds of the home's time that a restart takes."""


class JumpingClock(Clock):
    """A clock that shows real time plus the sum of all jumps. A jump ends each wait whose time has passed."""

    recheck_secs = 86_400.0

    def __init__(self, start: datetime) -> None:
        self._loop = asyncio.get_running_loop()
        self._start, self._began, self._jumped = start, self._loop.time(), 0.0
        self._waits: dict[asyncio.Future[None], tuple[float, float]] = {}

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._start.timestamp() + self.monotonic(), self._start.tzinfo)

    def monotonic(self) -> float:
        return self._loop.time() - self._began + self._jumped

    def is_synchronised(self) -> bool:
        return True

    async def sleep(self, seconds: float) -> None:
        """Return when these seconds have passed, or when a jump has skipped them."""
        if seconds <= 0:
            await asyncio.sleep(0)
        else:
            await self.wait(asyncio.Event(), seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event, for at most these seconds. Return whether the event was set."""
        if event.is_set() or seconds <= 0:
            return event.is_set()
        alarm: asyncio.Future[None] = self._loop.create_future()
        self._waits[alarm] = (self.monotonic() + seconds, seconds)
        either: list[asyncio.Future[Any]] = [alarm, asyncio.ensure_future(event.wait())]
        try:
            while not (event.is_set() or alarm.done()):
                left = self._waits[alarm][0] - self.monotonic()
                await asyncio.wait(either, timeout=max(left, 0.0), return_when=asyncio.FIRST_COMPLETED)
                if self._waits[alarm][0] <= self.monotonic():
                    return event.is_set()
        finally:
            del self._waits[alarm]
            for each in either:
                each.cancel()
        return event.is_set()

    def next_due(self) -> float:
        """Return the seconds until the next wait that is not a tick."""
        dues = [due for due, seconds in self._waits.values() if seconds not in TICKS]
        return min(dues, default=float("inf")) - self.monotonic()

    def jump(self, seconds: float) -> None:
        """Advance the clock by these seconds at once."""
        self._jumped += max(seconds, 0.0)
        for alarm, (due, _) in self._waits.items():
            if due <= self.monotonic() and not alarm.done():
                alarm.set_result(None)


@dataclass(kw_only=True)
class Household:
    """The home from its start to the end of the test. `lines` contains the commands that devices have received."""

    root: Path
    toml: str
    clock: JumpingClock
    broker: Any
    announced: frozenset[str]
    app: App = field(init=False)
    lines: list[str] = field(default_factory=list)
    lives: int = 0
    _life: AsyncExitStack = field(default_factory=AsyncExitStack)
    _markers: int = 0

    @property
    def data(self) -> Path:
        return self.root / f"data{self.lives}"

    def note(self, what: str) -> None:
        """Record an event with the home's time."""
        zone = self.app.hub.timezone
        self.lines.append(f"{self.clock.now().astimezone(zone):%a %H:%M} {what}")

    async def start(self) -> None:
        self.data.mkdir(exist_ok=True)
        adapters = config.parse(self.toml, str(self.root / "config/default.toml"), {}).adapters
        self.app = await self._life.enter_async_context(
            open_app(
                clock=self.clock,
                adapters=adapters,
                data_dir=self.data,
                root=self.root,
                toml=self.toml,
                wait_until_ready=False,
            )
        )
        health = self.app.hub.health
        await until(lambda: not health.list_missing() and self.announced <= self._list_online())
        await self.settle()

    def _list_online(self) -> set[str]:
        devices = self.app.hub.registry.list_devices()
        return {each.id for each in devices if each.attributes["state"] == "online"}

    async def stop(self) -> None:
        await self._life.aclose()

    async def restart(self, *, is_killed: bool, off_secs: float = OFF_SECS) -> None:
        """Stop the hub, and start it again. After a kill, the hub starts with the state of the card before the
        stop."""
        if is_killed:
            shutil.copytree(self.data, self.root / f"data{self.lives + 1}")
        await self.stop()
        self.lives += is_killed
        self.clock.jump(off_secs)
        await self.start()

    def show(self, name: str, payload: str) -> None:
        """Publish a message of a device."""
        self.broker.publish(Message(topic=f"home/{name}", payload=payload.encode(), qos=1, retain=False))

    async def go_on_until(self, instant: datetime) -> None:
        """Move the clock from one due time to the next until it reaches `instant`."""
        while (left := (instant - self.clock.now()).total_seconds()) > 0:
            self.clock.jump(min(left, self.clock.next_due() + 0.001))
            await self._rest()

    async def settle(self) -> None:
        """Wait until the hub has processed all messages, and all tasks have ended or sleep."""
        self._markers += 1
        registry = self.app.hub.registry

        def has_come() -> bool:
            self.show("marker", str(self._markers))
            [marker] = registry.find_devices(["mqtt:marker"])
            shown = marker.attributes.get("temperature")
            return shown is not None and shown["value"] == self._markers

        await self._rest()
        await until(has_come)
        await self._rest()

    async def _rest(self) -> None:
        calm = 0
        async with asyncio.timeout(60):
            while calm < 20:
                await asyncio.sleep(0)
                calm = calm + 1 if self._is_idle() else 0
                if not calm:
                    await asyncio.sleep(0.001)

    def _is_idle(self) -> bool:
        """Return whether nothing is being written, and all executions sleep."""
        hub = self.app.hub
        listed = [each for executor in hub.executors for each in executor.list_executions()]
        return hub.store.document._is_idle.is_set() and all(each.doing.startswith("sleep") for each in listed)


@asynccontextmanager
async def open_household(
    root: Path, toml: str, start: datetime, broker: Any, announcements: Mapping[str, Mapping[str, Any]]
) -> AsyncIterator[Household]:
    """Run the home with its hub."""
    announced = frozenset(f"mqtt:{config['device']['identifiers'][0]}" for config in announcements.values())
    home = Household(root=root, toml=toml, clock=JumpingClock(start), broker=broker, announced=announced)
    async with broker.client() as client:
        for topic, announcement in announcements.items():
            await client.publish(f"homeassistant/{topic}/config", json.dumps(announcement), qos=1, retain=True)
        await client.subscribe("home/+/set/#", qos=1)
        running = asyncio.create_task(_run_devices(home, client))
        try:
            await home.start()
            yield home
        finally:
            await home.stop()
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


async def _run_devices(home: Household, client: Any) -> None:
    states: dict[str, dict[str, Any]] = {}
    async for message in client.messages:
        _, name, _, *what = message.topic.value.split("/")
        sent = message.payload.decode()
        home.note(" ".join([name, *what, sent]))
        if what or not sent.startswith("{"):
            client_topic, shown = "/".join([name, *what]), sent
        else:
            states[name] = states.get(name, {}) | json.loads(sent)
            client_topic, shown = name, json.dumps(states[name])
        home.show(client_topic, shown)
