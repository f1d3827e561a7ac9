"""The application: the route table, and how Sanic is made to serve it."""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import orjson
from sanic import HTTPResponse, Request, Sanic

from appliance.api.auth import Authenticator, Principal, bearer_of
from appliance.api.body import guard
from appliance.api.errors import answer_error
from appliance.api.limits import Limits
from appliance.api.payloads import DeviceEncoder
from appliance.api.payloads import adapter as adapter_payload
from appliance.api.route import Call, Route
from appliance.api.routes import adapters, devices, events, groups, rooms, system
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
    *events.ROUTES,
)
"""Every route that there is."""

_NEVER = 7 * 86_400.0
"""Seconds: longer than any request; what takes long is limited where it is done."""

_numbers = itertools.count(1)


def build_app(hub: Hub, authenticator: Authenticator, limits: Limits, event_capacity: int) -> Sanic[Any, Any]:
    """The application that serves this hub."""
    app: Sanic[Any, Any] = Sanic(
        f"lares-{next(_numbers)}",
        configure_logging=False,
        dumps=orjson.dumps,
        loads=orjson.loads,
        env_prefix="LARES_SANIC_",
    )
    _configure(app, limits)
    app.error_handler.add(Exception, answer_error)
    app.register_middleware(_gatekeeper(authenticator, limits), "request")
    stream = EventStream(hub.bus, event_capacity)
    resources = _build_resources(hub, stream)
    for route in ROUTES:
        _add(app, route, resources, limits)
    return app


def _configure(app: Sanic[Any, Any], limits: Limits) -> None:
    app.config.update(
        {
            "ACCESS_LOG": False,
            "AUTO_EXTEND": False,
            "MOTD": False,
            "REQUEST_MAX_SIZE": limits.body_bytes,
            "REQUEST_MAX_HEADER_SIZE": limits.head_bytes,
            "REQUEST_TIMEOUT": limits.head_secs,
            "RESPONSE_TIMEOUT": _NEVER,
            "KEEP_ALIVE_TIMEOUT": limits.idle_secs,
            "WEBSOCKET_MAX_SIZE": limits.message_bytes,
            "WEBSOCKET_PING_INTERVAL": limits.ping_secs,
            "WEBSOCKET_PING_TIMEOUT": limits.ping_secs,
        }
    )


def _build_resources(hub: Hub, stream: EventStream) -> Mapping[type, object]:
    """One of each resource, by its class; each gets the parts that it uses."""
    encoder = DeviceEncoder()
    probes = {
        "hub": lambda: _probe_hub(hub),
        "counts": lambda: _probe_counts(hub),
        "adapters": lambda: {each.name: adapter_payload(each) for each in hub.health.list_adapters()},
        "events": lambda: {
            "published": hub.bus.published,
            "readers": stream.readers,
            "dropped": stream.dropped,
        },
        "process": system.probe_process,
    }
    built = (
        system.System(hub.health, probes),
        adapters.Adapters(hub.health),
        devices.Devices(hub.registry, hub.dispatcher, encoder),
        rooms.Rooms(hub.registry, hub.dispatcher, encoder),
        groups.Groups(hub.registry, hub.dispatcher, encoder),
        events.Events(stream),
    )
    return {type(each): each for each in built}


def _probe_hub(hub: Hub) -> dict[str, Any]:
    now = hub.clock.now()
    return {
        "version": VERSION,
        "python": platform.python_version(),
        "started_at": timestamp(hub.started_at),
        "now": timestamp(now),
        "uptime_secs": round((now - hub.started_at).total_seconds(), 3),
    }


def _probe_counts(hub: Hub) -> dict[str, int]:
    return {
        "adapters": len(hub.health.list_adapters()),
        "devices": len(hub.registry.list_devices()),
        "rooms": len(hub.registry.list_rooms()),
        "groups": len(hub.registry.list_groups()),
    }


def _gatekeeper(authenticator: Authenticator, limits: Limits) -> Callable[[Request], Coroutine[Any, Any, None]]:
    async def admit(request: Request) -> None:
        """Let the request pass when its key may do what its route does; unknown paths need a key too."""
        guard(request, limits)
        route: Route | None = None if request.route is None else request.route.ctx.row
        if _is_unreadable(request) or (route is not None and route.role is None):
            return
        principal: Principal = await authenticator.identify(bearer_of(request.headers.get("authorization")))
        if route is not None and route.role is not None:
            principal.require(route.role)

    return admit


def _is_unreadable(request: Request) -> bool:
    """Whether this is the stand-in that Sanic makes when it could not even read the head of a request."""
    return request.method == "NONE"


def _add(app: Sanic[Any, Any], route: Route, resources: Mapping[type, object], limits: Limits) -> None:
    owner, _, _ = route.handler.__qualname__.partition(".")
    resource = next(each for kind, each in resources.items() if kind.__name__ == owner)

    async def handle(request: Request, **ids: str) -> HTTPResponse | None:
        return await route.handler(resource, Call(request=request, route=route, limits=limits), **ids)

    if route.is_websocket:
        handle.is_websocket = True  # type: ignore[attr-defined]
    app.add_route(
        handle,
        route.path,
        methods=["GET", "HEAD"] if route.method == "GET" else [route.method],
        name=route.handler.__qualname__.replace(".", "_"),
        strict_slashes=True,
        stream=True,
        unquote=True,
        ctx_row=route,
    )
