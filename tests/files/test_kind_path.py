"""The folder of kinds is next to the configuration, even if the parent folder has another name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from appliance import config
from appliance.clock import Clock
from appliance.errors import ConfigFailed, Fault, InvalidFile
from appliance.files.home_files import HomeFiles
from appliance.files.sections import Sections
from appliance.lua.text.source import Source
from appliance.store.disk import Disk


class Trials:
    """A trial that records the kind's source, and reports an error in line 1 of the source."""

    def __init__(self) -> None:
        self.sources: list[Source] = []

    async def run(self, name: str, settings: Any, *, kind: Source, replay: Any) -> None:
        """Fail as if the text contained an error."""
        self.sources.append(kind)
        raise ConfigFailed([Fault(kind.name, 1, "poll must be a function")])


@pytest.mark.parametrize("folder", ["x", "config"])
def test_the_text_of_a_kind_is_tried_in_the_folder_of_the_configuration(tmp_path: Path, folder: str) -> None:
    file = tmp_path / folder / "my.toml"
    file.parent.mkdir()
    file.write_text("[automations]\nenabled = false\n")
    (tmp_path / "data").mkdir()
    unused: Any = None
    files = HomeFiles(
        config.load(file, {}),
        Disk(tmp_path / "data"),
        unused,
        Clock(),
        unused,
        run=unused,
        reload_valid={},
        secret_settings=dict,
    )
    assert files.locations.kind_path("own") == f"{folder}/adapters/own.lua"
    assert files.locations.get(files.locations.kind_path("own")).file == file.parent / "adapters" / "own.lua"
    trials: Any = Trials()
    with pytest.raises(InvalidFile) as failed:
        asyncio.run(Sections(files, trials).try_section("own", "own", {}, text="return {}"))
    assert [each.name for each in trials.sources] == [f"{folder}/adapters/own.lua"]
    assert f"{folder}/adapters/own.lua" in str(failed.value)
