"""Explains an adapter."""

from __future__ import annotations

from collections.abc import Iterator

from appliance.api.why.explanation import HOW_TO_LOAD, MAX_DECISIONS
from appliance.clock import timestamp
from appliance.health import AdapterHealth


def describe_adapter(health: AdapterHealth, id_: str) -> Iterator[str]:
    """Yield sentences about the adapter, and about the dropped values of this device or adapter."""
    yield f"its adapter {health.name} is {health.status}" + (f": {health.message}" if health.message else "")
    if health.file_fault is not None and health.file_fault != health.message:
        yield f"the file of its kind has an error: {health.file_fault}"
    if health.file_fault is not None:
        yield HOW_TO_LOAD
    if health.last_success is None:
        yield f"{health.name} has not answered yet"
    else:
        yield f"{health.name} last answered at {timestamp(health.last_success)}"
    yield from list_dropped(health, id_)[:MAX_DECISIONS]
    if id_ == health.name and health.dropped:
        yield f"GET /adapters/{id_} lists all dropped values"


def list_dropped(health: AdapterHealth, id_: str) -> list[str]:
    """Return a sentence for each dropped value of the device or adapter."""
    what = "" if id_ == health.name else " was dropped"
    return [f"{each.attribute}{what}: {each.reason}" for each in health.dropped if each.device_id == id_]
