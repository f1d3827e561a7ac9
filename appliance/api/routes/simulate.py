"""The simulation of automations."""

from __future__ import annotations

from typing import Any

import orjson

from appliance.api.limits import MAX_FILE_BODY_BYTES
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.simulation import MAX_SIMULATED_HOURS, SimulationRequest
from appliance.api.validation import body_check, boolean, nullable, text
from appliance.clock import timestamp
from appliance.errors import Invalid, InvalidFile
from appliance.store.record_keys import HOME_STATE_PREFIXES
from appliance.tables import checks
from appliance.tables.fields import Field
from appliance.tables.json_schema import BOOLEAN, INSTANT, NUMBER, OBJECT, TEXT, Check, array_of, record

SIMULATION = record("Simulation", lines=array_of(OBJECT), until=INSTANT, is_complete=BOOLEAN)


MAX_EVENTS_CHARS = 256 << 10


def _hours(value: Any) -> float:
    if not checks.is_number(value) or not 0 < value <= MAX_SIMULATED_HOURS:
        raise Invalid(
            f"must be a number of hours above 0, at most {MAX_SIMULATED_HOURS}, not {checks.format_value(value)}"
        )
    return float(value)


def _events(value: Any) -> str:
    lines = value if isinstance(value, list) else [value]
    if not all(isinstance(line, str) for line in lines):
        raise Invalid("must be a text or an array of texts, with one event per line")
    if sum(map(len, lines)) > MAX_EVENTS_CHARS:
        raise Invalid(f"must not have more than {MAX_EVENTS_CHARS} characters")
    return "\n".join(lines)


SIMULATE_BODY = body_check(
    "SimulateRequest",
    {
        "path": Field(nullable(text), required=False),
        "text": Field(nullable(text), required=False),
        "from": Field(nullable(text), required=False),
        "hours": Field(Check(schema=NUMBER, run=_hours), default=24.0),
        "events": Field(Check(schema={"anyOf": [TEXT, array_of(TEXT)]}, run=_events), default=""),
        "run": Field(boolean, default=False),
    },
)


class SimulationApi(ApiResource):
    """The handler of `/simulate`."""

    needs_files = True

    @route(
        "POST",
        "/simulate",
        Role.ADMIN,
        SIMULATION,
        body=SIMULATE_BODY,
        body_optional=True,
        max_body_bytes=MAX_FILE_BODY_BYTES,
    )
    async def simulate(self, call: Call) -> object:
        """Simulate automations for at most 5 seconds, and return the lines of `lares simulate --json`."""
        stated = await call.read_body()
        path, given = stated["path"], stated["text"]
        if (path is None) != (given is None):
            raise Invalid("path and text can only be used together; send both or neither")
        if path is not None:
            checked = await self.hub.files.check(path, given)
            if checked.errors:
                raise InvalidFile(path, checked.errors)
            given = await self.hub.files.with_secrets(path, given)
        asked = SimulationRequest(
            path=path,
            text=given,
            start=stated["from"],
            hours=stated["hours"],
            events=stated["events"],
            runs_lua=stated["run"],
        )
        with call.cancellable():
            stored = await self.hub.store.recorder.list_present(HOME_STATE_PREFIXES)
            result = await self.parts.simulate(asked, stored)
        ending = orjson.dumps({"until": timestamp(result.until), "is_complete": result.is_complete})
        return b'{"lines":[%b],%b' % (b",".join(result.lines), ending[1:])
