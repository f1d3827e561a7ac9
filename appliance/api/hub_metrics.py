"""The figures of the hub's parts, read for each request: for `GET /metrics` and `GET /diagnostics`."""

from __future__ import annotations

import os
import platform
import resource
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from appliance.api import schemas
from appliance.api.connections import Connections
from appliance.api.request_metrics import Family, RequestMetrics, by_label, counter, expose, gauge, labels
from appliance.api.stream import EventStream
from appliance.clock import timestamp
from appliance.hub import Hub
from appliance.version import VERSION


class Metrics:
    """Reads the figures of the hub's parts, and names the metrics."""

    def __init__(self, hub: Hub, requests: RequestMetrics, stream: EventStream, connections: Connections) -> None:
        self._hub = hub
        self._requests = requests
        self._stream = stream
        self._connections = connections

    def expose(self) -> bytes:
        """Every metric as text."""
        return expose(self._families())

    def _families(self) -> Iterator[Family]:
        yield from self._hub_families()
        yield from self._requests.families()
        yield from self._event_families()
        yield from self._adapter_families()
        yield from self._device_families()
        yield from self._execution_families()
        yield from self._store_families()
        yield from self._card_families()
        yield from self._writer_families()
        yield from _process_families()

    def _hub_families(self) -> Iterator[Family]:
        hub, lag = self._hub, self._hub.loop_lag
        which = labels({"version": VERSION, "python": platform.python_version()})
        yield Family(name="lares_info", type="gauge", help="The version that runs.", samples=[(which, 1)])
        yield gauge("lares_start_time_seconds", "When the hub started, since 1970.", hub.started_at.timestamp())
        yield gauge("lares_ready", "1 once every adapter has finished its first poll.", not hub.health.list_missing())
        yield gauge("lares_safe_mode", "1 while the hub runs without automations.", hub.safe_because is not None)
        clock = hub.schedule.figures()
        yield gauge("lares_clock_trusted", "1 once the clock is believed.", clock["trusted"])
        yield counter("lares_alarms_late_total", "Timers and schedules that fired over a second late.", clock["late"])
        yield gauge("lares_loop_lag_seconds", "How late the event loop was when last measured.", lag.last_secs)
        yield gauge("lares_loop_lag_max_seconds", "The most that it was late since the start.", lag.max_secs)
        yield counter(
            "lares_loop_lag_seconds_total", "The sum of what it was late, measured every ten seconds.", lag.total_secs
        )
        yield by_label(
            "lares_log_entries_total", "counter", "Log entries by level.", "level", self._hub.log.count_by_level()
        )

    def _event_families(self) -> Iterator[Family]:
        stream, connections = self._stream, self._connections
        yield counter("lares_events_published_total", "Events on the bus.", self._hub.bus.published)
        yield gauge("lares_stream_readers", "Open event streams.", stream.readers)
        yield counter("lares_stream_frames_total", "Frames that were made for event streams.", stream.frames)
        yield counter("lares_stream_frames_dropped_total", "Frames that slow readers lost.", stream.dropped)
        yield gauge("lares_stream_lag_frames", "Frames that wait for the slowest reader.", stream.lag)
        yield gauge("lares_sockets_open", "Open connections of clients.", connections.count)
        yield counter("lares_sockets_refused_total", "Connections that were one too many.", connections.refused)

    def _adapter_families(self) -> Iterator[Family]:
        adapters = self._hub.health.list_adapters()
        up = {each.name: float(bool(each.is_well)) for each in adapters}
        yield by_label("lares_adapter_up", "gauge", "1 if the last poll or command was answered well.", "adapter", up)
        answers = {each.name: float(each.answers) for each in adapters}
        yield by_label("lares_adapter_answers_total", "counter", "Good answers of the vendor.", "adapter", answers)
        yield Family(
            name="lares_adapter_poll_duration_seconds",
            type="summary",
            help="Time that answered polls took.",
            samples=[
                (suffix + labels({"adapter": each.name}), value)
                for each in adapters
                for suffix, value in (("_sum", each.timed_secs), ("_count", float(each.timed)))
            ],
        )
        failures = {each.name: float(each.failures) for each in adapters}
        yield by_label(
            "lares_adapter_failures_total", "counter", "Polls and commands that failed.", "adapter", failures
        )
        last = {each.name: each.last_success.timestamp() for each in adapters if each.last_success is not None}
        yield by_label(
            "lares_adapter_last_success_timestamp_seconds",
            "gauge",
            "When it answered last, since 1970.",
            "adapter",
            last,
        )

    def _device_families(self) -> Iterator[Family]:
        hub, history = self._hub, self._hub.history
        states = Counter(str(device.attributes.get("state", "unknown")) for device in hub.registry.list_devices())
        yield by_label("lares_devices", "gauge", "Devices by state.", "state", dict(sorted(states.items())))
        yield counter(
            "lares_commands_total", "Commands that were sent to devices.", hub.history.commands.figures()["recorded"]
        )
        kept = {"devices": history.devices.figures()["bytes"], "commands": history.commands.figures()["bytes"]}
        yield by_label("lares_history_bytes", "gauge", "Memory that histories take.", "history", kept)

    def _execution_families(self) -> Iterator[Family]:
        figures = {"scene": self._hub.scenes.figures(), "automation": self._hub.automations.figures()}
        ended = [
            (labels({"kind": kind, "status": status}), count)
            for kind, each in figures.items()
            for status, count in sorted(each["ended"].items())
        ]
        name, help_ = "lares_executions_total", "Executions of Lua by how they ended, also those that never began."
        yield Family(name=name, type="counter", help=help_, samples=ended)
        running = {kind: each["running"] for kind, each in figures.items()}
        yield by_label("lares_executions_running", "gauge", "Executions under way.", "kind", running)
        waiting = {kind: each["waiting"] for kind, each in figures.items()}
        yield by_label("lares_executions_waiting", "gauge", "Executions that wait for their turn.", "kind", waiting)
        lua = self._hub.pool.figures()
        yield gauge("lares_lua_workers", "Processes that run Lua.", len(lua["workers"]))
        yield counter("lares_lua_kills_total", "Processes of Lua that had to be killed.", lua["kills"])
        loaded = {kind: each["loaded"] for kind, each in figures.items()}
        yield by_label("lares_definitions", "gauge", "Scenes and automations that are in force.", "kind", loaded)

    def _store_families(self) -> Iterator[Family]:
        figures = self._hub.document.figures()
        yield counter("lares_store_written_bytes_total", "Bytes written to the card.", figures["bytes_written"])
        yield counter("lares_store_syncs_total", "Syncs of the card.", figures["syncs"])
        yield counter("lares_store_failures_total", "Changes that the card did not take.", figures["failures"])
        yield gauge("lares_store_failing", "1 while the card takes no change.", figures["failure"] is not None)
        yield gauge("lares_store_journal_bytes", "Size of the journal.", figures["journal_bytes"])
        yield gauge("lares_store_snapshot_bytes", "Size of the snapshot.", figures["snapshot_bytes"])

    def _card_families(self) -> Iterator[Family]:
        if (card := self._hub.history.card) is None:
            return
        figures = card.figures()
        yield counter("lares_history_written_bytes_total", "History written to the card.", figures["bytes"])
        yield counter("lares_history_failures_total", "Writings that the card refused.", figures["failures"])
        yield gauge("lares_history_failing", "1 while the card takes no history.", figures["failure"] is not None)
        yield counter("lares_history_bad_lines_total", "Damaged lines that were met.", figures["bad_lines"])
        yield counter("lares_history_lost_total", "Hours, changes and entries that had no room.", figures["lost"])

    def _writer_families(self) -> Iterator[Family]:
        if (writer := self._hub.history.writer) is None:
            return
        figures = writer.figures()
        yield counter("lares_influx_sent_total", "Values that the server has taken.", figures["sent"])
        yield counter("lares_influx_refused_total", "Values that the server refused.", figures["refused"])
        yield counter("lares_influx_dropped_total", "Values that had no room while it was away.", figures["dropped"])
        yield gauge("lares_influx_waiting", "Values that wait to be sent.", figures["waiting"])
        yield gauge("lares_influx_failing", "1 while the server takes nothing.", figures["failure"] is not None)


def _process_families() -> Iterator[Family]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield counter("process_cpu_seconds_total", "Processor time.", usage.ru_utime + usage.ru_stime)
    yield gauge("process_resident_memory_bytes", "Resident memory.", resident_bytes())
    yield gauge("process_open_fds", "Open file descriptors.", _open_files())
    yield gauge("process_max_fds", "How many may be open.", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield gauge("process_threads", "Threads.", threading.active_count())


def resident_bytes() -> int | None:
    """The hub's own resident memory in bytes; None where it cannot be read, as on other systems than Linux."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def _open_files() -> int | None:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only the number counts, and this makes no paths
    except OSError:
        return None


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
