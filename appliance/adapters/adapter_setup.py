"""The adapters of a configuration: their runners, their start, and the publishers of the home."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

from appliance.adapters.adapter_runner import AdapterRunner
from appliance.adapters.address_gates import AddressGates
from appliance.adapters.base import AdapterContext, Secrets
from appliance.adapters.kinds import kind_of
from appliance.adapters.lua_kinds.host import KindHost
from appliance.adapters.mqtt.kind import Mqtt, client_id_of, hub_id_of, next_boot
from appliance.adapters.mqtt.out.publishing import HomeAccess, HubTopics, keep_published, published_topics
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.errors import StoreFailed
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.imports import import_ahead
from appliance.tables.addresses import server_of
from appliance.tasks import Tasks

log = logging.getLogger("adapters")


class AdapterStart:
    """The enabled sections: makes their runners, and starts and stops their adapters.

    Adapters start once the API answers, because the modules that they need take long to import. While entered,
    `start` and `stop` change which sections run.
    """

    def __init__(self, sections: Mapping[str, Any]) -> None:
        self._sections = sections
        self._begins = {name: asyncio.Event() for name in sections}
        self._stacks: dict[str, AsyncExitStack] = {}
        self._runners: list[AdapterRunner] = []
        self._has_begun = False

    async def __aenter__(self) -> AdapterStart:
        for runner in self._runners:
            await self.enter(runner.name, runner)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop all sections at once: each may take seconds."""
        await asyncio.gather(*map(self._close, tuple(self._stacks)))

    async def enter(self, name: str, part: AbstractAsyncContextManager[Any]) -> None:
        """Enter a part of the section, which is left when the section stops."""
        await self._stacks.setdefault(name, AsyncExitStack()).enter_async_context(part)

    async def start(self, name: str, settings: Any) -> AdapterRunner:
        """Start the adapter of a section while the hub runs."""
        await import_ahead([kind_of(settings).adapter_module])
        begin = self._begins[name] = asyncio.Event()
        runner = self._make_runner(name, settings)
        await self.enter(name, runner)
        if self._has_begun:
            begin.set()
        return runner

    async def stop(self, name: str) -> None:
        """Stop the adapter of a section, and all that belongs to it."""
        self._begins.pop(name, None)
        await self._close(name)

    async def _close(self, name: str) -> None:
        if (stack := self._stacks.pop(name, None)) is not None:
            await stack.aclose()

    def build_runners(
        self,
        registry: Registry,
        bus: Bus,
        clock: Clock,
        secrets: Callable[[str], Secrets],
        open_session: Callable[[], Any],
        record: Callable[[Iterable[Device]], Awaitable[None]],
        root: Path,
        timezone: tzinfo = UTC,
        kinds: KindHost | None = None,
    ) -> list[AdapterRunner]:
        """Return a runner for each section, in the order of the configuration; `kinds` runs those in Lua."""
        gates = AddressGates()

        def make_runner(name: str, settings: Any) -> AdapterRunner:
            context = AdapterContext(
                name=name,
                clock=clock,
                publish=Publisher(name, registry, bus, clock),
                secrets=secrets(name),
                open_session=open_session,
                gates=gates,
                record=record,
                root=root,
                timezone=timezone,
                kinds=kinds,
            )
            return AdapterRunner(partial(kind_of(settings).build, settings), context, self._begins[name])

        self._make_runner = make_runner
        self._runners = [make_runner(name, settings) for name, settings in self._sections.items()]
        return self._runners

    async def begin(self) -> None:
        """Import the modules of the adapters on a thread, then start each adapter in its own turn of the loop.

        A hundred adapters that start in one turn would block the loop for tens of milliseconds, at the start and
        again at each poll.
        """
        await import_ahead(kind_of(settings).adapter_module for settings in self._sections.values())
        self._has_begun = True
        self._start_next(iter([*self._begins.values()]))

    def _start_next(self, begins: Iterator[asyncio.Event]) -> None:
        if (begin := next(begins, None)) is not None:
            begin.set()
            asyncio.get_running_loop().call_soon(self._start_next, begins)


class LateSession:
    """The HTTP session that adapters and history share. The session is opened, and its client imported, at the first
    use."""

    def __init__(self) -> None:
        self._session: Any = None

    async def __aenter__(self) -> LateSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    def open(self) -> Any:
        """Return the one `DeviceSession`; leaving the context closes it."""
        if self._session is None:
            from appliance.adapters.device_http import DeviceSession

            self._session = DeviceSession()
        return self._session

    def lines_to(self, clock: Clock, url: str, token: str | None) -> LinePost:
        """Return a client that posts line protocol to the address."""
        return LinePost(url, token, self.open, clock)


