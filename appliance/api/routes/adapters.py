"""Adapters, their operations, and the search for devices."""

from __future__ import annotations

from msgspec.structs import replace

from appliance.adapters.network_search.search import DEFAULT_SEARCH_SECS, MAX_SEARCH_SECS
from appliance.api import schemas
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.validation import any_object_body, whole_number
from appliance.errors import Unsupported
from appliance.tables.checks import format_value
from appliance.tables.fields import Field
from appliance.tables.json_schema import ANY, TEXT, array_of, maybe, only, record

_RESULT = record("OperationResult", status=only("ok"), result=ANY)

_SECONDS = whole_number(1, MAX_SEARCH_SECS, default=DEFAULT_SEARCH_SECS)
_FOUND = record("Found", kind=TEXT, name=TEXT, address=TEXT, serial=maybe(TEXT), section=TEXT)
_DISCOVERY = record("Discovery", found=array_of(_FOUND))


class AdaptersApi(ApiResource):
    """Handlers of the routes under `/adapters`."""

    @route("GET", "/adapters", Role.READ, array_of(schemas.ADAPTER))
    async def list_all(self, call: Call) -> object:
        """Return every enabled adapter by name, with its status: starting, running, or degraded."""
        return self.hub.health.list_adapters()

    @route("POST", "/adapters/reload", Role.ADMIN, schemas.RELOADED, is_rate_limited=False)
    async def reload(self, call: Call) -> object:
        """Read the Lua files of kinds again. Load each valid file; keep the loaded kind of each faulty file."""
        return await self.hub.reloaders["adapters"].reload()

    @route("GET", "/adapters/<name>", Role.READ, schemas.ADAPTER_IN_FULL)
    async def get(self, call: Call, name: str) -> object:
        """Return one adapter: its status, last success, last error, and operations."""
        return replace(self.hub.health.get_adapter(name), operations=self.hub.dispatcher.operations_of(name))

    @route(
        "POST",
        "/adapters/<name>/operations/<operation>",
        Role.ADMIN,
        _RESULT,
        statuses=(200, 501, 503),
        body=any_object_body,
        body_optional=True,
    )
    async def run_operation(self, call: Call, name: str, operation: str) -> object:
        """Run an operation of the adapter with the body as its payload, like `ctx:invoke`."""
        self.hub.health.get_adapter(name)
        payload = self.hub.registry.with_id(await call.read_body())
        try:
            return {"result": await self.hub.dispatcher.invoke(f"{name}:{operation}", payload)}
        except Unsupported:
            known = self.hub.dispatcher.operations_of(name)
            if operation in known:
                raise
            rest = f"its operations are {', '.join(known)}" if known else "it has no operations"
            raise Unsupported(f"{name} has no operation {format_value(operation)}; {rest}") from None


class DiscoveryApi(ApiResource):
    """Handler of `/discovery`."""

    @route("GET", "/discovery", Role.ADMIN, _DISCOVERY, query={"seconds": Field(_SECONDS, required=False)})
    async def search(self, call: Call) -> object:
        """Search the local network for devices by mDNS and SSDP, and respond after the requested seconds."""
        with call.cancellable():
            return {"found": await self.parts.search(call.query()["seconds"] or DEFAULT_SEARCH_SECS)}
