"""The diagnostic data and the request counts in Prometheus's text format, for `GET /metrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from appliance.api.request_counts import BUCKETS_SECS, RequestCounts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Sample = tuple[str, float]
"""A sample: the text after the metric's name (a suffix and labels), and the value."""


class Family(Struct, frozen=True, kw_only=True):
    """The samples of one metric. `type` is `counter`, `gauge`, `histogram`, or `summary`."""

    name: str
    type: str
    help: str
    samples: Iterable[Sample]


def metric(name: str, help_: str, value: Any, label: str = "", /) -> Family:
    """Return a counter if the metric's name ends in `_total`, otherwise a gauge. If the value is None, the metric has
    no samples.

    If `label` is given, `value` is a mapping: each key becomes the label's value in its own sample.
    """
    values = {label and labels({label: key}): each for key, each in value.items()} if label else {"": value}
    samples = [(named, each) for named, each in values.items() if each is not None]
    return Family(name=name, type="counter" if name.endswith("_total") else "gauge", help=help_, samples=samples)


def labels(pairs: Mapping[str, str]) -> str:
    """Return the labels in braces, to be appended to a metric's name."""
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


METRICS = """
events.published | lares_events_published_total | Events published in the hub.
events.readers | lares_stream_readers | Open event streams.
events.frames | lares_stream_frames_total | Frames encoded for event streams.
events.dropped | lares_stream_frames_dropped_total | Frames that slow readers lost.
events.lag | lares_stream_lag_frames | Frames that wait for the slowest reader.
sockets.open | lares_sockets_open | Open connections of clients.
sockets.refused | lares_sockets_refused_total | Connections that were closed because a limit was reached.
hub.ready | lares_ready | 1 once every adapter has finished its first poll.
hub.safe? | lares_safe_mode | 1 while the hub runs without automations.
clock.trusted | lares_clock_trusted | 1 once the clock is trusted.
clock.late | lares_alarms_late_total | Timers and schedules that fired more than a second late.
loop.lag_secs | lares_loop_lag_seconds | The longest wait for the event loop in the last ten seconds.
loop.max_lag_secs | lares_loop_lag_max_seconds | The longest wait for the event loop since the hub started.
loop.total_lag_secs | lares_loop_lag_seconds_total | The sum of all waits for the event loop over 50 ms.
log level | lares_log_entries_total | Log entries by level.
devices state | lares_devices | Devices by state.
history.commands.recorded | lares_commands_total | Commands that were sent to devices.
scripts.kills | lares_lua_kills_total | Lua processes that were killed.
store.bytes_written | lares_store_written_bytes_total | Bytes that the store has written.
store.syncs | lares_store_syncs_total | Syncs of the store.
store.failures | lares_store_failures_total | Changes that could not be stored.
store.failure? | lares_store_failing | 1 while no change can be stored.
store.journal_bytes | lares_store_journal_bytes | Size of the store's journal, in bytes.
store.snapshot_bytes | lares_store_snapshot_bytes | Size of the store's snapshot, in bytes.
history.card.bytes | lares_history_written_bytes_total | Bytes of history written to storage.
history.card.failures | lares_history_failures_total | Failed writes of history.
history.card.failure? | lares_history_failing | 1 while no history can be written to storage.
history.card.bad_lines | lares_history_bad_lines_total | Damaged lines in the history files.
history.card.lost | lares_history_lost_total | History entries dropped because the buffer was full.
history.server.sent | lares_influx_sent_total | Values that the InfluxDB server accepted.
history.server.refused | lares_influx_refused_total | Values that the InfluxDB server rejected.
history.server.dropped | lares_influx_dropped_total | Values dropped during a long outage of the InfluxDB server.
history.server.waiting | lares_influx_waiting | Values that wait for the InfluxDB server.
history.server.failure? | lares_influx_failing | 1 while the InfluxDB server accepts no values.
process.cpu_secs | process_cpu_seconds_total | Processor time of the hub's process, in seconds.
process.resident_bytes | process_resident_memory_bytes | Resident memory of the hub's process, in bytes.
process.open_files | process_open_fds | Open file descriptors of the hub's process.
process.max_open_files | process_max_fds | The limit of open file descriptors.
process.threads | process_threads | Threads of the hub's process.
"""
"""The metrics that consist of one number. Each row contains the number's path in the tree, the metric's name, and its
help text.

For a path that ends in `?`, the metric is 1 if the value is set, otherwise 0. If a word follows the path, the value
is a mapping. The metric then has one sample per key, with the word as the label's name and the key as the label's
value.
"""


