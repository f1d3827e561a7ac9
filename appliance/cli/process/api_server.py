"""Builds the API from the configuration.

The import of Sanic takes as long as all other imports together, so the hub imports this module while the store and
the Lua worker start.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from appliance.adapters.network_search.search import Discovery
from appliance.api.app import build_app
from appliance.api.http_server.server import Server
from appliance.api.keyring import Keyring
from appliance.api.limits import ApiLimits
from appliance.api.simulation import SimulationRequest, SimulationResult
from appliance.config import Config, list_kinds
from appliance.hub import Hub


def build_server(hub: Hub, keyring: Keyring, config: Config, data_dir: Path) -> Server:
    file, limits = Path(config.file), ApiLimits.of(config.api)

    @cache
    def open_simulations() -> Any:
        from appliance.cli.simulation.hub_simulations import HubSimulations  # few hubs run simulations

        return HubSimulations(file)

    async def simulate(asked: SimulationRequest, stored: Mapping[str, bytes]) -> SimulationResult:
        return await open_simulations().simulate(asked, stored)  # type: ignore[no-any-return]

    app = build_app(
        hub,
        keyring,
        limits,
        config.runtime.event_bus_capacity,
        search=Discovery(hub.clock, partial(list_kinds, file), lambda: hub.adapter_sections.names).search,
        has_dashboard=config.dashboard.enabled,
        make_backup=partial(_pack_backup, file, data_dir),
        simulate=simulate,
    )
    return Server(app, config.api.bind_address, hub.clock, work=hub)


def _pack_backup(config: Path, data_dir: Path) -> bytes:
    from appliance.cli.backup import pack_backup

    return pack_backup(config, data_dir)
