"""Root's commands in another user's home switch to that user, follow no link, and reveal no data of root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import LOOPBACK, ROOT, box, ended, environment

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")]

USER = 12345
SECRET = "what only root may read"


@pytest.fixture
def theirs(open_folder: Path) -> Path:
    """In a folder of root, create a home that another user owns, and a secret of root next to the home."""
    (open_folder / "secret.lua").write_text(f"-- {SECRET}")
    (open_folder / "secret.lua").chmod(0o600)
    home = open_folder / "home"
    for folder in (home / "config" / "scenes", home / "data"):
        folder.mkdir(parents=True)
    (home / "config" / "default.toml").write_text(LOOPBACK)
    (home / "data" / "lock").touch()
    give(home)
    return home


def give(folder: Path) -> None:
    """Make the user the owner of all these files."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, USER, USER, follow_symlinks=False)


def owners(folder: Path) -> set[int]:
    """Return the owners of the files in the folder."""
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def test_a_backup_by_root_reads_only_the_users_files_and_belongs_to_root(theirs: Path, open_folder: Path) -> None:
    archive = open_folder / "home.tar.gz"
    assert ended(theirs, "backup", str(archive)).code == 0
    assert (archive.stat().st_uid, archive.stat().st_mode & 0o777) == (0, 0o600)
    (theirs / "config" / "scenes" / "a.lua").symlink_to(open_folder / "secret.lua")
    give(theirs)
    result = ended(theirs, "backup", str(open_folder / "second.tar.gz"))
    assert result.code == 66 and "Permission denied" in result.err
    assert not (open_folder / "second.tar.gz").exists()


def test_a_restore_by_root_belongs_to_the_user_and_stays_in_the_home(theirs: Path, open_folder: Path) -> None:
    archive = open_folder / "home.tar.gz"
    assert ended(theirs, "backup", str(archive)).code == 0
    assert ended(theirs, "restore", str(archive)).code == 0
    assert owners(theirs / "config") == owners(theirs / "data") == {USER}


@pytest.mark.parametrize(
    "arguments",
    [
        ("restore",),
        ("backup", "x.tar.gz"),
        ("key", "list"),
        ("check",),
        ("doctor",),
        ("history", "export"),
    ],
    ids=" ".join,
)
def test_a_link_as_data_directory_is_refused(theirs: Path, open_folder: Path, arguments: tuple[str, ...]) -> None:
    archive = open_folder / "home.tar.gz"
    assert ended(theirs, "backup", str(archive)).code == 0
    hub = open_folder / "other"
    hub.mkdir(mode=0o700)
    (theirs / "data").rename(open_folder / "data")
    (theirs / "data").symlink_to(hub)
    os.chown(theirs / "data", USER, USER, follow_symlinks=False)
    last = [str(archive)] if arguments == ("restore",) else []
    result = ended(theirs, *arguments, *last)
    assert result.code == 77 and "is a link, which root does not follow" in result.err, result
    assert list(hub.iterdir()) == []


@pytest.mark.parametrize("lay", ["link", "fifo", "device", "hard link"])
def test_paths_given_by_root_must_be_plain_files(theirs: Path, open_folder: Path, lay: str) -> None:
    archive = theirs / "home.tar.gz"
    match lay:
        case "link":
            archive.symlink_to(open_folder / "secret.lua")
        case "fifo":
            os.mkfifo(archive)
        case "device":
            archive = Path("/dev/zero")
        case "hard link":
            archive.hardlink_to(open_folder / "secret.lua")
    result = ended(theirs, "restore", str(archive))
    assert result.code == 66 and re.search("link|not a regular file|other names", result.err), result
    result = ended(theirs, "backup", str(archive))
    assert result.code == 73 and re.search("not a regular file|is not a backup", result.err), result
    assert (open_folder / "secret.lua").read_text() == f"-- {SECRET}"


def test_a_link_of_root_is_called_a_link(theirs: Path, open_folder: Path) -> None:
    (open_folder / "link.tar.gz").symlink_to("home.tar.gz")
    result = ended(theirs, "restore", str(open_folder / "link.tar.gz"))
    reason = "it is a link, which root does not follow; specify its target"
    assert (result.code, result.err) == (66, f"lares: {open_folder}/link.tar.gz cannot be read: {reason}\n")


