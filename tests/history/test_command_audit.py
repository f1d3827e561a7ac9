"""The audit of commands: newest first, within its bytes, and fair between devices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from appliance.history.execution_history import CommandAudit
from appliance.history.period import Period
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.events import CommandEnded

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DIM = Command(capability="brightness", action="set", value=40, transition_secs=2.5)
ALL = Period(limit=1000)


def send(bus: Bus, second: int, device_id: str = "a:1", source: str = "device", message: str | None = None) -> None:
    """Let a command to the device end so many seconds after noon."""
    bus.publish(
        CommandEnded(
            at=NOON + timedelta(seconds=second),
            source=source,
            room_id="hall",
            device_id=device_id,
            command=DIM,
            status="ok" if message is None else "error",
            message=message,
        )
    )


def seconds(audit: CommandAudit, device_id: str | None = None, period: Period = ALL) -> list[int]:
    """How many seconds after noon each was sent."""
    return [int(entry["recorded_at"][17:19]) for entry in audit.list_commands(period, device_id)]


def test_an_entry_says_who_what_and_what_came_of_it() -> None:
    bus = Bus()
    audit = CommandAudit(bus, 1 << 20)
    send(bus, 1, source="scene:evening", message="no answer")
    assert audit.list_commands(ALL) == [
        {
            "recorded_at": "2026-01-01T12:00:01.000Z",
            "source": "scene:evening",
            "room_id": "hall",
            "device_id": "a:1",
            "command": {"capability": "brightness", "action": "set", "value": 40, "transition_secs": 2.5},
            "status": "error",
            "message": "no answer",
        }
    ]


def test_entries_come_newest_first_within_the_period_of_all_devices_or_of_one() -> None:
    bus = Bus()
    audit = CommandAudit(bus, 1 << 20)
    for second, device_id in ((1, "a:1"), (3, "b:1"), (2, "a:1"), (2, "c:1")):
        send(bus, second, device_id)
    assert seconds(audit) == [3, 2, 2, 1] and seconds(audit, "a:1") == [2, 1] and seconds(audit, "nobody") == []
    assert [entry["device_id"] for entry in audit.list_commands(ALL)] == ["b:1", "c:1", "a:1", "a:1"]
    second_two = NOON + timedelta(seconds=2)
    assert seconds(audit, period=Period(start=second_two, end=second_two)) == [2, 2]
    assert seconds(audit, period=Period(limit=1)) == [3]


def test_the_budget_holds_and_who_is_commanded_often_loses_first() -> None:
    bus = Bus()
    audit = CommandAudit(bus, 100_000)
    for number in range(2000):
        send(bus, number % 60, "busy:1")
        if number % 200 == 0:
            send(bus, 1, "quiet:1")
    figures = audit.figures()
    assert figures["bytes"] <= 100_000 and figures["recorded"] == 2010
    assert len(seconds(audit, "quiet:1")) == 10 and len(seconds(audit, "busy:1")) > 100
    send(bus, 1, "huge:1", message="x" * 200_000)
    assert audit.figures()["bytes"] <= 100_000
