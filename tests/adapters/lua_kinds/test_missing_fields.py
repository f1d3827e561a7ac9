"""Devices whose firmware omits a field or sends an unexpected value. The hub reports the other values, or one
error."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from appliance.adapters.device_http.client import HttpResponse
from appliance.adapters.lua_kinds.web_request import WebRequest
from appliance.errors import AdapterFailed
from appliance.lua.running.worker_pool import WorkerPool
from tests.adapters.lua_kinds.bench import start
from tests.adapters.lua_kinds.bundled import BUNDLED
from tests.adapters.lua_kinds.test_bundled import FAULT
from tests.adapters.lua_kinds.vendor import Vendor

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

OTHERS: Iterator[Any] = itertools.cycle((None, "x", 0, 1e300, [7], {"x": 7}, ""))
"""Replacement values. Each field is tested with two replacement values."""

LEAF = re.compile(r"<(\w+)>([^<]*)</\1>")


class Altered:
    """The vendor's `Transport`, in which `body` replaces the answer of one path."""

    def __init__(self, vendor: Vendor) -> None:
        self.vendor = vendor
        self.answers: dict[str, bytes] = {}
        self.path, self.body = "", b""

    async def exchange(self, request: WebRequest) -> HttpResponse:
        found = await self.vendor.exchange(request)
        key = request.path + next(iter(re.findall(r"#\w+", request.headers.get("SOAPACTION", ""))), "")
        self.answers.setdefault(key, found.body)
        return HttpResponse(status=found.status, headers={}, body=self.body) if key == self.path else found


def altered(body: bytes) -> Iterator[bytes]:
    """Yield the answer with each of its parts missing or replaced."""
    try:
        answer = json.loads(body)
    except ValueError:
        text = body.decode()
        for leaf in LEAF.finditer(text):
            for value in ("", f"<{leaf[1]}/>", f"<{leaf[1]}>x</{leaf[1]}>", f"<{leaf[1]}>-1</{leaf[1]}>"):
                yield (text[: leaf.start()] + value + text[leaf.end() :]).encode()
        fields = text.split(",")
        for place, field in enumerate(fields):
            for values in ([], [field.partition("=")[0] + "="], [field.partition("=")[0] + "=-"], ["x"]):
                yield ",".join([*fields[:place], *values, *fields[place + 1 :]]).encode()
    else:
        for each in _without(answer):
            yield json.dumps(each).encode()


def _without(answer: Any) -> Iterator[Any]:
    yield from (next(OTHERS), next(OTHERS))
    keys: list[Any] = []
    if isinstance(answer, dict | list):
        keys = list(answer) if isinstance(answer, dict) else list(range(min(len(answer), 3)))
    for key in keys:
        for inner in _without(answer[key]):
            whole = answer.copy()
            whole[key] = inner
            yield whole
        less = answer.copy()
        del less[key]
        yield less


@pytest.mark.parametrize("name", BUNDLED)
async def test_each_field_can_be_missing_or_odd(pool: WorkerPool, tmp_path: Path, name: str) -> None:
    row = BUNDLED[name]
    vendor = row.vendor()
    it = await start(pool, tmp_path, None, vendor, row.kind, **row.stated)
    between = Altered(vendor)
    it.adapter.functions.transport = between
    await it.poll()
    count = 0
    for path, body in list(between.answers.items()):
        for other in altered(body):
            between.path, between.body = path, other
            it.adapter.functions.memory = {}
            count += 1
            try:
                assert "table: 0x" not in str(await it.adapter.poll()), (path, other)
            except AdapterFailed as failed:
                assert not FAULT.search(str(failed)), (path, other, str(failed))
    assert count > 5, "something was altered"


PUSHED = [
    {
        "type": "update",
        "data": [
            {"id": "light1", "type": "light", "owner": {"rid": "lamp1"}, "on": {"on": True}},
            {"id": "b1", "owner": {"rid": "lamp2"}, "button": {"button_report": {"event": "short_release"}}},
            {"id": "zigbee1", "type": "zigbee_connectivity", "status": "connected", "owner": {"rid": "lamp1"}},
        ],
    }
]


async def test_each_field_pushed_by_hue_can_be_missing_or_odd(pool: WorkerPool, tmp_path: Path) -> None:
    it = await start(pool, tmp_path, None, BUNDLED["hue"].vendor(), "hue")
    await it.poll()
    for other in altered(json.dumps(PUSHED).encode()):
        message = {"event": "message", "data": json.loads(other), "id": "1"}
        found = await it.adapter.functions.call(["listen", "receive"], message)
        await it.adapter.apply_update("receive", found)
    assert it.registry.get_device("it:lamp1").attributes["power"] == "on" and it.happened
