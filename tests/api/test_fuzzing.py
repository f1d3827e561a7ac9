"""Schemathesis reads only `/openapi.json`, and finds no difference between the document and the hub.

The quick tests include `test_properties.py` instead of this file. `PROOF_FUZZ_SECS=600 python3 build.py test --slow
-k fuzzing` tries examples for ten minutes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest

from appliance.api.app import ROUTES
from tests.fakes.app import LIGHT, MASTER, TV, open_app

SECONDS = os.environ.get("PROOF_FUZZ_SECS")
OPTIONS = (
    *("--seed", "4"),
    *("--suppress-health-check", "filter_too_much"),  # only few random texts match the pattern of `file_path`
    *(("--max-examples", "2") if SECONDS is None else ("--max-time", SECONDS)),
)

EXISTING = {
    "path.device_id": [LIGHT, TV],
    "path.room_id": ["hall"],
    "path.group_id": ["all"],
    "path.name": ["elgato_lights", "roku_tv"],
    "query.ids": [LIGHT, TV],
    "body.room_id": ["hall"],
    "body.members[*]": [LIGHT, TV],
}
"""Existing ids, so that the fuzzer finds resources more often."""

SETTINGS = """
warnings = false
[checks]
not_a_server_error.expected-statuses = ["2xx", "4xx", "501", "503"]
positive_data_acceptance.enabled = false  # 400 also says that a device is not there, or that a TV has no brightness
ensure_resource_availability.enabled = false  # an id that holds a percent sign is put into the path as it is,
use_after_free.enabled = false  # so that another is asked for than was made or removed
[output.sanitization]
enabled = false
""" + "".join(
    f"""
[dictionaries.{place.replace(".", "-").rstrip("[*]")}]
values = {json.dumps(values)}
[parameters."{place}"]
dictionary = "{place.replace(".", "-").rstrip("[*]")}"
probability = 0.7
"""
    for place, values in EXISTING.items()
)


@pytest.mark.slow(minutes=1)
async def test_a_fuzzer_finds_no_difference(tmp_path: Path, quiet_log: pytest.LogCaptureFixture) -> None:
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    async with open_app() as app:
        await app.post("/rooms", {"id": "hall", "name": "Hall"})
        await app.post(f"/devices/{LIGHT}/room", {"room_id": "hall"})
        await app.post("/groups", {"id": "all", "name": "All", "members": [LIGHT, TV]})
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{app.url}/openapi.json", "--no-color"]
        process = await asyncio.create_subprocess_exec(
            *command,
            *("--header", f"Authorization: Bearer {MASTER}", *OPTIONS),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            sentence = (await process.communicate())[0].decode()
        finally:
            if process.returncode is None:
                process.kill()
        assert (await app.get("/health")).status == 200
    assert process.returncode == 0, sentence
    # Schemathesis omits the route of the document itself.
    assert (tested := re.search(r"Tested: +(\d+)", sentence)) is not None and int(tested[1]) == len(ROUTES) - 1, (
        sentence
    )
