"""A hub that crashes again and again starts without automations, says so everywhere, and is cured by a reload."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_reports import asked
from tests.fakes.process import configure, running

AUTOMATION = """
return {
  id = "tick", name = "Tick", trigger = { type = "interval", every_secs = 3600 },
  execute = function(ctx) end,
}
"""


async def test_three_crashes_make_it_safe_and_a_reload_of_the_automations_ends_that(tmp_path: Path) -> None:
    configure(tmp_path)
    (tmp_path / "config" / "automations").mkdir()
    (tmp_path / "config" / "automations" / "tick.lua").write_text(AUTOMATION)
    for _ in range(3):
        async with running(tmp_path) as hub:
            assert len(await hub.get("/automations")) == 1
            await hub.kill()
    async with running(tmp_path) as hub:
        assert await hub.get("/automations") == []
        safe = (await hub.get("/diagnostics"))["hub"]["safe"]
        assert safe.startswith("safe mode: the hub crashed three times") and safe in hub.log.read_text()
        assert safe in (await asked(tmp_path, "status")).stdout
        assert "lares_safe_mode 1" in await hub.text("/metrics")
        status, body = await hub.ask("POST", "/automations/reload")
        assert (status, body["status"], body["loaded_count"]) == (200, "ok", 1)
        assert [each["id"] for each in await hub.get("/automations")] == ["tick"]
        assert (await hub.get("/diagnostics"))["hub"]["safe"] is None
        assert await hub.stop() == 0
    async with running(tmp_path) as hub:
        assert len(await hub.get("/automations")) == 1, "a stop in order ends the series"
