"""`lares simulate` lists the triggers that will fire and those that will not. The command prints the list
immediately, and has no side effects."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from appliance.cli.simulation.printer import MAX_EQUAL_LINES
from tests.cli.commands import LOOPBACK, ROOT, WITH_KEY, ended, environment, lares
from tests.cli.homes import BERLIN, ask, furnish, home, image
from tests.fakes.lua import automation, scene, write
from tests.fakes.recipes import filled

pytestmark = pytest.mark.slow

LAMP = "desk:light:0"

MORNING = automation("morning", "{ type = 'wall_clock', hour = 7, minute = 0 }")
SUNSET = automation("sunset", "{ type = 'sunset', offset_mins = -15 }")
HOURLY = automation("hourly", "{ type = 'cron', expression = '0 0 * * * *' }")
COOLING_DOWN = automation("beat", "{ type = 'interval', every_secs = 5400 }", more="state = { cooldown_secs = 9000 }")
FOLLOWS = automation("follows", f"{{ type = 'device_state_change', device_id = '{LAMP}' }}")
DARK = automation(
    "dark",
    "{ type = 'cron', expression = '0 30 */6 * * *' }",
    more=f"conditions = {{ {{ type = 'device_state', device_id = '{LAMP}', attribute = 'power', equals = 'on' }} }}",
)


def lines(folder: Path, *arguments: str) -> list[Any]:
    """Return the output of a simulation as objects."""
    result = ended(folder, "simulate", "--json", *arguments)
    assert result.code == 0, result
    return [json.loads(line) for line in result.out.splitlines()]


def test_simulate_prints_runs_in_order_with_local_times(tmp_path: Path) -> None:
    furnish(tmp_path, BERLIN, MORNING, SUNSET, FOLLOWS)
    result = ended(tmp_path, "simulate", "--from", "2026-12-24T00:00", "--hours", "24")
    first, second = result.out.splitlines()
    assert (result.code, first) == (0, "Thu 2026-12-24 07:00:00 CET  morning  fires")
    assert second.startswith("Thu 2026-12-24 15:4") and second.endswith(" CET  sunset  fires")
    assert result.err.splitlines() == [
        "warning: config/automations/2.lua:4: trigger.device_id names 'desk:light:0', but there is no section "
        "[adapters.desk]",
        "automations: 3, runs: 2",
        "these automations wait for devices, hooks, timers, variables, or failures: follows",
    ]


def test_a_skipped_run_is_printed_with_its_reason(tmp_path: Path) -> None:
    furnish(tmp_path, "", DARK, COOLING_DOWN)
    assert lines(tmp_path, "--from", "2026-12-24T00:00:00Z", "--hours", "7") == [
        {"at": f"2026-12-24T{at}:00.000Z", "automation": id_, "fired": error is None, "error": error}
        for at, id_, error in (
            ("00:30", "dark", f"condition 1: device '{LAMP}' not found"),
            ("01:30", "beat", None),
            ("03:00", "beat", "cooldown: 3600 s more"),
            ("04:30", "beat", None),
            ("06:00", "beat", "cooldown: 3600 s more"),
            ("06:30", "dark", f"condition 1: device '{LAMP}' not found"),
        )
    ]


def test_conditions_use_the_stored_home_and_switches(tmp_path: Path) -> None:
    stored = {
        "device/desk:light:0": {"kind": "Light", "source": "desk", "vendor_specific": {}},
        "state/desk:light:0": {"at": 1767225600000, "is": {"power": "on"}},
        "toggle/hourly": False,
    }
    home(tmp_path, stored)
    roku = 'type = "roku_tv"\nip_address = "192.0.2.1"\n'
    for section, error in (('type = "virtual"\n', None), (roku, f"condition 1: device '{LAMP}' not found")):
        furnish(tmp_path, f"[adapters.desk]\n{section}", DARK, HOURLY)
        expected = lines(tmp_path, "--from", "2026-12-24T00:00:00Z", "--hours", "1")
        assert [(each["at"][11:16], each["automation"], each["error"]) for each in expected] == [
            ("00:00", "hourly", "disabled: the automation is switched off"),
            ("00:30", "dark", error),
        ], "what is due at the first instant comes, what is due at the end does not"


def test_broken_files_are_named_and_the_others_are_simulated(tmp_path: Path) -> None:
    furnish(tmp_path, "", MORNING, SUNSET, "return {")
    result = ended(tmp_path, "simulate", "--from", "2026-12-24")
    assert (result.code, len(result.out.splitlines())) == (0, 1)
    assert result.err.splitlines() == [
        "not loaded: config/automations/1.lua:4: "
        "trigger.type sunset needs locale.latitude and locale.longitude in the configuration",
        "not loaded: config/automations/2.lua:1: unexpected symbol near <eof>",
        "automations: 1, runs: 1",
    ]


@pytest.mark.parametrize("lines", [2, MAX_EQUAL_LINES], ids=["before the last line", "after it"])
def test_simulate_ends_when_its_reader_disconnects(lines: int, tmp_path: Path) -> None:
    furnish(tmp_path, "", automation("tick", "{ type = 'interval', every_secs = 1 }"))
    command = f"{sys.executable} -m appliance simulate --hours 8784 | head -n {lines}"
    began = time.monotonic()
    result = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, env=environment(), capture_output=True)
    assert result.stderr == b""
    assert time.monotonic() - began < 30


def test_simulate_changes_nothing_even_while_the_hub_runs(tmp_path: Path) -> None:
    furnish(tmp_path, BERLIN, MORNING, HOURLY, COOLING_DOWN)
    with lares(tmp_path, variables=WITH_KEY) as hub:
        url = hub.url()
        ask(url, "POST", "/automations/hourly/enabled", {"enabled": False})
        before = image(tmp_path)
        assert any("journal" in name for name in before)
        expected = lines(tmp_path, "--from", "2027-01-01T00:00:00Z", "--hours", "48")
        assert sum(each["error"] == "disabled: the automation is switched off" for each in expected) == 48
        assert image(tmp_path) == before
        assert ask(url, "GET", "/automations/morning/history")["entries"] == []
        hub.stop()
    before = image(tmp_path)
    os.utime(tmp_path)
    assert lines(tmp_path, "--from", "2027-01-01T00:00:00Z", "--hours", "48") == expected
    assert image(tmp_path) == before


def test_the_example_of_the_page_is_the_output(tmp_path: Path) -> None:
    assert ended(tmp_path, "init", ".").code == 0
    for name in ("evening_light", "low_batteries", "vacation_lights", "wake_up_light"):
        (tmp_path / "config" / "automations" / f"{name}.lua").write_text(filled(name))
    [block] = re.findall(
        r"```console\n\$ lares (simulate .*?)```", (ROOT / "docs" / "automations.md").read_text(), re.DOTALL
    )
    command, *expected = block.splitlines()
    result = ended(tmp_path, *command.split())
    assert [*result.out.splitlines(), *result.err.splitlines()] == expected


@pytest.mark.parametrize("page", ["README.md", "docs/automations.md"])
def test_the_pages_automation_is_valid(tmp_path: Path, page: str) -> None:
    blocks = re.findall(r"```lua\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    [text] = [block for block in blocks if "trigger =" in block]
    furnish(tmp_path, "", text)
    assert ended(tmp_path, "check").code == 0


def test_check_checks_automations_and_warns_of_numeric_weekdays(tmp_path: Path) -> None:
    numbered = automation("work", "{ type = 'cron', expression = '0 0 7 * * 1-5' }")
    furnish(tmp_path, "", numbered)
    result = ended(tmp_path, "check")
    assert result.code == 0 and result.out.startswith(
        "warning: config/automations/0.lua:4: trigger.expression uses numbers for weekdays: "
    )
    assert "SUN-THU" in result.out
    furnish(tmp_path, "", numbered, SUNSET, MORNING, MORNING)
    result = ended(tmp_path, "check")
    assert result.code == 78 and [line.partition(": ")[0] for line in result.out.splitlines()] == [
        "config/automations/1.lua:4",
        "config/automations/3.lua:2",
        "warning",
    ]


def test_check_reports_no_sunset_error_for_a_faulty_configuration(tmp_path: Path) -> None:
    furnish(tmp_path, "nonsense = 1\n", SUNSET)
    result = ended(tmp_path, "check")
    assert result.code == 78 and len(result.out.splitlines()) == 1 and "nonsense" in result.out


def test_check_and_simulate_accept_operations_of_kinds_in_lua(tmp_path: Path) -> None:
    fails = automation("fails", "{ type = 'interval', every_secs = 60 }", body="ctx:invoke('llm:chta', {})")
    works = automation("works", "{ type = 'interval', every_secs = 60 }", body="ctx:invoke('own:sync')")
    furnish(tmp_path, "[adapters.llm]\ntype = 'ollama'\n[adapters.own]\ntype = 'mine'\n", fails, works)
    kind = "return { name = 'Mine', operations = { pair = function() end, sync = { run = function() end } } }"
    right = "ctx:invoke('llm:chat', {}) ctx:invoke('own:pair') ctx:invoke('own:sync')"
    wrong = "ctx:invoke('llm:chta', {}) ctx:invoke('own:snc') ctx:invoke('onw:pair')"
    write(tmp_path, {"adapters/mine.lua": kind, "scenes/a.lua": scene("a", right), "scenes/b.lua": scene("b", wrong)})
    reported = [line for line in ended(tmp_path, "check").out.splitlines() if line.startswith("warning: ")]
    run = ended(tmp_path, "simulate", "--run", "--from", "2026-12-24T07:00:00Z", "--hours", "0.02")
    assert [line for line in run.err.splitlines() if line.startswith("warning: ")] == reported
    assert [line.partition("UTC  ")[2] for line in run.out.splitlines() if "fires" not in line] == [
        "fails  invokes llm:chta {}",
        "fails  fails: config/automations/0.lua:6: invoke target 'llm:chta' is not supported",
        "works  invokes own:sync {}",
    ]
    place = "warning: config/scenes/b.lua:5: ctx:invoke names"
    assert reported == [
        "warning: config/automations/0.lua:6: ctx:invoke names 'llm:chta', but there is no such operation; did you "
        "mean llm:chat?",
        f"{place} 'llm:chta', but there is no such operation; did you mean llm:chat?",
        f"{place} 'onw:pair', but there is no section [adapters.onw]; did you mean own:pair?",
        f"{place} 'own:snc', but there is no such operation; did you mean own:sync?",
    ]


def test_disabled_automations_are_listed(tmp_path: Path) -> None:
    furnish(tmp_path, "[automations]\nenabled = false\n", MORNING)
    result = ended(tmp_path, "simulate")
    assert (result.code, result.out) == (0, "") and "automations.enabled is false" in result.err


async def test_equal_lines_are_collapsed_and_one_automation_can_be_chosen(tmp_path: Path) -> None:
    for name, secs in (("often", 900), ("rarely", 40_000)):
        text = automation(name, f'{{ type = "interval", every_secs = {secs} }}', name=f"Fire {name}")
        write(tmp_path, {f"automations/{name}.lua": text})
    write(tmp_path, {"default.toml": LOOPBACK})
    both = ended(tmp_path, "simulate", "--from", "2026-12-24T00:00", "--hours", "24")
    assert both.out.count("  often  fires") == 6 and both.out.count("  rarely  fires") == 2, both
    every = ended(tmp_path, "simulate", "--from", "2026-12-24T00:00", "--hours", "24", "--json")
    fired = every.out.count('"often"')
    assert fired in (95, 96) and f"often  fires (repeated {fired - 5} more times; this is the last)" in both.out
    assert f"runs: {fired + 2}" in both.err and f"runs: {fired + 2}" in every.err
    one = ended(tmp_path, "simulate", "FIRE rarely", "--from", "2026-12-24T00:00", "--hours", "24")
    assert "often" not in one.out and one.out.count("  rarely  fires") == 2 and "runs: 2" in one.err
    unknown = ended(tmp_path, "simulate", "rarly")
    assert unknown.code == 67 and "did you mean rarely?" in unknown.err
