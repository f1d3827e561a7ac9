"""Line protocol, as InfluxDB, VictoriaMetrics, QuestDB and GreptimeDB take it: a line for each value.

`temperature,device=hall:climate,room=hall,unit=celsius value=21.5 1795164536595000000`: the attribute, who shows it
and where, the number, and the time in nanoseconds since 1970. A word is `text="on"`, and a number beside it where it
is one of two (`value=1`), for servers that keep numbers alone. Colours have a field for each of their parts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

MAX_FIELD_CHARS = 1024
"""Of a text."""

SWITCHES = {
    **dict.fromkeys(("on", "open", "detected", "occupied", "unlocked", "online", "playing"), 1),
    **dict.fromkeys(("off", "closed", "clear", "unoccupied", "locked", "offline", "unavailable", "stopped"), 0),
}
"""Words that are one of two states, as numbers."""

_CONTROL = re.compile(r"[\0-\x1f\x7f]")


def encode_line(device_id: str, room_id: str | None, attribute: str, value: Any, at_micros: int) -> bytes | None:
    """The line of the value, newline included; None where there is nothing to be said of it."""
    fields = ",".join(_fields(value))
    if not fields:
        return None
    unit = value.get("unit") if isinstance(value, Mapping) else None
    tags = {"device": device_id, "room": room_id, "unit": unit}
    named = "".join(f",{name}={_escape(each)}" for name, each in tags.items() if isinstance(each, str) and each)
    return f"{_escape(attribute)}{named} {fields} {at_micros}000\n".encode(errors="replace")


def _fields(value: Any) -> Iterator[str]:
    if isinstance(value, bool) or _is_number(value):
        yield f"value={_number(value)}"
    elif isinstance(value, str):
        if value in SWITCHES:
            yield f"value={SWITCHES[value]}"
        yield f"text={_quote(value)}"
    elif isinstance(value, Mapping) and _is_number(value.get("value")):
        yield f"value={_number(value['value'])}"
    elif isinstance(value, Mapping):
        yield from (f"{_escape(name)}={_number(each)}" for name, each in value.items() if name and _is_number(each))
    elif value is not None and not isinstance(value, float):
        yield f"text={_quote(json.dumps(value, default=str))}"


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value)


def _number(value: float) -> str:
    """As a decimal without an `i`: a field that was once a float takes no integer."""
    return repr(int(value) if isinstance(value, bool) else value)


def _quote(text: str) -> str:
    cut = _CONTROL.sub(" ", text[:MAX_FIELD_CHARS])
    return '"' + cut.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escape(text: str) -> str:
    """A name or a tag's value. A backslash can end none, since it would escape what follows."""
    plain = _CONTROL.sub(" ", text)
    plain = f"{plain[:-1]}_" if plain.endswith("\\") else plain
    return re.sub(r"([, =])", r"\\\1", plain)
