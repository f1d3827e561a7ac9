"""Health: how the events of each adapter change the adapter's health."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from appliance.errors import NotFound
from appliance.health import Health
from appliance.home import events
from appliance.home.bus import Bus
from tests.fakes.rows import each_row

EARLY = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
LATE = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)

STARTED = events.AdapterStarted(adapter="tv")


def answered(at: datetime = EARLY) -> events.Event:
    """Return an event that reports an answer of the TV."""
    return events.AdapterAnswered(adapter="tv", at=at)


def errored(at: datetime = EARLY, message: str = "does not answer") -> events.Event:
    """Return an event that reports an error of the TV."""
    return events.AdapterErrored(adapter="tv", message=message, at=at)


def health_after(*happened: events.Event) -> Health:
    """Return the health of a light and a TV after these events."""
    bus = Bus()
    health = Health(["tv", "light"], bus)
    for event in happened:
        bus.publish(event)
    return health


@each_row(
    ("happened", "status"),
    [
        ([], "starting"),
        ([answered()], "starting"),
        ([errored()], "starting"),
        ([answered(), STARTED], "running"),
        ([STARTED, answered()], "running"),
        ([errored(), STARTED], "degraded"),
        ([answered(), STARTED, errored()], "degraded"),
        ([errored(), STARTED, answered()], "running"),
        ([errored(), STARTED, answered(), errored(), answered(LATE)], "running"),
        ([STARTED], "degraded"),
        ([events.AdapterReady(adapter="tv"), STARTED], "running"),
    ],
)
def test_the_status_follows_the_last_answer_after_the_first_poll(happened: list[events.Event], status: str) -> None:
    assert health_after(*happened).get_adapter("tv").status == status


def test_missing_adapters_are_listed_until_every_first_poll_has_ended() -> None:
    assert health_after().list_missing() == ["light", "tv"]
    assert health_after(errored(), STARTED).list_missing() == ["light"]
    assert health_after(STARTED, events.AdapterStarted(adapter="light")).list_missing() == []
    assert Health([], Bus()).list_missing() == []


def test_an_unknown_adapter_is_not_found() -> None:
    with pytest.raises(NotFound, match=r"^adapter 'radio' not found$"):
        health_after().get_adapter("radio")


def test_a_drop_is_listed_while_its_device_exists_and_until_it_has_ended() -> None:
    def dropped(device_id: str, attribute: str) -> events.Event:
        return events.ObservationDropped(adapter="tv", device_id=device_id, attribute=attribute, reason="is not JSON")

    drops = [dropped("tv:a", "x"), dropped("tv:a", "y"), dropped("tv:b", "x"), dropped("tv", "limit")]
    gone = events.DeviceRemoved(device_id="tv:a")
    ended = events.DropEnded(adapter="tv", device_id="tv:a", attribute="x")
    for happened, left in ((gone, ["tv:b x", "tv limit"]), (ended, ["tv:a y", "tv:b x", "tv limit"])):
        listed = health_after(*drops, happened).get_adapter("tv").dropped
        assert [f"{each.device_id} {each.attribute}" for each in listed] == left
