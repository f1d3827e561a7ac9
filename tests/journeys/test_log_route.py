"""The log over HTTP: for admins, by level, part and text."""

from __future__ import annotations

import logging

from tests.fakes.house import House


async def test_the_log_tells_its_latest_lines_newest_first(house: House) -> None:
    logging.getLogger("hub").warning("one %s", "thing", extra={"room": "attic"})
    logging.getLogger("store").error("another")
    answer = await house.get("/diagnostics/log?level=warning&limit=2")
    entries = answer.json["entries"]
    assert [(entry["level"], entry["part"], entry["message"]) for entry in entries] == [
        ("error", "store", "another"),
        ("warning", "hub", "one thing"),
    ]
    assert entries[1]["fields"] == {"room": "attic"} and entries[1]["at"].endswith("Z")
    for query in ("part=hub&contains=thing", "contains=ROOM%3Dattic"):
        [entry] = (await house.get(f"/diagnostics/log?{query}")).json["entries"]
        assert entry["message"] == "one thing"
    assert (await house.get("/diagnostics/log?part=nobody")).json["entries"] == []
