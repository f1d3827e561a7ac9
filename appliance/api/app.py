"""The application: the route table, and how Sanic is made to serve it."""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any

import orjson
from sanic import HTTPResponse, Request, Sanic
from sanic.config import Config

from appliance.api.auth import Authenticator
from appliance.api.connection import Peers
from appliance.api.cors import Cors
from appliance.api.gate import Gate
from appliance.api.keyring import Keyring
from appliance.api.limits import Limits
from appliance.api.payloads import DeviceEncoder
from appliance.api.payloads import adapter as adapter_payload
from appliance.api.payloads import reload as reload_payload
from appliance.api.rate import Buckets
from appliance.api.route import Call, Route
from appliance.api.routes import (
    adapters,
    automations,
    devices,
    document,
    events,
    groups,
    keys,
    rooms,
    scenes,
    scripts,
    system,
)
from appliance.api.stream import EventStream
from appliance.clock import timestamp
from appliance.hub import Hub
from appliance.version import VERSION

ROUTES: tuple[Route, ...] = (
    *system.ROUTES,
    *adapters.ROUTES,
    *devices.ROUTES,
    *rooms.ROUTES,
    *groups.ROUTES,
    *scenes.ROUTES,
    *automations.ROUTES,
    *scripts.ROUTES,
    *keys.ROUTES,
    *events.ROUTES,
    *document.ROUTES,
)
"""Every route that there is."""

_NEVER = 7 * 86_400.0
"""Seconds: longer than any request; what takes long is limited where it is done."""

_ANY_SIZE = 1 << 60
"""Bytes: bodies are limited where they are read, and in `Exchange` where they are thrown away."""

_numbers = itertools.count(1)

_Handle = Callable[..., Coroutine[Any, Any, HTTPResponse | None]]


class _Nothing:
    """What is awaited where nothing happens."""

    def __await__(self) -> Iterator[None]:
        return iter(())


_NOTHING = _Nothing()


class Application(Sanic[Any, Any]):
    """Sanic without what nobody here uses: signals and middleware at every step of a request cost half of its speed.

    Sanic's own cure for that, TOUCHUP, rewrites its classes at start, which works for one application a process.
    """

    async def handle_request(self, request: Request) -> None:
        """Answer the request as its route does, or say why not."""
        try:
            request.route, handle, ids = self.router.get(request.path, request.method, None)
            answer = await handle(request, **ids)
            if answer is not None and request.stream is not None:
                exchange: Any = request.stream
                await exchange.respond(answer).send(end_stream=True)
                exchange.conclude()
        except Exception as error:
            await self.handle_exception(request, error, run_middleware=False)

    def dispatch(self, event: str, **more: Any) -> Any:
        """Send a signal, unless it tells of a request."""
        return _NOTHING if event.startswith(("http.", "server.exception.")) else super().dispatch(event, **more)


def build_app(hub: Hub, authenticator: Authenticator, limits: Limits, event_capacity: int) -> Sanic[Any, Any]:
    """The application that serves this hub."""
    app = Application(
        f"lares-{next(_numbers)}",
        config=Config(env_prefix=None),
        configure_logging=False,
        dumps=orjson.dumps,
        loads=orjson.loads,
    )
    _configure(app, limits)
    cors = Cors(limits.origins, (method for route in ROUTES for method in route.methods))
    gate = Gate(authenticator, Buckets(limits.rate, hub.clock), cors, ROUTES)
    app.error_handler.add(Exception, gate.answer)
    keyring = Keyring(hub.keys, authenticator.hasher, hub.clock)
    resources = _build_resources(hub, EventStream(hub.bus, event_capacity), app.ctx.peers, keyring)
    for route in ROUTES:
        _add(app, route, _bind(route, resources, gate, limits))
    return app


