"""The figures of requests and of the hub's parts, for `GET /metrics`, as Prometheus reads it, and `GET /diagnostics`.

The parts are asked whenever their figures are.
"""

from __future__ import annotations

import os
import platform
import resource
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from appliance.api import schemas
from appliance.api.connections import Connections
from appliance.api.request_counts import BUCKETS_SECS, RequestCounts
from appliance.api.stream import EventStream
from appliance.clock import timestamp
from appliance.health import AdapterHealth
from appliance.hub import Hub
from appliance.tasks import loop_lag
from appliance.version import VERSION

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Sample = tuple[str, float]
"""The text after the family's name (a suffix, labels), and the value."""


class Family(Struct, frozen=True, kw_only=True):
    """The samples of one metric. `type` is `counter`, `gauge`, `histogram` or `summary`."""

    name: str
    type: str
    help: str
    samples: Iterable[Sample]


def metric(name: str, help_: str, value: float | Mapping[str, float] | None, label: str = "", /) -> Family:
    """Return a counter if its name ends in `_total`, otherwise a gauge; none if the value is not known. A mapping
    contains one value for each value of the label.
    """
    if isinstance(value, Mapping):
        samples = [(labels({label: key}), each) for key, each in value.items()]
    else:
        samples = [] if value is None else [("", value)]
    return Family(name=name, type="counter" if name.endswith("_total") else "gauge", help=help_, samples=samples)


def labels(pairs: Mapping[str, str]) -> str:
    """Return the labels as text after a name."""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in pairs.items()) + "}"


def expose(families: Iterable[Family]) -> bytes:
    """Return the text of all families with samples."""
    lines: list[str] = []
    for family in families:
        samples = [f"{family.name}{behind} {_number(value)}" for behind, value in family.samples]
        if samples:
            lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.type}", *samples]
    return "\n".join([*lines, ""]).encode()


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


class Metrics:
    """Reads the figures of the hub's parts, and names the metrics."""

    def __init__(self, hub: Hub, requests: RequestCounts, stream: EventStream, connections: Connections) -> None:
        self._hub = hub
        self._requests = requests
        self._stream = stream
        self._connections = connections

    def expose(self) -> bytes:
        """Return every metric as text."""
        hub = self._hub
        figures = (_of_adapters(hub), _of_devices(hub), _of_executions(hub), _of_storage(hub), _of_process())
        families = [*_of_hub(hub), *_of_requests(self._requests), *self._of_events()]
        return expose([*families, *(each for part in figures for each in part)])

    def diagnose(self) -> dict[str, Any]:
        """Return the present figures of each part, for `GET /diagnostics`."""
        hub, stream, history = self._hub, self._stream, self._hub.history
        return {
            "hub": {
                "version": VERSION,
                "python": platform.python_version(),
                "started_at": timestamp(started_at(hub)),
                "now": timestamp(hub.clock.now()),
                "uptime_secs": uptime_secs(hub),
                "safe": hub.safe_because,
            },
            "counts": _count_things(hub),
            "adapters": {
                each.name: schemas.ADAPTER_IN_FULL(replace(each, operations=hub.dispatcher.operations_of(each.name)))
                for each in hub.health.list_adapters()
            },
            "store": hub.document.figures(),
            "clock": hub.schedule.figures(),
            "scenes": hub.scenes.figures(),
            "automations": hub.automations.figures(),
            "history": {
                "devices": history.devices.figures(),
                "commands": history.commands.figures(),
                "card": None if history.card is None else history.card.figures(),
                "server": None if history.writer is None else history.writer.figures(),
            },
            "scripts": _diagnose_scripts(hub),
            "events": {"published": hub.bus.published, "readers": stream.readers, "dropped": stream.dropped},
            "sockets": self._connections.figures(),
            "process": {"resident_bytes": resident_bytes(), "threads": threading.active_count()},
        }

    def _of_events(self) -> Iterator[Family]:
        stream, connections = self._stream, self._connections
        yield metric("lares_events_published_total", "Events on the bus.", self._hub.bus.published)
        yield metric("lares_stream_readers", "Open event streams.", stream.readers)
        yield metric("lares_stream_frames_total", "Frames that were made for event streams.", stream.frames)
        yield metric("lares_stream_frames_dropped_total", "Frames that slow readers lost.", stream.dropped)
        yield metric("lares_stream_lag_frames", "Frames that wait for the slowest reader.", stream.lag)
        yield metric("lares_sockets_open", "Open connections of clients.", connections.count)
        yield metric("lares_sockets_refused_total", "Connections that were one too many.", connections.refused)