def write_metrics(tree: Mapping[str, Any], requests: RequestCounts) -> bytes:
    """Return every metric as text. `tree` is the result of `Figures.collect`."""
    hub, known = tree["hub"], {"version": tree["hub"]["version"], "python": tree["hub"]["python"]}
    return expose(
        [
            Family(name="lares_info", type="gauge", help="The running version.", samples=[(labels(known), 1)]),
            metric(
                "lares_start_time_seconds", "Start of the hub, in seconds since 1970.", _seconds(hub["started_at"])
            ),
            *_of_requests(requests),
            *_of_adapters(tree["adapters"]),
            *_of_figures(tree),
            *_of_executions(tree),
        ]
    )


def _of_figures(tree: Mapping[str, Any]) -> Iterator[Family]:
    for line in METRICS.strip().split("\n"):
        source, name, help_ = line.split(" | ")
        path, _, label = source.partition(" ")
        value: Any = tree
        *above, last = path.split(".")
        for key in above:
            value = None if value is None else value[key]
        if value is not None:
            value = value[last.removesuffix("?")]
            yield metric(name, help_, value is not None if last.endswith("?") else value, label)


def _of_requests(requests: RequestCounts) -> Iterator[Family]:
    counts = (
        (labels({"method": method, "route": route, "status": str(status)}), count)
        for (method, route, status), count in sorted(requests.counts.items())
    )
    name, what = "lares_http_requests_total", "Requests by method, route, and status."
    yield Family(name=name, type="counter", help=what, samples=counts)
    name, what = (
        "lares_http_request_duration_seconds",
        "Time from the headers of a request to its response, by method and route.",
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


def _of_adapters(adapters: Mapping[str, Mapping[str, Any]]) -> Iterator[Family]:
    def each(name: str, help_: str, read: Callable[[Mapping[str, Any]], float | None]) -> Family:
        values = {adapter: read(figures) for adapter, figures in adapters.items()}
        return metric(f"lares_adapter_{name}", help_, values, "adapter")

    is_well = "1 if the last poll or command succeeded."
    yield each("up", is_well, lambda figures: figures["health"]["status"] == "ok")
    yield each("answers_total", "Successful answers of the device or service.", lambda figures: figures["answers"])
    samples = [
        (suffix + labels({"adapter": adapter}), figures[key])
        for adapter, figures in adapters.items()
        for suffix, key in (("_sum", "timed_secs"), ("_count", "timed"))
    ]
    timed = "Duration of successful polls."
    yield Family(name="lares_adapter_poll_duration_seconds", type="summary", help=timed, samples=samples)
    yield each("failures_total", "Polls and commands that failed.", lambda figures: figures["failures"])
    last = "Time of the last successful answer, in seconds since 1970."
    yield each("last_success_timestamp_seconds", last, lambda figures: _seconds(figures["last_success"]))


def _of_executions(tree: Mapping[str, Any]) -> Iterator[Family]:
    kinds = {"scene": tree["scenes"], "automation": tree["automations"]}
    running, waiting, loaded = (
        {kind: each[name] for kind, each in kinds.items()} for name in ("running", "waiting", "loaded")
    )
    ended = [
        (labels({"kind": kind, "status": status}), count)
        for kind, each in kinds.items()
        for status, count in sorted(each["ended"].items())
    ]
    how = "Executions of Lua by result, including executions that never began."
    yield Family(name="lares_executions_total", type="counter", help=how, samples=ended)
    yield metric("lares_executions_running", "Executions in progress.", running, "kind")
    yield metric("lares_executions_waiting", "Executions that wait to start.", waiting, "kind")
    yield metric("lares_definitions", "Scenes and automations that are loaded.", loaded, "kind")
    yield metric("lares_lua_workers", "Processes that run Lua.", len(tree["scripts"]["workers"]))
    kept = {kind: tree["history"][kind]["bytes"] for kind in ("devices", "commands")}
    yield metric("lares_history_bytes", "Memory that the history uses.", kept, "history")


def _seconds(instant: str | None) -> float | None:
    return None if instant is None else datetime.fromisoformat(instant).timestamp()
