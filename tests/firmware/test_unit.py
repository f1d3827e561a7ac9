"""The systemd unit is valid, and allows little."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from ctypes.util import find_library
from pathlib import Path

import pytest

from tests.fakes.patience import until
from tests.fakes.process import configure, running
from tests.fakes.programs import need

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "firmware" / "systemd" / "lares.service"
CONFINED = Path(__file__).with_name("confined.py")
PAGE = (ROOT / "docs" / "systemd.md").read_text()


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Return the output of systemd-analyze. Skip the test if the installed version cannot analyze files."""
    tool = need("systemd-analyze")
    done = subprocess.run([tool, "--man=no", *arguments], capture_output=True, text=True, timeout=120)
    if "unrecognized option" in done.stderr:
        pytest.skip("systemd-analyze here is too old to read a file that is not installed")
    return done


@pytest.mark.slow
def test_systemd_finds_no_error_in_the_unit(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("usr/local/bin/lares", "bin/sh"):
        (root / name).parent.mkdir(parents=True)
        (root / name).touch(mode=0o755)
    folder = root / "etc" / "systemd" / "system"
    folder.mkdir(parents=True)
    shutil.copy(UNIT, folder)
    for name in ("sysinit", "basic", "shutdown", "multi-user", "network-online", "time-sync"):
        (folder / f"{name}.target").write_text("[Unit]\nDefaultDependencies=no\n")
    (folder / "system.slice").write_text("[Unit]\nDefaultDependencies=no\n")
    done = analyze("verify", f"--root={root}", "lares.service")
    complaints = [line for line in done.stderr.splitlines() if "lares.service" in line]
    assert not complaints, done.stderr
    with (folder / "lares.service").open("a") as unit:
        unit.write("[Service]\nWatchdog=soon\n")
    assert "Watchdog" in analyze("verify", f"--root={root}", "lares.service").stderr, "the file is read"


@pytest.mark.slow
def test_the_units_exposure_is_small() -> None:
    done = analyze("security", "--offline=yes", "--no-pager", UNIT)
    found = re.search(r"Overall exposure level for lares.service: ([\d.]+)", done.stdout)
    assert found is not None, done.stderr
    print(found[0])
    [promised] = re.findall(r"`systemd-analyze security lares` reports ([\d.]+)", PAGE)
    assert float(found[1]) <= float(promised)


def test_a_faulty_configuration_is_not_retried_and_the_hub_has_time_to_stop() -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))
    assert settings["Type"] == "notify" and settings["RestartPreventExitStatus"] == "78"
    assert int(settings["TimeoutStopSec"]) > 5 and int(settings["WatchdogSec"]) > 0
    assert settings["StateDirectory"] == settings["ConfigurationDirectory"] == "lares"


SPIN = (
    'return { id = "spin", name = "Spin", execute = function(ctx) local n = 0 while n >= 0 do n = n + 1 end end }\n'
)


@pytest.mark.slow
async def test_a_hub_works_under_the_units_filters_and_long_scripts_have_low_priority(tmp_path: Path) -> None:
    need("systemd-analyze")
    if find_library("seccomp") is None:
        pytest.skip("needs libseccomp, to keep the unit's filters without systemd")
    configure(tmp_path)
    (tmp_path / "config" / "scenes").mkdir()
    (tmp_path / "config" / "scenes" / "spin.lua").write_text(SPIN)
    log = tmp_path / "hub.log"
    async with running(tmp_path, prefix=(sys.executable, str(CONFINED), str(UNIT))) as hub:
        assert is_filtered(hub.popen.pid)
        assert await hub.post("/rooms", id="hall", name="Hall") == 200
        spinning = asyncio.ensure_future(hub.ask("POST", "/scenes/spin/execute"))
        await until(lambda: max(niceness(hub.popen.pid)) > 0)
        [worker] = children_of(hub.popen.pid)
        assert is_filtered(worker) and is_limited(worker)
        status, body = await spinning
        assert status == 400 and "max_cpu_secs" in body["error"], body
        await asyncio.to_thread(subprocess.run, reload_command(hub.popen.pid), check=True)
        await until(lambda: "reload requested" in log.read_text())
        assert await hub.stop() == 0
    assert "not permitted" not in log.read_text().lower()


def reload_command(pid: int) -> list[str]:
    """Return the unit's ExecReload as a command."""
    [command] = re.findall(r"^ExecReload=(.*)$", UNIT.read_text(), re.MULTILINE)
    return shlex.split(command.replace("$MAINPID", str(pid)))


def test_a_reload_needs_only_a_shell() -> None:
    assert reload_command(7) == ["/bin/sh", "-c", "kill -HUP 7"]


def is_filtered(pid: int) -> bool:
    """Return whether a system call filter applies to the process."""
    return "Seccomp:\t2" in Path(f"/proc/{pid}/status").read_text()


def is_limited(worker: int) -> bool:
    """Return whether the worker was able to set its limits."""
    lines = Path(f"/proc/{worker}/limits").read_text().splitlines()
    soft = {line[:26].strip(): line[26:].split()[0] for line in lines}
    return (soft["Max open files"], soft["Max file size"]) == ("0", "0") and soft["Max address space"] != "unlimited"


def children_of(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for children in found for child in children.read_text().split()]


def niceness(pid: int) -> list[int]:
    """Return the niceness of all threads of the process and of the process's children."""
    found = []
    for process in (pid, *children_of(pid)):
        for thread in Path(f"/proc/{process}/task").glob("*/stat"):
            with suppress(OSError):
                found.append(int(thread.read_text().rpartition(")")[2].split()[16]))
    return found


def test_the_unit_has_no_privileges_and_writes_only_to_its_own_folders() -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))
    assert (settings["User"], settings["CapabilityBoundingSet"], settings["AmbientCapabilities"]) == ("lares", "", "")
    assert settings["ProtectSystem"] == "strict" and settings["ReadWritePaths"] == "-/etc/lares/config"
    assert settings["ProtectHome"] == settings["PrivateDevices"] == "yes"


def test_procd_gives_up_after_five_ends_within_an_hour() -> None:
    script = (UNIT.parents[1] / "openwrt" / "lares.init").read_text()
    assert "procd_set_param respawn 3600 5 5\n" in script
