"""Diagnostics: state of the hub, clock, and reloads."""

from __future__ import annotations

from itertools import starmap
from typing import Any

from appliance.api import schemas
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.event_loop import in_steps
from appliance.tables.json_schema import TEXT, array_of, maybe, record

_RELOADS = record("Reloads", reloads=array_of(schemas.RELOADED), config=array_of(TEXT), safe=maybe(TEXT))


class DiagnosticsApi(ApiResource):
    """Handlers of the routes under `/diagnostics`."""

    @route("GET", "/diagnostics", Role.ADMIN, schemas.DIAGNOSTICS, is_large=True)
    async def show_diagnostics(self, call: Call) -> object:
        """Return the internal state of the hub: counts, and data about each part."""
        figures = await self.parts.figures.collect()
        each: dict[str, Any] = {}
        await in_steps(self.hub.clock, starmap(each.__setitem__, self.hub.automations.due_times.list_figures()))
        return {**figures, "automations": {**figures["automations"], "each": each}}

    @route("POST", "/diagnostics/clock/trust", Role.ADMIN, schemas.DONE, statuses=(200, 503))
    async def trust_clock(self, call: Call) -> object:
        """Trust the unsynchronised clock from now on, even after restarts."""
        await self.hub.trust_clock()
        return {}

    @route("POST", "/diagnostics/reload", Role.ADMIN, _RELOADS, is_rate_limited=False)
    async def reload(self, call: Call) -> object:
        """Reload adapter sections, kinds, scenes, automations, and scripts, like SIGHUP and `lares reload`."""
        reloads = await self.hub.reload()
        config = (await self.hub.adapter_sections.find_config_changes()).at_next_start()
        return {"reloads": reloads, "config": config, "safe": self.hub.safe_mode.reason}

    @route("GET", "/diagnostics/reload_watch", Role.ADMIN, schemas.WATCHES)
    async def show_reload_watch(self, call: Call) -> object:
        """Return the watched folders of Lua files. When a file in these folders is saved, it is loaded at once."""
        folders = self.hub.folders.items()
        return {"watches": [{"target": k, "enabled": each.watch, "directory": each.directory} for k, each in folders]}