def test_try_adapter_reads_only_files_of_the_user(theirs: Path, open_folder: Path) -> None:
    secret, rows = open_folder / "secret.lua", '"exchanges": [["GET", "/", {}]]'
    secret.write_text(f'{{"kind": "mine", "settings": {{"base_url": "{SECRET}"}}, {rows}}}')
    (open_folder / "hidden").mkdir(mode=0o700)
    (open_folder / "hidden" / "hush.lua").write_text("")
    (theirs / "link").symlink_to(secret)
    (theirs / "second").hardlink_to(secret)
    (theirs / "config" / "adapters").symlink_to(open_folder / "hidden")
    give(theirs / "config")
    for arguments, code in (
        (["--replay", "link"], 77),
        (["--replay", "second"], 66),
        (["--record", "link"], 77),
        ([], 64),
        (["--config", "link/default.toml"], 78),
    ):
        result = ended(theirs, "try-adapter", "mine", *arguments)
        assert result.code == code, (arguments, result)
        assert SECRET not in result.out + result.err and "hush" not in result.err, result
    (theirs / "config" / "default.toml").unlink()
    (theirs / "config" / "default.toml").symlink_to(secret)
    os.chown(theirs / "config" / "default.toml", USER, USER, follow_symlinks=False)
    result = ended(theirs, "try-adapter", "mine")
    assert result.code == 77 and SECRET not in result.err, result


def test_root_without_permission_gets_another_remedy_than_sudo(theirs: Path, open_folder: Path) -> None:
    (theirs / "config").chmod(0)
    os.chown(theirs / "config", 0, 0)
    result = ended(theirs, "check")
    assert result.code == os.EX_NOPERM
    assert re.fullmatch(r"lares: permission denied: \S+; give the owner of the home access to it\n", result.err)


def test_an_import_by_root_translates_and_checks_as_the_owner_of_the_home(theirs: Path, open_folder: Path) -> None:
    (open_folder / "ha").mkdir()
    (open_folder / "ha" / "automations.yaml").write_text(
        "- {alias: A, triggers: [{trigger: time, at: '07:00'}], conditions: [\"{{ 'a' == 'b' }}\"], actions: []}"
    )
    result = ended(theirs, "import", "homeassistant", str(open_folder / "ha"))
    assert (result.code, result.err) == (0, ""), result
    assert "imported  automation A" in result.out and "skipped" not in result.out
    assert owners(theirs / "config") == {USER}