MAX_ANSWER_CHARS = 200
"""Length of a server's explanation of a refusal."""


class LinePost:
    """Posts lines to one address; the first post opens the session.

    A token of one word is sent as InfluxDB expects it, `Token …`; a token of two words already has its scheme,
    `Bearer …`.
    """

    def __init__(self, url: str, token: str | None, open_session: Callable[[], Any], clock: Clock) -> None:
        self._address = server_of(url)
        self._path = url.removeprefix(self._address) or "/"
        self._token = token
        self._open_session = open_session
        self._clock = clock
        self._http: Any = None

    async def __call__(self, body: bytes) -> tuple[int, str]:
        """Return the status and text of the answer, without the token. Raises `AdapterFailed` without an answer."""
        if self._http is None:
            await import_ahead(["appliance.adapters.device_http"])
            from appliance.adapters.device_http import HttpClient
            from appliance.adapters.http_access import HttpAccess

            scheme = "" if self._token is None or " " in self._token else "Token "
            headers = {} if self._token is None else {"Authorization": f"{scheme}{self._token}"}
            self._http = HttpClient(self._open_session(), self._address, self._clock, HttpAccess(headers=headers))
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        response = await self._http.exchange("POST", self._path, headers=headers, data=body)
        text = response.body[: 4 * MAX_ANSWER_CHARS].decode(errors="replace")[:MAX_ANSWER_CHARS]
        answer = " ".join(text.split())
        return response.status, answer if self._token is None else answer.replace(self._token, "***")


PUBLISH_RETRY_SECS = 60.0
"""Seconds until a publisher again tries to store its ids and the number of its run."""

OpenPublishers = Callable[[], Awaitable[list[AbstractAsyncContextManager[Any]]]]


class SectionPublishers:
    """The publishers of a section, which start once the card has stored their ids and the number of this run."""

    def __init__(self, name: str, open_: OpenPublishers, clock: Clock) -> None:
        self._name = name
        self._open = open_
        self._clock = clock
        self._stack = AsyncExitStack()
        self._tasks = Tasks()

    async def __aenter__(self) -> SectionPublishers:
        try:
            await self._enter()
        except StoreFailed as error:
            log.warning("%s: publishing waits for the card: %s", self._name, error)
            self._tasks.start(self._retry(), f"{self._name}: start of publishing")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()
        await self._stack.aclose()

    async def _enter(self) -> None:
        for each in await self._open():
            await self._stack.enter_async_context(each)

    async def _retry(self) -> None:
        while True:
            await self._clock.sleep(PUBLISH_RETRY_SECS)
            with suppress(StoreFailed):
                await self._enter()
                log.info("%s: publishing has started", self._name)
                return


async def open_publishers(
    adapters: Mapping[str, Any],
    secrets_of: Callable[[str], Secrets],
    home: HomeAccess,
    clock: Clock,
    root: Path,
    every_broker: Collection[str] = (),
) -> list[AbstractAsyncContextManager[Any]]:
    """Return a publisher for each section with `publish = true`, which publishes the home while entered.

    Topics that a section no longer publishes are cleared. `every_broker` also has MQTT sections that do not publish;
    their devices are not published either. Its content can change later.

    Raises `StoreFailed` if the number of this run cannot be saved.
    """
    brokers = {name: settings for name, settings in adapters.items() if isinstance(settings, Mqtt)}
    publishers: list[AbstractAsyncContextManager[Any]] = []
    for name, settings in brokers.items():
        secrets = secrets_of(name)
        if (before := published_topics(secrets)) is None and not settings.publish:
            continue
        # This imports the MQTT library, so it runs only if a section publishes.
        from appliance.adapters.mqtt.out.hub_publisher import HubPublisher
        from appliance.adapters.mqtt.out.withdrawal import withdrawal

        hub_id, located = await hub_id_of(settings, secrets), settings.located(root)
        client_id = await client_id_of(name, secrets)
        now = HubTopics(hub_id, settings.discovery_prefix) if settings.publish else None
        if before is not None and before != now:
            publishers.append(withdrawal(located, before, now, secrets, clock, f"{client_id}-back"))
        if settings.publish:
            await keep_published(secrets, before or now)
            boot = await next_boot(secrets, clock)
            publishers.append(
                HubPublisher(located, hub_id, boot, home, clock, every_broker or brokers, f"{client_id}-out")
            )
    return publishers
