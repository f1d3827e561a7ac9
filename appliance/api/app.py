"""The route table, and the Sanic application that serves it."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec.structs import replace

from appliance.api.cors import Cors
from appliance.api.device_encoder import DeviceEncoder
from appliance.api.figures import Figures
from appliance.api.gate import Gate
from appliance.api.hooks import Hooks
from appliance.api.http_server.application import Application
from appliance.api.http_server.connection_limiter import ConnectionLimiter
from appliance.api.http_server.proxies import TrustedProxies
from appliance.api.http_server.unsent_bytes import UnsentBytes
from appliance.api.keyring import Keyring
from appliance.api.limits import ApiLimits
from appliance.api.rate_limit import Buckets
from appliance.api.request_counts import RequestCounts
from appliance.api.route import ApiParts, ApiResource, Call, Handler, MakeBackup, Search, routes_of
from appliance.api.router import Router
from appliance.api.routes import (
    adapters,
    automations,
    backup,
    completions,
    devices,
    diagnostics,
    documents,
    events,
    files,
    groups,
    history,
    hooks,
    keys,
    log,
    metrics,
    overview,
    preferences,
    recipes,
    rooms,
    scenes,
    sections,
    simulate,
    status,
    system,
    variables,
    why,
)
from appliance.api.routes.dashboard import DashboardApi
from appliance.api.simulation import Simulate
from appliance.api.stream import EventStream
from appliance.home.events import DeviceRemoved
from appliance.hub import Hub

_MODULES = (
    system,
    diagnostics,
    log,
    metrics,
    backup,
    status,
    adapters,
    events,
    documents,
    devices,
    history,
    rooms,
    groups,
    scenes,
    automations,
    variables,
    files,
    sections,
    recipes,
    simulate,
    completions,
    keys,
    preferences,
    hooks,
    overview,
    why,
)
_RESOURCES = tuple(
    each
    for module in _MODULES
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, ApiResource) and each.__module__ == module.__name__
)

ROUTES = tuple(row for resource in _RESOURCES for row in routes_of(resource))
"""Every route of the API, except the dashboard's files."""


def build_app(
    hub: Hub,
    keyring: Keyring,
    limits: ApiLimits,
    event_capacity: int,
    *,
    search: Search,
    make_backup: MakeBackup,
    simulate: Simulate,
    has_dashboard: bool = True,
) -> Application:
    """Return the application that serves this hub. `search` finds devices on the local network."""
    cors = Cors(limits.origins, (method for route in ROUTES for method in route.methods))
    pages = DashboardApi()
    api_routes = [row for row in ROUTES if hub.has_files or not row.resource.needs_files]
    routes = (*api_routes, *pages.list_routes()) if has_dashboard else api_routes
    requests = RequestCounts()
    proxies = TrustedProxies(limits.trusted_proxies)
    limiter = ConnectionLimiter(limits.connections, limits.connections_per_peer, hub.clock.monotonic, proxies)
    unsent = UnsentBytes(limits.unsent_bytes)
    stream = EventStream(hub.bus, event_capacity, hub.start_errors)
    encoder = DeviceEncoder()
    hub.bus.listen(encoder.forget_removed, DeviceRemoved)
    parts = ApiParts(
        hub=hub,
        encoder=encoder,
        hooks=Hooks(hub.registry, hub.bus, hub.dispatcher, hub.automations.engine.has_hook_listener),
        keyring=keyring,
        figures=Figures(hub, stream, limiter),
        requests=requests,
        stream=stream,
        unsent=unsent,
        search=search,
        make_backup=make_backup,
        simulate=simulate,
        routes=api_routes,
    )
    resources: dict[type[Any], object] = {DashboardApi: pages, **{each: each(parts) for each in _RESOURCES}}
    router = Router()
    for route in routes:
        handler = partial(route.handler, resources[route.resource])
        router.add(replace(route, handler=_resolving(handler, hub) if route.has_device else handler))
    gate = Gate(router, keyring.authenticator, Buckets(limits.rate, hub.clock), cors, limits, requests, unsent)
    return Application(gate.respond, gate.handle_error, limits, limiter, unsent)


def _resolving(handler: Handler, hub: Hub) -> Handler:
    """Return a handler that replaces a device alias in the path with the device's id."""

    async def handle(call: Call, device_id: str, **ids: str) -> object:
        return await handler(call, device_id=hub.registry.id_of(device_id), **ids)

    return handle
