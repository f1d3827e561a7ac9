"""Messages that nobody is configured to hear are lines of the log, and a flood of them does not fill it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.automations.calls import MessageSender
from appliance.log_buffer import MAX_SAME_KIND, RepetitionLimit


async def test_messages_without_targets_are_logged_as_they_are_and_a_flood_is_held_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sender, context = MessageSender([]), SimpleNamespace(source="scene:a")
    with caplog.at_level(logging.INFO):
        for number in range(2 * MAX_SAME_KIND):
            sent: Any = await sender.notify(context, f"100 % of {number}", None, None)  # type: ignore[arg-type]
            assert sent[0]["status"] == "unsupported"
    limit = RepetitionLimit()
    written = [record.getMessage() for record in caplog.records if limit.filter(record)]
    assert written == [f"100 % of {number}" for number in range(MAX_SAME_KIND)]
