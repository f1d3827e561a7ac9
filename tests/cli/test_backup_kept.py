"""What kinds in Lua keep is a secret: only a backup that is asked for it holds it."""

from __future__ import annotations

from pathlib import Path

from appliance.cli.backup import collect
from appliance.clock import Clock
from appliance.store.disk import Disk
from appliance.store.document import Document


async def test_a_backup_holds_what_is_kept_only_where_it_is_asked_to(tmp_path: Path) -> None:
    config, data = tmp_path / "config" / "default.toml", tmp_path / "data"
    config.parent.mkdir()
    config.touch()
    data.mkdir()
    async with Document(Disk(data), Clock()) as document:
        await document.put_many({"adapter/hue/kept": '{"key":"s3cret"}', "room/hall": {"name": "Hall"}})
    without, _ = collect(config, data)
    assert set(without.values) == {"room/hall"}
    assert "adapter/hue/kept" in collect(config, data, has_secrets=True)[0].values