def _of_requests(requests: RequestCounts) -> Iterator[Family]:
    counts = (
        (labels({"method": method, "route": route, "status": str(status)}), count)
        for (method, route, status), count in sorted(requests.counts.items())
    )
    name, what = "lares_http_requests_total", "Requests by method, route and status."
    yield Family(name=name, type="counter", help=what, samples=counts)
    name, what = (
        "lares_http_request_duration_seconds",
        "Time from the head of a request to its response, by method and route.",
    )
    yield Family(name=name, type="histogram", help=what, samples=_buckets(requests))


def _buckets(requests: RequestCounts) -> Iterator[Sample]:
    for (method, route), times in sorted(requests.times.items()):
        which, below = {"method": method, "route": route}, 0
        for end, count in zip((*map(str, BUCKETS_SECS), "+Inf"), times, strict=True):
            below += count
            yield "_bucket" + labels({**which, "le": end}), below
        yield "_sum" + labels(which), requests.seconds[method, route]
        yield "_count" + labels(which), below


def _of_hub(hub: Hub) -> Iterator[Family]:
    lag, clock = loop_lag(), hub.schedule.figures()
    longest = "The longest wait for the event loop in the latest ten seconds."
    which = labels({"version": VERSION, "python": platform.python_version()})
    yield Family(name="lares_info", type="gauge", help="The version that runs.", samples=[(which, 1)])
    yield metric("lares_start_time_seconds", "When the hub started, since 1970.", started_at(hub).timestamp())
    yield metric("lares_ready", "1 once every adapter has finished its first poll.", not hub.health.list_missing())
    yield metric("lares_safe_mode", "1 while the hub runs without automations.", hub.safe_because is not None)
    yield metric("lares_clock_trusted", "1 once the clock is believed.", clock["trusted"])
    yield metric("lares_alarms_late_total", "Timers and schedules that fired over a second late.", clock["late"])
    yield metric("lares_loop_lag_seconds", longest, lag.last_secs)
    yield metric("lares_loop_lag_max_seconds", "The longest wait for it since the start.", lag.max_secs)
    yield metric("lares_loop_lag_seconds_total", "The sum of waits of over 50 ms.", lag.total_secs)
    yield metric("lares_log_entries_total", "Log entries by level.", hub.log.count_by_level(), "level")


def _of_adapters(hub: Hub) -> Iterator[Family]:
    adapters = hub.health.list_adapters()

    def each(name: str, help_: str, read: Callable[[AdapterHealth], float | None]) -> Family:
        values = {adapter.name: value for adapter in adapters if (value := read(adapter)) is not None}
        return metric(f"lares_adapter_{name}", help_, values, "adapter")

    yield each("up", "1 if the last poll or command was answered well.", lambda adapter: bool(adapter.is_well))
    yield each("answers_total", "Good answers of the vendor.", lambda adapter: adapter.answers)
    samples = [
        (suffix + labels({"adapter": adapter.name}), value)
        for adapter in adapters
        for suffix, value in (("_sum", adapter.timed_secs), ("_count", float(adapter.timed)))
    ]
    timed = "Time that answered polls took."
    yield Family(name="lares_adapter_poll_duration_seconds", type="summary", help=timed, samples=samples)
    yield each("failures_total", "Polls and commands that failed.", lambda adapter: adapter.failures)
    yield each(
        "last_success_timestamp_seconds",
        "When it answered last, since 1970.",
        lambda adapter: None if adapter.last_success is None else adapter.last_success.timestamp(),
    )


def _of_devices(hub: Hub) -> Iterator[Family]:
    devices, commands = hub.history.devices.figures(), hub.history.commands.figures()
    states = Counter(str(device.attributes.get("state", "unknown")) for device in hub.registry.list_devices())
    kept = {"devices": devices["bytes"], "commands": commands["bytes"]}
    yield metric("lares_devices", "Devices by state.", dict(sorted(states.items())), "state")
    yield metric("lares_commands_total", "Commands that were sent to devices.", commands["recorded"])
    yield metric("lares_history_bytes", "Memory that histories take.", kept, "history")


