"""`lares check` as root: what root can read and the hub's user cannot is a fault."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from appliance.cli.check import find_unreadable
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


def test_what_the_hub_can_read_is_no_fault(tmp_path: Path) -> None:
    assert find_unreadable(furnish(tmp_path), tmp_path / "data") == []
    assert ended(tmp_path, "check").code == 0


@pytest.mark.parametrize("name", ["default.toml", "scenes", "scenes/a.lua"])
def test_what_it_cannot_read_is_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    path = furnish(tmp_path) / name
    os.chown(path, 0, 0)
    [fault] = find_unreadable(path.parents[name.count("/")], tmp_path / "data")
    assert fault.file == str(path) and "chgrp 54321" in fault.message and "12345" in fault.message


def test_it_ends_the_check_with_78(tmp_path: Path) -> None:
    os.chown(furnish(tmp_path) / "default.toml", 0, 0)
    result = ended(tmp_path, "check")
    assert result.code == 78 and "default.toml: cannot be read by user 12345" in result.out


def test_a_box_whose_hub_is_root_s_own_has_nothing_to_hide(tmp_path: Path) -> None:
    config = furnish(tmp_path)
    os.chown(tmp_path / "data", 0, 0)
    (config / "default.toml").chmod(0o600)
    assert find_unreadable(config, tmp_path / "data") == []
