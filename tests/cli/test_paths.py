"""The search for configuration and data, and the files of a first start."""

from __future__ import annotations

import os
import stat
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from appliance.cli.initial_config import read_template, write_config
from appliance.cli.paths import HubPaths, make_data_dir
from appliance.config import bundled_config
from appliance.errors import AccessDenied, StartFailed

CONFIG = "config/default.toml"


def hub_paths(
    root: Path, *, config: str | None = None, data: str | None = None, environment: Mapping[str, str] | None = None
) -> HubPaths:
    """Return paths below the root. `here` is the working folder, and `beside` is the executable's folder."""
    return HubPaths(
        config_flag=None if config is None else str(root / config),
        data_flag=None if data is None else str(root / data),
        environment={name: str(root / path) if path else "" for name, path in (environment or {}).items()},
        working_dir=root / "here",
        executable_dir=root / "beside",
    )


def make(root: Path, *files: str) -> None:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")


CONFIG_CASES: list[tuple[str | None, dict[str, str], list[str], str]] = [
    ("a.toml", {"LARES_CONFIG": "b.toml", "CONFIGURATION_DIRECTORY": "etc"}, [], "a.toml"),
    (None, {"LARES_CONFIG": "b.toml", "CONFIGURATION_DIRECTORY": "etc"}, [], "b.toml"),
    (None, {"LARES_CONFIG": "", "CONFIGURATION_DIRECTORY": "etc"}, [f"here/{CONFIG}"], f"etc/{CONFIG}"),
    (None, {"CONFIGURATION_DIRECTORY": ""}, [f"here/{CONFIG}"], f"here/{CONFIG}"),
    (None, {}, [f"here/{CONFIG}", f"beside/{CONFIG}"], f"here/{CONFIG}"),
    (None, {}, [f"beside/{CONFIG}"], f"beside/{CONFIG}"),
    (None, {}, [], f"here/{CONFIG}"),
]


@pytest.mark.parametrize(("flag", "environment", "existing", "found"), CONFIG_CASES)
def test_the_configuration_is_found_by_flag_environment_systemd_working_folder_executable_in_this_order(
    tmp_path: Path, flag: str | None, environment: dict[str, str], existing: list[str], found: str
) -> None:
    make(tmp_path, "a.toml", "b.toml", *existing)
    assert hub_paths(tmp_path, config=flag, environment=environment).find_config() == tmp_path / found


@pytest.mark.parametrize("flag", [None, f"here/{CONFIG}"])
def test_all_commands_refuse_a_link_to_a_missing_configuration_file(tmp_path: Path, flag: str | None) -> None:
    link = tmp_path / "here" / CONFIG
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "not-mounted.toml")
    asked = hub_paths(tmp_path, config=flag)
    for find in (asked.find_config, asked.need_config, lambda: asked.find_config(is_new=True)):
        with pytest.raises(StartFailed) as failed:
            find()
        assert str(failed.value) == f"{link} is a link to a missing file; restore that file, or remove the link"
        assert failed.value.exit_code == os.EX_CONFIG


DATA_CASES: list[tuple[str | None, dict[str, str], list[str], str]] = [
    ("a", {"LARES_DATA_DIR": "b", "STATE_DIRECTORY": "var"}, ["here/data/x"], "a"),
    (None, {"LARES_DATA_DIR": "b", "STATE_DIRECTORY": "var"}, ["here/data/x"], "b"),
    (None, {"LARES_DATA_DIR": "", "STATE_DIRECTORY": "var"}, ["here/data/x"], "var"),
    (None, {}, ["here/data/x", "beside/data/x"], "here/data"),
    (None, {}, ["beside/data/x"], "beside/data"),
    (None, {}, [], "here/data"),
]


@pytest.mark.parametrize(("flag", "environment", "existing", "found"), DATA_CASES)
def test_the_data_directory_is_found_in_the_same_order(
    tmp_path: Path, flag: str | None, environment: dict[str, str], existing: list[str], found: str
) -> None:
    make(tmp_path, *existing)
    assert hub_paths(tmp_path, data=flag, environment=environment).find_data_dir() == tmp_path / found


def test_the_first_of_systemds_folders_is_used(tmp_path: Path) -> None:
    environment = {"CONFIGURATION_DIRECTORY": "one:/etc/two", "STATE_DIRECTORY": "one:/var/two"}
    asked = hub_paths(tmp_path, environment=environment)
    assert asked.find_config() == tmp_path / "one" / CONFIG
    assert asked.find_data_dir() == tmp_path / "one"


@pytest.mark.parametrize("is_folder", [False, True])
@pytest.mark.parametrize("by_flag", [False, True])
def test_a_named_configuration_must_be_a_file(tmp_path: Path, by_flag: bool, is_folder: bool) -> None:
    if is_folder:
        (tmp_path / "x.toml").mkdir()
    make(tmp_path, f"here/{CONFIG}")
    asked = hub_paths(
        tmp_path, config="x.toml" if by_flag else None, environment={} if by_flag else {"LARES_CONFIG": "x.toml"}
    )
    with pytest.raises(StartFailed) as failed:
        asked.find_config()
    is_there = f"{tmp_path}/x.toml is not a regular file"
    assert str(failed.value) == (is_there if is_folder else f"there is no configuration file {tmp_path}/x.toml")
    assert failed.value.exit_code == 78