def _of_executions(hub: Hub) -> Iterator[Family]:
    figures, lua = {"scene": hub.scenes.figures(), "automation": hub.automations.figures()}, hub.pool.figures()
    running, waiting, loaded = (
        {kind: each[name] for kind, each in figures.items()} for name in ("running", "waiting", "loaded")
    )
    ended = [
        (labels({"kind": kind, "status": status}), count)
        for kind, each in figures.items()
        for status, count in sorted(each["ended"].items())
    ]
    how = "Executions of Lua by their end, including executions that never began."
    yield Family(name="lares_executions_total", type="counter", help=how, samples=ended)
    yield metric("lares_executions_running", "Executions under way.", running, "kind")
    yield metric("lares_executions_waiting", "Executions that wait for their turn.", waiting, "kind")
    yield metric("lares_lua_workers", "Processes that run Lua.", len(lua["workers"]))
    yield metric("lares_lua_kills_total", "Processes of Lua that had to be killed.", lua["kills"])
    yield metric("lares_definitions", "Scenes and automations that are in force.", loaded, "kind")


def _of_storage(hub: Hub) -> Iterator[Family]:
    store = hub.document.figures()
    yield metric("lares_store_written_bytes_total", "Bytes written to the card.", store["bytes_written"])
    yield metric("lares_store_syncs_total", "Syncs of the card.", store["syncs"])
    yield metric("lares_store_failures_total", "Changes that the card did not take.", store["failures"])
    yield metric("lares_store_failing", "1 while the card takes no change.", store["failure"] is not None)
    yield metric("lares_store_journal_bytes", "Size of the journal.", store["journal_bytes"])
    yield metric("lares_store_snapshot_bytes", "Size of the snapshot.", store["snapshot_bytes"])
    if hub.history.card is not None:
        card = hub.history.card.figures()
        yield metric("lares_history_written_bytes_total", "History written to the card.", card["bytes"])
        yield metric("lares_history_failures_total", "Writings that the card refused.", card["failures"])
        yield metric("lares_history_failing", "1 while the card takes no history.", card["failure"] is not None)
        yield metric("lares_history_bad_lines_total", "Damaged lines that were met.", card["bad_lines"])
        yield metric("lares_history_lost_total", "Hours, changes and entries that had no room.", card["lost"])
    if hub.history.writer is not None:
        server = hub.history.writer.figures()
        yield metric("lares_influx_sent_total", "Values that the server has taken.", server["sent"])
        yield metric("lares_influx_refused_total", "Values that the server refused.", server["refused"])
        yield metric("lares_influx_dropped_total", "Values that had no room while it was away.", server["dropped"])
        yield metric("lares_influx_waiting", "Values that wait to be sent.", server["waiting"])
        yield metric("lares_influx_failing", "1 while the server takes nothing.", server["failure"] is not None)


def _of_process() -> Iterator[Family]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield metric("process_cpu_seconds_total", "Processor time.", usage.ru_utime + usage.ru_stime)
    yield metric("process_resident_memory_bytes", "Resident memory.", resident_bytes())
    yield metric("process_open_fds", "Open file descriptors.", _open_files())
    yield metric("process_max_fds", "How many may be open.", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield metric("process_threads", "Threads.", threading.active_count())


def resident_bytes() -> int | None:
    """Return the hub's own resident memory in bytes; None if it cannot be read, as on other systems than Linux."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def _open_files() -> int | None:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only the number counts, and this makes no paths
    except OSError:
        return None


def _count_things(hub: Hub) -> dict[str, int]:
    return {
        "adapters": len(hub.health.list_adapters()),
        "devices": len(hub.registry.list_devices()),
        "rooms": len(hub.registry.list_rooms()),
        "groups": len(hub.registry.list_groups()),
        "scenes": len(hub.scenes.list_scenes()),
        "keys": len(hub.keys.list_all()),
        "automations": len(hub.automations.list_views()),
    }


def uptime_secs(hub: Hub) -> float:
    """Seconds since the hub was started."""
    return round(hub.clock.monotonic() - hub.began, 3)


def started_at(hub: Hub) -> datetime:
    """Return the start of the hub by the present clock; it changes only when the clock is set."""
    hub.steps.poll()
    return hub.steps.began


def _diagnose_scripts(hub: Hub) -> dict[str, Any]:
    """Return the figures of Lua: executions, workers, workers that were killed; and each folder's last reload.

    `adapters` are kinds in Lua, which have workers of their own; null without any.
    """
    lasts = {target: reloader.last for target, reloader in hub.reloaders.items()}
    return {
        **hub.pool.figures(),
        "adapters": None if hub.kinds.pool is None else hub.kinds.pool.figures(),
        "last_reload": {target: None if last is None else schemas.RELOADED(last) for target, last in lasts.items()},
    }
