"""Diagnostics: the figures of each part of the hub, for `GET /diagnostics`."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from appliance.api import schemas
from appliance.api.connections import Connections
from appliance.api.hub_metrics import resident_bytes
from appliance.api.stream import EventStream
from appliance.clock import timestamp
from appliance.hub import Hub
from appliance.version import VERSION

Probe = Callable[[], Mapping[str, Any]]
"""Reads the present figures of one part."""


def build_probes(hub: Hub, stream: EventStream, connections: Connections) -> Mapping[str, Probe]:
    """The figures of `GET /diagnostics`, by part."""
    return {
        "hub": lambda: _probe_hub(hub),
        "counts": lambda: _probe_counts(hub),
        "adapters": lambda: _probe_adapters(hub),
        "store": hub.document.figures,
        "clock": hub.schedule.figures,
        "scenes": hub.scenes.figures,
        "automations": hub.automations.figures,
        "history": lambda: _probe_history(hub),
        "scripts": lambda: _probe_scripts(hub),
        "events": lambda: {
            "published": hub.bus.published,
            "readers": stream.readers,
            "dropped": stream.dropped,
        },
        "sockets": connections.figures,
        "process": lambda: {"resident_bytes": resident_bytes(), "threads": threading.active_count()},
    }


def _probe_adapters(hub: Hub) -> dict[str, Any]:
    found = {each.name: (each, hub.dispatcher.operations_of(each.name)) for each in hub.health.list_adapters()}
    return {name: schemas.ADAPTER_IN_FULL(replace(each, operations=own)) for name, (each, own) in found.items()}


def _probe_hub(hub: Hub) -> dict[str, Any]:
    now = hub.clock.now()
    return {
        "version": VERSION,
        "python": platform.python_version(),
        "started_at": timestamp(hub.started_at),
        "now": timestamp(now),
        "uptime_secs": round((now - hub.started_at).total_seconds(), 3),
        "safe": hub.safe_because,
    }


def _probe_scripts(hub: Hub) -> dict[str, Any]:
    """The figures of Lua: executions, workers, workers that were killed; and each folder's last reload.

    `adapters` are those of kinds in Lua, which have workers of their own; null where there are none.
    """
    lasts = {target: reloader.last for target, reloader in hub.reloaders.items()}
    return {
        **hub.pool.figures(),
        "adapters": None if hub.kinds.pool is None else hub.kinds.pool.figures(),
        "last_reload": {target: None if last is None else schemas.RELOADED(last) for target, last in lasts.items()},
    }


def _probe_history(hub: Hub) -> dict[str, Any]:
    """What is kept in memory, on the card, and sent to a server; null where there is none."""
    history = hub.history
    return {
        "devices": history.devices.figures(),
        "commands": history.commands.figures(),
        "card": None if history.card is None else history.card.figures(),
        "server": None if history.writer is None else history.writer.figures(),
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