def test_a_relative_path_starts_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "sub/a.toml")
    monkeypatch.chdir(tmp_path)
    asked = HubPaths.of_process(Namespace(config="sub/a.toml", data_dir="state"))
    assert asked.find_config() == tmp_path / "sub/a.toml"
    assert asked.find_data_dir() == tmp_path / "state"


def listing(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


class TestBundledConfiguration:
    """The bundled configuration."""

    def test_the_bundled_configuration_is_written_byte_for_byte(self, tmp_path: Path) -> None:
        write_config(tmp_path / "deep" / "config", read_template(bundled_config()))
        bundled = {name: each for name, each in listing(bundled_config()).items() if not name.startswith("recipes/")}
        assert listing(tmp_path / "deep" / "config") == bundled
        assert (tmp_path / "deep" / "config" / "automations").is_dir()
        assert "default.toml" in listing(bundled_config())

    def test_a_dangling_link_is_not_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "default.toml").symlink_to(tmp_path / "not-mounted" / "default.toml")
        write_config(tmp_path, read_template(bundled_config()))
        assert (tmp_path / "default.toml").is_symlink()
        assert "default.toml" not in listing(tmp_path)

    def test_the_start_ends_if_the_folder_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "config").write_text("a file where the folder should be")
        with pytest.raises(StartFailed) as failed:
            write_config(tmp_path / "config", read_template(bundled_config()))
        assert str(failed.value) == f"cannot write the configuration to {tmp_path}/config: File exists"
        assert failed.value.exit_code == 73


class TestDataDirectory:
    """The folder of the hub's own state."""

    def test_the_data_directory_is_made_for_its_owner_only(self, tmp_path: Path) -> None:
        make_data_dir(tmp_path / "deep" / "data")
        assert stat.S_IMODE((tmp_path / "deep" / "data").stat().st_mode) == 0o700

    def test_an_existing_folder_is_used_unchanged(self, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir(mode=0o750)
        make_data_dir(tmp_path / "data")
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o750

    @pytest.mark.parametrize(
        ("path", "why"),
        [
            ("file", "{}/file is not a directory; rename it, or name another folder"),
            ("link/data", "{}/link is not a directory; rename it, or name another folder"),
            ("file/data", "Not a directory"),
        ],
    )
    def test_a_data_directory_that_cannot_be_made_ends_the_start(self, tmp_path: Path, path: str, why: str) -> None:
        (tmp_path / "file").write_text("")
        (tmp_path / "link").symlink_to(tmp_path / "missing")
        with pytest.raises(StartFailed) as failed:
            make_data_dir(tmp_path / path)
        shown = why.format(tmp_path)
        assert str(failed.value) == f"cannot create the data directory {tmp_path / path}: {shown}"
        assert failed.value.exit_code == 73

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
    def test_the_start_ends_if_the_folder_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir(mode=0o500)
        with pytest.raises(AccessDenied, match=f"permission denied: {tmp_path}/data; run `sudo chown "):
            make_data_dir(tmp_path / "data")

    def test_a_start_without_permission_names_the_remedy(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(folder: Path, *_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied", str(folder))

        monkeypatch.setattr(Path, "mkdir", refuse)
        for denied in (
            lambda: make_data_dir(tmp_path / "data"),
            lambda: write_config(tmp_path / "config", read_template(bundled_config())),
        ):
            with pytest.raises(
                AccessDenied, match=f"permission denied: {tmp_path}/(data|config); use sudo"
            ) as failed:
                denied()
            assert failed.value.exit_code == os.EX_NOPERM

    def test_a_folder_on_a_read_only_card_is_accepted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "access", lambda folder, mode: False)
        monkeypatch.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_flag=os.ST_RDONLY))
        make_data_dir(tmp_path)


def test_a_folder_without_permission_is_treated_as_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "exists", refuse)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    hub = HubPaths(
        config_flag=None, data_flag=None, environment={}, working_dir=tmp_path, executable_dir=Path("/root")
    )
    assert hub.find_data_dir() == tmp_path / "data"


def test_a_deleted_working_directory_is_reported_if_a_path_depends_on_it(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    file = tmp_path / "config" / "default.toml"
    file.write_text("")
    gone = HubPaths(
        config_flag=str(file), data_flag=str(tmp_path), environment={}, working_dir=None, executable_dir=Path("/root")
    )
    assert (gone.find_config(), gone.find_data_dir()) == (file, tmp_path)
    for flag in (None, "relative"):
        lost = HubPaths(
            config_flag=flag, data_flag=flag, environment={}, working_dir=None, executable_dir=Path("/root")
        )
        for find in (lost.find_config, lost.find_data_dir):
            with pytest.raises(StartFailed, match="the working directory was deleted; change to another one"):
                find()
