"""The systemd unit is sound, and leaves little open."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "firmware" / "systemd" / "lares.service"
MOST_EXPOSURE = 2.0


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What systemd-analyze says; skips where there is none, or one that cannot read files."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("there is no systemd-analyze here (package systemd)")
    done = subprocess.run([tool, "--man=no", *arguments], capture_output=True, text=True, timeout=120)
    if "unrecognized option" in done.stderr:
        pytest.skip("systemd-analyze here is too old to read a file that is not installed")
    return done


@pytest.mark.slow
def test_systemd_finds_no_fault_in_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("usr/local/bin/lares", "bin/kill"):
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
    assert "Watchdog" in analyze("verify", f"--root={root}", "lares.service").stderr, "it looks at that file"


@pytest.mark.slow
def test_its_exposure_is_small() -> None:
    done = analyze("security", "--offline=yes", "--no-pager", UNIT)
    found = re.search(r"Overall exposure level for lares.service: ([\d.]+)", done.stdout)
    assert found is not None, done.stderr
    print(found[0])
    assert float(found[1]) <= MOST_EXPOSURE


def test_a_faulty_configuration_is_not_tried_again_and_the_hub_has_time_to_stop() -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))
    assert settings["Type"] == "notify" and settings["RestartPreventExitStatus"] == "78"
    assert int(settings["TimeoutStopSec"]) > 5 and int(settings["WatchdogSec"]) > 0
    assert settings["StateDirectory"] == settings["ConfigurationDirectory"] == "lares"
