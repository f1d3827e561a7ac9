"""`GET /asyncapi.json` and `docs/events.md` describe the frames, and all frames match."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs

from appliance.api.error_codes import CODES
from appliance.api.frames import FRAMES, EventFrame, dropped_frame, fault_frame, frame_of, heartbeat_frame
from appliance.api.openapi import describe_events
from appliance.home import events
from tests.api.test_stream import EVENT_FRAMES
from tests.fakes.app import READER, App

PAGE = Path(__file__).parents[2] / "docs" / "events.md"

DOCUMENT = json.loads(json.dumps(describe_events(FRAMES)))


def schema_of(type_: str) -> Any:
    """Return the schema of a frame type, as a client finds it in the document."""
    message = DOCUMENT["components"]["messages"][type_]
    return {**message["payload"], "components": DOCUMENT["components"]}


def faults_of(frame: Mapping[str, Any]) -> list[str]:
    """Return the differences between this frame and the document."""
    return [str(each) for each in jsonschema_rs.Draft202012Validator(schema_of(frame["type"])).iter_errors(frame)]


def test_every_frame_matches_the_document() -> None:
    seen = {"heartbeat"}
    for event, frame in EVENT_FRAMES:
        encoded = frame_of(event)
        assert (encoded is None) == (frame is None)
        if encoded is not None:
            assert not faults_of(json.loads(encoded)), encoded
            seen.add(json.loads(encoded)["type"])
    assert seen == {frame.type for frame in FRAMES} == set(DOCUMENT["channels"]["events"]["messages"])
    for encoded in (heartbeat_frame(), dropped_frame(3), fault_frame(events.SystemErrorReported(message="x"))):
        assert not faults_of(json.loads(encoded))


def test_a_frame_with_other_fields_does_not_match() -> None:
    for wrong in (
        {"type": "device.removed"},
        {"type": "device.removed", "id": 5},
        {"type": "device.removed", "id": "x", "more": 1},
        {"type": "room.added", "room": {"id": "x"}},
    ):
        assert faults_of(wrong)


async def test_a_read_key_is_enough_for_the_document(app: App) -> None:
    answer = await app.get("/asyncapi.json", token=READER.text)
    assert (answer.status, answer.json) == (200, DOCUMENT)


def rows_of_frames() -> list[str]:
    return [f"| `{frame.type}` | {_fields(frame)} | {frame.when} |" for frame in FRAMES]


def rows_of_codes() -> list[str]:
    return [f"| `{name}` | {code.status} | {code.meaning} |" for name, code in sorted(CODES.items())]


def _fields(frame: EventFrame) -> str:
    required = frame.record["required"]
    names = [name for name in frame.record["properties"] if name != "type"]
    return ", ".join(f"`{name}`" if name in required else f"`{name}` (optional)" for name in names)


def test_the_page_has_every_frame_and_every_code_and_no_other() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    expected = [*rows_of_frames(), *rows_of_codes()]
    assert rows == expected, "docs/events.md should say:\n" + "\n".join(expected)
