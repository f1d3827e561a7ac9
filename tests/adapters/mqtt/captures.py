"""Captured announcements in `tests/fixtures/mqtt`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent.parent / "fixtures" / "mqtt"


@dataclass(frozen=True)
class Sent:
    """A message of a capture."""

    topic: str
    payload: bytes
    retain: bool


@dataclass(frozen=True)
class Capture:
    """The content of one file: the announcements, and the states that follow."""

    name: str
    messages: tuple[Sent, ...]
    states: tuple[Sent, ...]


@cache
def capture(name: str) -> Capture:
    """Return the capture of a file such as `zigbee2mqtt/e1743`."""
    raw = json.loads((FOLDER / f"{name}.json").read_text())
    return Capture(name, _sent(raw["messages"]), _sent(raw.get("states", ())))


def captures() -> Iterator[Capture]:
    for file in sorted(FOLDER.glob("*/*.json")):
        yield capture(str(file.relative_to(FOLDER).with_suffix("")))


def configurations() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each configuration of each capture, with its topic."""
    for each in captures():
        for sent in each.messages:
            if sent.topic.endswith("/config") and sent.payload.startswith(b"{"):
                yield sent.topic, json.loads(sent.payload)


def _sent(raw: Any) -> tuple[Sent, ...]:
    return tuple(Sent(each["topic"], each["payload"].encode(), bool(each.get("retain"))) for each in raw)
