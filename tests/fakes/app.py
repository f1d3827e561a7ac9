"""A running hub for journeys: simulated devices, a hub, its server on loopback, and its clients."""

from __future__ import annotations

import asyncio
import json as jsonlib
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
from msgspec.structs import replace
from yarl import URL

from appliance import config
from appliance.adapters.elgato_lights.kind import ElgatoLights
from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.network_search.search import Found
from appliance.adapters.roku_tv.kind import RokuTv
from appliance.adapters.roku_tv.simulator import TvSimulator
from appliance.api.app import build_app
from appliance.api.authenticator import Authenticator
from appliance.api.frames import frame_of
from appliance.api.http_server.server import Server
from appliance.api.keyring import Keyring
from appliance.api.limits import ApiLimits
from appliance.api.roles import Role
from appliance.api.simulation import SimulationResult
from appliance.api.tokens import KeyToken
from appliance.cli.simulation.hub_simulations import HubSimulations
from appliance.clock import Clock
from appliance.config import Config
from appliance.home.bus import Bus
from appliance.home.events import Event, SystemErrorReported
from appliance.hub import Hub
from appliance.store.disk import Disk
from appliance.tables.addresses import Address
from tests.fakes import contract_recorder
from tests.fakes.keys import key_of

MASTER = "test-master-key-of-the-hub"
READER = KeyToken.make("reader")
_READERS = key_of(READER, Role.READ)

LIGHT, TV = "elgato_lights:light:0", "roku_tv:tv"
"""The default devices of a hub."""

LARGE = b" " * (1 << 20) + b"{}"
"""A request body that exceeds the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A response as the client received it. If there is no body, `json` is None."""

    status: int
    json: Any
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(slots=True, kw_only=True)
class App:
    """A running hub, its simulated devices, and a client."""

    hub: Hub
    url: str
    light: LightSimulator
    tv: TvSimulator
    session: aiohttp.ClientSession
    events: list[Event] = field(default_factory=list)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        data: bytes | None = None,
        token: str | None = MASTER,
        headers: Mapping[str, str] | None = None,
    ) -> Received:
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        content = jsonlib.dumps(json).encode() if data is None and json is not None else data
        body = None if content is None else BytesIO(content)
        url = URL(self.url + path, encoded=True)
        async with self.session.request(method, url, data=body, headers=sent, allow_redirects=False) as response:
            received = await response.read()
        contract_recorder.note(method, path, response.status)
        contract_recorder.judge(method, path, response.status, response.headers, received)
        media_type = response.headers.get("content-type", "")
        parsed: Any = None if media_type.startswith("image/") else received.decode() or None
        if received and media_type == "application/json":
            parsed = jsonlib.loads(received)
        return Received(status=response.status, json=parsed, headers=dict(response.headers), body=received)

    async def get(self, path: str, **more: Any) -> Received:
        return await self.ask("GET", path, **more)

    async def post(self, path: str, json: Any = None, **more: Any) -> Received:
        return await self.ask("POST", path, json=json, **more)

    async def delete(self, path: str, **more: Any) -> Received:
        return await self.ask("DELETE", path, **more)

    async def command(self, device_id: str, capability: str, action: str, value: Any = None) -> Received:
        body = {"capability": capability, "action": action}
        if value is not None:
            body["value"] = value
        return await self.post(f"/devices/{device_id}/command", body)

    async def device(self, device_id: str) -> Any:
        return (await self.get(f"/devices/{device_id}")).json

    async def ready(self) -> None:
        """Wait until the hub reports that it is ready."""
        async with asyncio.timeout(20):
            while (await self.get("/ready", token=None)).status != 200:  # noqa: ASYNC110 - asked over HTTP
                await asyncio.sleep(0.005)

    async def received(self, frames: Frames) -> list[Any]:
        """Return all frames that have been sent until now. To find the last frame, publish a marker and read up to
        it."""
        marker = f"marker {len(self.events)}"
        self.hub.bus.publish(SystemErrorReported(message=marker))
        collected = []
        while (frame := await frames.next()).get("message") != marker:
            collected.append(frame)
        return collected

    @asynccontextmanager
    async def stream(self, token: str | None = MASTER, query: str = "") -> AsyncIterator[Frames]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with self.session.ws_connect(f"{self.url}/events{query}", headers=headers) as socket:
            contract_recorder.note("GET", "/events", 101)
            yield Frames(socket)


