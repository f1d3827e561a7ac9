"""`lares check` as root: what root can read and the hub's user cannot is a fault."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.test_commands_line import box, ended

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what others may not"),
]

USER, GROUP = 12345, 54321


def furnish(folder: Path) -> Path:
    """A box whose hub is run by another user; its folder of configuration."""
    config = box(folder) / "config"
    (config / "scenes").mkdir()
    (config / "scenes" / "a.lua").write_text('return { id = "a", name = "A", execute = function(ctx) end }')
    (folder / "data").mkdir()
    os.chown(folder / "data", USER, GROUP)
    for path in (config, *config.rglob("*")):
        os.chown(path, 0, GROUP)
        path.chmod(0o750 if path.is_dir() else 0o640)
    return config


def test_what_the_hub_can_read_is_no_fault(open_folder: Path) -> None:
    furnish(open_folder)
    assert ended(open_folder, "check").code == 0


@pytest.mark.parametrize("name", ["default.toml", "scenes", "scenes/a.lua"])
def test_what_it_cannot_read_is_named_with_what_to_do(open_folder: Path, name: str) -> None:
    path = furnish(open_folder) / name
    os.chown(path, 0, 0)
    result = ended(open_folder, "check")
    assert result.code == 78
    assert f"{path}: cannot be read by user 12345" in result.out and "chgrp 54321" in result.out


def test_a_box_whose_hub_is_root_s_own_has_nothing_to_hide(tmp_path: Path) -> None:
    config = furnish(tmp_path)
    os.chown(tmp_path / "data", 0, 0)
    (config / "default.toml").chmod(0o600)
    assert ended(tmp_path, "check").code == 0