def test_an_import_by_root_reads_its_program_even_if_the_owner_of_the_home_cannot(
    theirs: Path, open_folder: Path
) -> None:
    program = open_folder / "program"
    for name in ("appliance", "config"):
        shutil.copytree(ROOT / name, program / name)
    program.chmod(0o700)
    (open_folder / "ha").mkdir()
    (open_folder / "ha" / "automations.yaml").write_text("- {alias: A, triggers: [], actions: []}")
    (theirs / "config" / "default.toml").unlink()
    command = [sys.executable, "-m", "appliance", "import", "homeassistant", str(open_folder / "ha")]
    variables = environment(PYTHONPATH=str(program))
    result = subprocess.run(command, cwd=theirs, env=variables, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert "imported  automation A" in result.stdout
    assert owners(theirs / "config") == {USER}


@pytest.mark.parametrize("command", ["key list", "status", "clock trust"])
def test_root_gets_a_command_for_a_data_folder_that_root_owns(theirs: Path, command: str) -> None:
    (theirs / "data").chmod(0o700)
    os.chown(theirs / "data", 0, 0)
    result = ended(theirs, *command.split())
    data = theirs / "data"
    assert result.code == os.EX_NOPERM
    words = (
        rf"run `sudo chown {USER} {data}`, then `sudo chmod u\+rwX {data}`|give the owner of the home access to it"
    )
    assert re.fullmatch(rf"lares: permission denied: \S+; ({words})\n", result.err)


@pytest.mark.parametrize("command", ["run", "demo"])
def test_root_runs_no_hub_in_the_home_of_another_user_and_gets_a_remedy(theirs: Path, command: str) -> None:
    result = ended(theirs, command, "--data-dir", str(theirs / "data"))
    assert result.code == 77 and "run it as that user" in result.err and "setpriv --reuid=12345" in result.err
    assert [path.name for path in (theirs / "data").iterdir()] == ["lock"]


def test_init_gives_the_files_to_the_owner_of_the_folder(theirs: Path) -> None:
    (theirs / "new").mkdir()
    os.chown(theirs / "new", USER, USER)
    assert ended(theirs, "init", str(theirs / "new")).code == 0
    assert owners(theirs / "new") == {USER}


def test_lua_runs_as_the_user(theirs: Path, open_folder: Path) -> None:
    """While a long file is read, ask the kernel for the worker's user."""
    (theirs / "config" / "scenes" / "a.lua").write_text("while true do end")
    (theirs / "config" / "default.toml").write_text(LOOPBACK + "[scripts]\nmax_cpu_secs = 2\n")
    give(theirs)
    process = subprocess.Popen(
        [sys.executable, "-m", "appliance", "check"], cwd=theirs, env=environment(), stdout=subprocess.PIPE
    )
    seen = set()
    while process.poll() is None:
        seen |= {
            tuple(line.split()[1:5])
            for child in Path(f"/proc/{process.pid}/task").glob("*/children")
            for pid in read(child).split()
            for line in read(Path(f"/proc/{pid}/status")).splitlines()
            if line.startswith("Uid:")
        }
    assert (str(USER),) * 4 in seen
    out, _ = process.communicate()
    assert process.returncode == 78 and b"a.lua" in out


def read(path: Path) -> str:
    """Read a file of /proc. Return an empty string if the process has ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


GROUP = 54321


def furnish(folder: Path) -> Path:
    """Create a box whose hub runs as another user. Return the configuration folder."""
    config = box(folder) / "config"
    (config / "scenes").mkdir()
    (config / "scenes" / "a.lua").write_text('return { id = "a", name = "A", execute = function(ctx) end }')
    (folder / "data").mkdir()
    os.chown(folder / "data", USER, GROUP)
    for path in (config, *config.rglob("*")):
        os.chown(path, 0, GROUP)
        path.chmod(0o750 if path.is_dir() else 0o640)
    return config


def test_readable_files_are_not_an_error(open_folder: Path) -> None:
    (furnish(open_folder) / "scenes" / ".#a.lua").symlink_to("an@editor.lock")
    assert ended(open_folder, "check").code == 0


@pytest.mark.parametrize("name", ["default.toml", "scenes", "scenes/a.lua"])
def test_unreadable_files_are_listed_with_a_remedy(open_folder: Path, name: str) -> None:
    path = furnish(open_folder) / name
    os.chown(path, 0, 0)
    result = ended(open_folder, "check")
    assert result.code == 78
    assert f"{path}: cannot be read by user 12345" in result.out and (
        f"run `sudo chgrp 54321 {path}` and `sudo chmod g+rX {path}`" in result.out
    )


def test_the_hub_can_read_a_configuration_of_root_after_an_import(open_folder: Path) -> None:
    config = furnish(open_folder)
    (open_folder / "ha").mkdir()
    (open_folder / "ha" / "configuration.yaml").write_text("homeassistant: {time_zone: Europe/Berlin}\n")
    (open_folder / "ha" / "automations.yaml").write_text("- {alias: A, triggers: [], actions: []}")
    result = ended(open_folder, "import", "homeassistant", str(open_folder / "ha"))
    assert "imported  locale.timezone" in result.out and "imported  automation A" in result.out, result
    assert (config / "default.toml").stat().st_mode & 0o777 == 0o640
    assert {path.stat().st_gid for path in config.rglob("*")} == {GROUP}
    assert ended(open_folder, "check").code == 0


def test_a_hub_of_root_has_no_restrictions(tmp_path: Path) -> None:
    config = furnish(tmp_path)
    os.chown(tmp_path / "data", 0, 0)
    (config / "default.toml").chmod(0o600)
    assert ended(tmp_path, "check").code == 0
