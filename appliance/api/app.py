"""The application: the route table, and how Sanic is made to serve it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sanic import HTTPResponse, Request, Sanic

from appliance.api.api_limits import ApiLimits
from appliance.api.connections import Connections
from appliance.api.cors import Cors
from appliance.api.device_encoder import DeviceEncoder
from appliance.api.diagnostics import build_probes
from appliance.api.gate import Gate
from appliance.api.hooks import Hooks
from appliance.api.hub_metrics import Metrics
from appliance.api.key_access import Access
from appliance.api.keyring import Keyring
from appliance.api.rate import Buckets
from appliance.api.request_metrics import Handle, RequestMetrics
from appliance.api.route import Call, Route, routes_of
from appliance.api.routes import (
    adapters,
    automations,
    backup,
    dashboard,
    devices,
    discovery,
    document,
    events,
    executions,
    groups,
    history,
    hooks,
    keys,
    log,
    metrics,
    overview,
    preferences,
    reports,
    rooms,
    scenes,
    scripts,
    system,
    timers,
    uses,
    variables,
)
from appliance.api.sanic_http.application import Application, build_application
from appliance.api.stream import EventStream
from appliance.home.events import DeviceRemoved
from appliance.hub import Hub

_RESOURCES: tuple[type[Any], ...] = (
    system.SystemApi,
    log.LogApi,
    metrics.MetricsPage,
    adapters.AdaptersApi,
    devices.DevicesApi,
    history.HistoryApi,
    rooms.RoomsApi,
    groups.GroupsApi,
    scenes.ScenesApi,
    automations.AutomationsApi,
    executions.ExecutionsApi,
    scripts.ScriptsApi,
    variables.VariablesApi,
    timers.TimersApi,
    preferences.PreferencesApi,
    discovery.DiscoveryApi,
    keys.ApiKeys,
    hooks.HooksApi,
    events.EventsApi,
    document.DocumentApi,
    overview.OverviewApi,
    uses.UsesApi,
    reports.ReportsApi,
)

ROUTES = tuple(row for resource in _RESOURCES for row in routes_of(resource))
"""Every route of the API; the dashboard's files, which are none, have rows of their own."""


def build_app(
    hub: Hub,
    access: Access,
    limits: ApiLimits,
    event_capacity: int,
    *,
    search: discovery.Search,
    has_dashboard: bool = True,
    make_backup: backup.MakeBackup | None = None,
) -> Sanic[Any, Any]:
    """The application that serves this hub, with the dashboard and the backup or without; `search` finds devices."""
    app = build_application(limits)
    cors = Cors(limits.origins, (method for route in ROUTES for method in route.methods))
    api = ROUTES if make_backup is None else (*ROUTES, *routes_of(backup.BackupApi))
    pages = dashboard.DashboardApi()
    routes = (*api, *pages.list_routes()) if has_dashboard else api
    gate = Gate(access.authenticator, Buckets(limits.rate, hub.clock), cors, routes)
    requests = RequestMetrics()
    app.error_handler.add(Exception, requests.count_unmatched(gate.handle_error))
    stream = EventStream(hub.bus, event_capacity, hub.start_errors)
    shown = Metrics(hub, requests, stream, app.ctx.connections)
    own = [pages, discovery.DiscoveryApi(search), document.DocumentApi(api)]
    own += [] if make_backup is None else [backup.BackupApi(make_backup)]
    resources = {
        **_build_resources(hub, stream, app.ctx.connections, access.keyring, shown),
        **{type(each): each for each in own},
    }
    for route in routes:
        _add(app, route, requests.measure(route, _bind(route, resources[route.resource], gate, cors, limits)))
    return app


def _build_resources(
    hub: Hub,
    stream: EventStream,
    connections: Connections,
    keyring: Keyring,
    shown: Metrics,
) -> Mapping[type[Any], object]:
    """One of each resource, by its class; each gets the parts that it uses."""
    encoder = DeviceEncoder()
    hub.bus.listen(encoder.forget_removed, DeviceRemoved)
    listening = Hooks(hub.bus, hub.dispatcher, hub.automations.hears_hook)
    built = (
        system.SystemApi(hub.health, build_probes(hub, stream, connections), hub.folders, hub.trust_clock),
        log.LogApi(hub.log),
        metrics.MetricsPage(shown),
        adapters.AdaptersApi(hub.health, hub.dispatcher, hub.reloaders["adapters"]),
        devices.DevicesApi(hub.registry, hub.changes, hub.dispatcher, encoder),
        history.HistoryApi(hub.registry, hub.history),
        rooms.RoomsApi(hub.registry, hub.changes, hub.dispatcher, encoder),
        groups.GroupsApi(hub.registry, hub.changes, hub.dispatcher, encoder),
        scenes.ScenesApi(hub.scenes, hub.reloaders["scenes"], hub.history.card),
        automations.AutomationsApi(hub.automations, hub.reloaders["automations"], hub.history.card),
        executions.ExecutionsApi(hub.executors),
        variables.VariablesApi(hub.variables),
        timers.TimersApi(hub.timers),
        preferences.PreferencesApi(hub.document),
        scripts.ScriptsApi(hub.reloaders["scripts"]),
        keys.ApiKeys(keyring, listening),
        hooks.HooksApi(listening),
        events.EventsApi(stream),
        overview.OverviewApi(hub.registry, hub.health, hub.scenes, hub.automations, hub.document, encoder),
        uses.UsesApi(hub.registry, hub.automations, hub.scenes),
        reports.ReportsApi(hub),
    )
    return {type(each): each for each in built}


def _bind(route: Route, resource: object, gate: Gate, cors: Cors, limits: ApiLimits) -> Handle:
    """What Sanic calls for the route."""
    answer = partial(route.handler, resource)

    async def handle(request: Request, **ids: str) -> HTTPResponse | None:
        principal = await gate.authorize(request, route, ids.get("hook_id"))
        recheck = partial(gate.recheck, principal)
        call = Call(request=request, route=route, limits=limits, principal=principal, recheck=recheck)
        response = await answer(call, **ids)
        return None if response is None else cors.add_headers(request, response)

    return handle


def _add(app: Application, route: Route, handle: Handle) -> None:
    app.add_route(
        handle,
        route.path,
        methods=route.methods,
        name=f"{route.method} {route.path}",
        strict_slashes=True,
        error_format="json",  # else Sanic parses the handler's source, of each route at each start
        unquote=True,
    )