def _configure(app: Application, limits: Limits) -> None:
    app.ctx.limits = limits
    app.ctx.peers = Peers(limits)
    app.config.update(
        {
            "ACCESS_LOG": False,
            "AUTO_EXTEND": False,
            "MOTD": False,
            "REQUEST_MAX_SIZE": _ANY_SIZE,
            "REQUEST_TIMEOUT": limits.head_secs,
            "RESPONSE_TIMEOUT": _NEVER,
            "KEEP_ALIVE_TIMEOUT": limits.idle_secs,
            "TOUCHUP": False,
        }
    )


def _build_resources(hub: Hub, stream: EventStream, peers: Peers, keyring: Keyring) -> Mapping[str, object]:
    """One of each resource, by the name of its class; each gets the parts that it uses."""
    encoder = DeviceEncoder()
    probes = {
        "hub": lambda: _probe_hub(hub),
        "counts": lambda: _probe_counts(hub),
        "adapters": lambda: {each.name: adapter_payload(each) for each in hub.health.list_adapters()},
        "store": hub.document.figures,
        "clock": hub.schedule.figures,
        "scenes": hub.scenes.figures,
        "automations": hub.automations.figures,
        "scripts": lambda: _probe_scripts(hub),
        "events": lambda: {
            "published": hub.bus.published,
            "readers": stream.readers,
            "dropped": stream.dropped,
        },
        "sockets": lambda: {"open": peers.count, "refused": peers.refused},
        "process": system.probe_process,
    }
    built = (
        system.System(hub.health, probes, hub.folders),
        adapters.Adapters(hub.health),
        devices.Devices(hub.registry, hub.changes, hub.dispatcher, encoder),
        rooms.Rooms(hub.registry, hub.changes, hub.dispatcher, encoder),
        groups.Groups(hub.registry, hub.changes, hub.dispatcher, encoder),
        scenes.Scenes(hub.scenes, hub.reloaders["scenes"]),
        automations.Automations(hub.automations, hub.reloaders["automations"]),
        scripts.Scripts(hub.reloaders["scripts"]),
        keys.ApiKeys(keyring),
        events.Events(stream),
        document.Document(ROUTES),
    )
    return {type(each).__name__: each for each in built}


def _probe_hub(hub: Hub) -> dict[str, Any]:
    now = hub.clock.now()
    return {
        "version": VERSION,
        "python": platform.python_version(),
        "started_at": timestamp(hub.started_at),
        "now": timestamp(now),
        "uptime_secs": round((now - hub.started_at).total_seconds(), 3),
    }


def _probe_scripts(hub: Hub) -> dict[str, Any]:
    """How Lua does: executions under way, threads, and those given up; and how each folder's last reload ended."""
    lasts = {target: reloader.last for target, reloader in hub.reloaders.items()}
    return {
        "running": hub.runner.running,
        "threads": hub.runner.threads,
        "abandoned": hub.runner.abandoned,
        "last_reload": {target: None if last is None else reload_payload(last) for target, last in lasts.items()},
    }


def _probe_counts(hub: Hub) -> dict[str, int]:
    return {
        "adapters": len(hub.health.list_adapters()),
        "devices": len(hub.registry.list_devices()),
        "rooms": len(hub.registry.list_rooms()),
        "groups": len(hub.registry.list_groups()),
        "scenes": len(hub.scenes.list_scenes()),
        "keys": len(hub.keys.list_all()),
        "automations": len(hub.automations.list_views()),
    }


def _bind(route: Route, resources: Mapping[str, object], gate: Gate, limits: Limits) -> _Handle:
    """What Sanic calls for the route."""
    owner, _, _ = route.handler.__qualname__.partition(".")
    resource = resources[owner]

    async def handle(request: Request, **ids: str) -> HTTPResponse | None:
        principal = await gate.admit(request, route)
        confirm = partial(gate.confirm, principal)
        call = Call(request=request, route=route, limits=limits, principal=principal, confirm=confirm)
        answer = await route.handler(resource, call, **ids)
        return None if answer is None else gate.sign(request, answer)

    return handle


def _add(app: Application, route: Route, handle: _Handle) -> None:
    app.add_route(
        handle,
        route.path,
        methods=route.methods,
        name=route.handler.__qualname__.replace(".", "_"),
        strict_slashes=True,
        unquote=True,
    )
