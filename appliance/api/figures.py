"""Collects the diagnostic data of the hub and its parts in one tree, for `GET /diagnostics`, `/metrics`, and `lares
status`."""

from __future__ import annotations

import os
import platform
import resource
import threading
from collections import Counter
from datetime import datetime
from itertools import starmap
from typing import Any

from msgspec.structs import replace

from appliance.allocator import resident_bytes
from appliance.api import schemas
from appliance.api.http_server.connection_limiter import ConnectionLimiter
from appliance.api.stream import EventStream
from appliance.clock import timestamp
from appliance.event_loop import in_steps, loop_lag, wait_for_short_turn
from appliance.health import AdapterHealth
from appliance.hub import Hub
from appliance.version import VERSION


class Figures:
    """Collects the diagnostic data of the hub's parts."""

    def __init__(self, hub: Hub, stream: EventStream, limiter: ConnectionLimiter) -> None:
        self._hub = hub
        self._stream = stream
        self._limiter = limiter

    async def collect(self) -> dict[str, Any]:
        """Return the tree. The adapters are described in steps, because a hub can have hundreds."""
        hub, stream, history, loop = self._hub, self._stream, self._hub.history, loop_lag()
        adapters: dict[str, Any] = {}
        described = ((each.name, self._adapter(each)) for each in hub.health.list_adapters())
        await in_steps(hub.clock, starmap(adapters.__setitem__, described))
        await wait_for_short_turn()  # the other figures for several clients would make one turn long
        return {
            "hub": {
                "version": VERSION,
                "python": platform.python_version(),
                "started_at": timestamp(started_at(hub)),
                "now": timestamp(hub.clock.now()),
                "uptime_secs": round(hub.clock.monotonic() - hub.began, 3),
                "ready": not hub.health.list_missing(),
                "safe": hub.safe_mode.reason,
            },
            "counts": _count_things(hub),
            "adapters": adapters,
            "devices": _count_states(hub),
            "store": {**hub.store.document.figures(), "card": hub.store.recorder.figures()},
            "clock": hub.environment.scheduler.figures(),
            "scenes": hub.scenes.figures(),
            "automations": hub.automations.figures(),
            "history": {
                "devices": history.devices.figures(),
                "commands": history.commands.figures(),
                "card": None if history.card is None else history.card.figures(),
                "server": None if history.influx is None else history.influx.figures(),
            },
            "scripts": _scripts(hub),
            "events": {
                "published": hub.bus.published,
                "readers": stream.reader_count,
                "frames": stream.frames,
                "dropped": stream.dropped,
                "lag": stream.longest_queue,
            },
            "sockets": self._limiter.figures(),
            "log": hub.log.count_by_level(),
            "loop": {"lag_secs": loop.last_secs, "max_lag_secs": loop.max_secs, "total_lag_secs": loop.total_secs},
            "process": _process(),
        }

    def _adapter(self, health: AdapterHealth) -> dict[str, Any]:
        shown = schemas.ADAPTER_IN_FULL(replace(health, operations=self._hub.dispatcher.operations_of(health.name)))
        return {**shown, **{key: getattr(health, key) for key in ("answers", "failures", "timed", "timed_secs")}}


def started_at(hub: Hub) -> datetime:
    """Return the start time of the hub, corrected if the clock was set since then."""
    hub.steps.poll()
    return hub.steps.began


def _process() -> dict[str, Any]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu_secs": usage.ru_utime + usage.ru_stime,
        "resident_bytes": resident_bytes() or None,
        "open_files": _open_files(),
        "max_open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "threads": threading.active_count(),
    }


def _open_files() -> int | None:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only the number counts, and this makes no paths
    except OSError:
        return None


def _count_things(hub: Hub) -> dict[str, int]:
    return {
        "adapters": len(hub.health.list_adapters()),
        "devices": len(hub.registry.list_devices()),
        "rooms": len(hub.registry.layout.rooms),
        "groups": len(hub.registry.layout.groups),
        "scenes": len(hub.scenes.catalog.list_definitions()),
        "keys": len(hub.store.keys.list_all()),
        "automations": len(hub.automations.catalog.list_definitions()),
    }


def _count_states(hub: Hub) -> dict[str, int]:
    """Return the number of devices in each state."""
    states = Counter(str(device.attributes.get("state", "unknown")) for device in hub.registry.list_devices())
    return dict(sorted(states.items()))


def _scripts(hub: Hub) -> dict[str, Any]:
    """Return the diagnostic data of Lua: its executions, its running and killed workers, and the last reload of each
    folder.

    `adapters` contains the data of the workers that run Lua kinds, or null if there are no such kinds.
    """
    lasts = {target: reloader.last for target, reloader in hub.reloaders.items()}
    return {
        **hub.pool.figures(),
        "adapters": None if hub.kinds.pool is None else hub.kinds.pool.figures(),
        "last_reload": {target: None if last is None else schemas.RELOADED(last) for target, last in lasts.items()},
    }
