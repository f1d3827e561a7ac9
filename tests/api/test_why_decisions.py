"""The sentences of `lares why` about past executions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from appliance.api.why.executions import _decision
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus


@pytest.mark.parametrize(
    ("event", "trigger"),
    [
        ({"type": "device_state_change", "device_id": "lamp"}, " (device_state_change of lamp)"),
        ({"type": "manual"}, " (manual)"),
        ({"device_id": "lamp"}, ""),
        (None, ""),
    ],
)
def test_a_dropped_execution_names_its_trigger_and_device(event: dict[str, Any] | None, trigger: str) -> None:
    hub: Any = None
    entry = ExecutionEntry(
        subject="a",
        executed_at=datetime(2026, 1, 1, tzinfo=UTC),
        status=ExecutionStatus.DROPPED,
        error="full",
        results=(),
        duration_ms=0,
        trigger_payload=event,
    )
    assert _decision(hub, entry).sentence == f"did not run{trigger}: full"