class Frames:
    """The frames of an event stream as they arrive."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def next(self, within: float = 20.0) -> Any:
        return await self.socket.receive_json(timeout=within)

    async def until(self, type_: str, within: float = 20.0) -> list[Any]:
        """Return the frames up to and including the first frame of this type."""
        frames: list[Any] = []
        async with asyncio.timeout(within):
            while not frames or frames[-1]["type"] != type_:
                frames.append(await self.next(within))
        return frames


HAS_DASHBOARD = False
"""Whether hubs serve the dashboard, whose files are a third of all routes. Only the dashboard's tests set this."""


@asynccontextmanager
async def open_app(
    *,
    clock: Clock | None = None,
    light: LightSimulator | None = None,
    tv: TvSimulator | None = None,
    adapters: Mapping[str, Any] | str | None = None,
    poll_interval_secs: int | tuple[int, int] = 1,
    data_dir: Path | None = None,
    disk: Disk | None = None,
    limits: ApiLimits | None = None,
    event_capacity: int = 1024,
    wait_until_ready: bool = True,
    root: Path | None = None,
    toml: str = "",
    file: Path | None = None,
    found: Sequence[Found] = (),
) -> AsyncIterator[App]:
    """Run a hub with both simulated devices, polled every second of the clock.

    `adapters` replaces the devices: settings by section, or the sections as TOML. If `poll_interval_secs` has two
    values, the first value is for the light. `toml` is added to the configuration, and `root` is the folder that
    contains `config/`. `found` is the result of every search of the local network. If `file` is given, the hub reads
    and reloads this configuration file instead.
    """
    async with AsyncExitStack() as stack:
        lamp = await stack.enter_async_context(light or LightSimulator())
        set_ = await stack.enter_async_context(tv or TvSimulator())
        enabled = adapters
        if enabled is None:
            both = poll_interval_secs
            lights_secs, tvs_secs = both if isinstance(both, tuple) else (both, both)
            enabled = {
                "elgato_lights": ElgatoLights(base_url=lamp.url, poll_interval_secs=lights_secs),
                "roku_tv": RokuTv(ip_address=set_.host, port=set_.port, poll_interval_secs=tvs_secs),
            }
        folder = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lares-app-")))
        load = None if file is None else partial(config.load, file, {})
        settings = _configure(enabled, root or folder, toml) if load is None else load()
        hub = Hub(settings, disk or Disk(folder), clock or Clock(), frame_of=frame_of, load=load)
        events = _record(hub.bus)
        await stack.enter_async_context(hub)
        keyring = stack.enter_context(closing(_open_keyring(hub)))
        server = await stack.enter_async_context(
            _serve(hub, keyring, settings, limits or ApiLimits(), event_capacity, found)
        )
        await hub.adapters.begin()
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        url = f"http://127.0.0.1:{server.port}"
        app = App(hub=hub, url=url, light=lamp, tv=set_, session=session, events=events)
        if wait_until_ready:
            await app.ready()
        yield app


def _configure(adapters: Mapping[str, Any] | str, root: Path, toml: str) -> Config:
    file = str(root / "config" / "test.toml")
    sections = config.parse(adapters, file, {}).adapters if isinstance(adapters, str) else adapters
    return replace(config.parse(toml, file, {}), adapters=sections)


def _record(bus: Bus) -> list[Event]:
    events: list[Event] = []
    bus.listen(events.append)
    return events


def _open_keyring(hub: Hub) -> Keyring:
    readers = {_READERS.name: _READERS}
    keyring = Keyring(hub.store.keys, hub.clock)
    keyring.authenticator = Authenticator(
        lambda name: readers.get(name) or hub.store.keys.find(name), master_key=MASTER
    )
    return keyring


async def _find_nothing(_: float) -> list[Found]:
    return []


async def _simulate_nothing(*_: object) -> SimulationResult:
    raise NotImplementedError


NO_MORE: dict[str, Any] = {"search": _find_nothing, "make_backup": bytes, "simulate": _simulate_nothing}
"""Arguments of `build_app` for tests without discovery and backups."""


def _serve(
    hub: Hub, keyring: Keyring, settings: Config, limits: ApiLimits, event_capacity: int, found: Sequence[Found]
) -> Server:
    async def search(seconds: float) -> list[Found]:
        return [*found]

    simulate = HubSimulations(Path(settings.file)).simulate
    more = {
        **NO_MORE,
        "search": search,
        "simulate": simulate,
        "has_dashboard": HAS_DASHBOARD and settings.dashboard.enabled,
    }
    sanic_app = build_app(hub, keyring, limits, event_capacity, **more)
    address = Address(host="127.0.0.1", port=0)
    return Server(sanic_app, address, Clock(), work=hub)
