"""`lares simulate --events --run`: device events come from a file, and Lua runs in a simulated home."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.commands import Ended, ended
from tests.cli.homes import BERLIN, furnish, home, image
from tests.fakes.lua import automation, write

pytestmark = pytest.mark.slow

MOTION = "{ type = 'device_state_change', device_id = 'x:hall', attribute = 'motion', equals = 'detected' }"
DOUBLE = "{ type = 'device_event', device_id = 'x:button', event = 'double' }"
WARM = "{ id = 'warm', type = 'device_state_change', device_id = 'x:hall', attribute = 'temperature', above = 20 }"

LIT = automation(
    "lit",
    MOTION,
    body="""
  ctx:command('x:lamp', { capability = 'power', action = 'on' })
  ctx:sleep(90)
  ctx:command('x:lamp', { capability = 'power', action = 'toggle' })
  ctx:start_timer('later', 100)""",
)
LATER = automation(
    "later",
    "{ type = 'timer', name = 'later' }",
    body="""
  ctx:log('warn', 'the lamp is ' .. ctx:get_device('x:lamp').attributes.power)
  ctx:set('seen', ctx:wait_for('x:lamp', { attribute = 'power', equals = 'on', timeout_secs = 30 }))
  ctx:notify('over')
  ctx:run_scene('all')""",
)
SEEN = automation(
    "seen",
    "{ type = 'variable_change', name = 'seen' }",
    body="ctx:invoke('nobody:tell', { a = 1 })",
)
SCENE = """return { id = 'all', name = 'all', execute = function(ctx)
  ctx:command('x:nobody', { capability = 'power', action = 'off' })
  ctx:command('x:lamp', { capability = 'brightness', action = 'set', value = 40 })
end }"""

EVENTS = """
# what happens in the hall
2026-12-24T18:00 x:hall motion clear
18:00 x:lamp power off
  +60 x:hall motion detected
18:01:30 x:hall motion clear
"""


def simulate(folder: Path, events: str, *arguments: str) -> Ended:
    (folder / "events.txt").write_text(events)
    return ended(folder, "simulate", "--events", "events.txt", *arguments)


def test_lua_runs_for_a_simulated_home_and_its_effects_are_printed_in_order(tmp_path: Path) -> None:
    furnish(tmp_path, BERLIN, LIT, LATER, SEEN)
    write(tmp_path, {"scenes/all.lua": SCENE})
    before = image(tmp_path / "config")
    result = simulate(tmp_path, EVENTS, "--run", "--hours", "2")
    lines = [line.removeprefix("Thu 2026-12-24 ") for line in result.out.splitlines()]
    assert [line[:8] for line in lines] == sorted(line[:8] for line in lines)
    assert [line for line in lines if "  seen  " not in line] == [
        "18:01:00 CET  lit  fires",
        "18:01:00 CET  lit  commands x:lamp: power on",
        "18:02:30 CET  lit  commands x:lamp: power toggle",
        "18:04:10 CET  later  fires",
        "18:04:10 CET  later  logs warn: the lamp is off",
        "18:04:40 CET  later  notifies: over",
        "18:04:40 CET  scene all  runs",
        "18:04:40 CET  scene all  commands x:nobody: power off, which fails: device 'x:nobody' not found",
        "18:04:40 CET  scene all  commands x:lamp: brightness set 40",
    ]
    assert [line for line in lines if "  seen  " in line] == [
        "18:04:40 CET  seen  fires",
        '18:04:40 CET  seen  invokes nobody:tell {"a": 1}',
        "18:04:40 CET  seen  fails: config/automations/2.lua:6: invoke target 'nobody:tell' is not supported",
    ]
    noted = ("warning: ",)
    assert len({*result.err.splitlines()}) == len(result.err.splitlines())
    output = [line for line in result.err.splitlines() if not line.startswith(noted)]
    assert result.code == 0 and output == [
        "events.txt:3: the home has no device 'x:hall'; it is simulated",
        "events.txt:4: the home has no device 'x:lamp'; it is simulated",
        "automations: 3, runs: 3, commands: 4",
    ]
    assert image(tmp_path / "config") == before and not (tmp_path / "data").exists()


def test_the_summary_of_one_automation_counts_its_own_commands(tmp_path: Path) -> None:
    command = "ctx:command('x:lamp', { capability = 'power', action = 'on' })"
    rows = (automation(each, f"{{ type = 'webhook', hook = '{each}' }}", command) for each in ("one", "two"))
    furnish(tmp_path, BERLIN, *rows)
    lines = "2026-12-24T18:00 hook two\n+5 hook one\n+5 hook two"
    result = simulate(tmp_path, lines, "one", "--run", "--hours", "1")
    assert result.err.splitlines()[-1] == "automations: 2, runs: 1, commands: 1"


def test_the_name_of_two_automations_is_ambiguous(tmp_path: Path) -> None:
    trigger = "{ type = 'webhook', hook = 'a' }"
    rows = [automation(each, trigger, name="FH") for each in ("one", "two")]
    furnish(tmp_path, BERLIN, *rows)
    result = simulate(tmp_path, "", "fh", "--hours", "1")
    assert (result.code, result.err) == (64, "lares: the name 'fh' is ambiguous; write one of these ids: one, two\n")


def test_a_line_calls_a_hook_with_data_or_without(tmp_path: Path) -> None:
    bell = automation("bell", "{ type = 'webhook', hook = 'bell' }", "ctx:log('info', tostring(event.data))")
    furnish(tmp_path, BERLIN, bell)
    lines = "2026-12-24T18:00 hook bell\n+5 hook bell 7\n+5 hook other\n+5 hook bell ann rings\n"
    result = simulate(tmp_path, lines, "--run")
    assert [line.partition("  bell  ")[2] for line in result.out.splitlines()] == [
        output for data in ("nil", "7", "ann rings") for output in ("fires", f"logs info: {data}")
    ]
    wrong = simulate(tmp_path, f"2026-12-24T18:00 hook {'x' * 300}\n")
    assert wrong.code == 65 and "events.txt:1: the id of the hook must have 1 to 263 characters" in wrong.err


def test_without_run_times_are_printed_and_no_lua_runs(tmp_path: Path) -> None:
    furnish(tmp_path, BERLIN, LIT, LATER)
    result = simulate(tmp_path, EVENTS, "--json")
    assert [json.loads(line) for line in result.out.splitlines()] == [
        {"at": "2026-12-24T17:01:00.000Z", "automation": "lit", "fired": True, "error": None}
    ]


def test_json_lines_have_source_and_effect(tmp_path: Path) -> None:
    furnish(tmp_path, BERLIN, LIT)
    lines = [json.loads(line) for line in simulate(tmp_path, EVENTS, "--json", "--run").out.splitlines()]
    assert [sorted(line) for line in lines] == [
        ["at", "automation", "error", "fired"],
        ["at", "automation", "command"],
        ["at", "automation", "command"],
    ]
    assert lines[2]["command"] == {
        "device_id": "x:lamp",
        "capability": "power",
        "action": "toggle",
        "value": None,
        "status": "ok",
        "message": None,
    }


def test_the_simulation_begins_with_the_stored_home(tmp_path: Path) -> None:
    stored = {
        "device/x:hall": {"kind": "Sensor", "source": "x", "vendor_specific": {}},
        "state/x:hall": {"at": 1767225600000, "is": {"motion": "clear", "temperature": {"value": 19, "unit": "C"}}},
        "device/x:lamp": {"kind": "Light", "source": "x", "vendor_specific": {}, "commands": []},
        "state/x:lamp": {"at": 1767225600000, "is": {"power": "off"}},
    }
    home(tmp_path, stored)
    warm = automation("warm", WARM, "ctx:log('info', event.value.unit)")
    furnish(tmp_path, '[adapters.x]\ntype = "virtual"\n', LIT, warm, automation("double", DOUBLE))
    events = """2026-12-24T18:00:00Z x:hall motion detected
18:01 x:hall temperature 21.5
18:02 x:button event single
18:03 x:button event double
18:04 x:lamp state unavailable
18:05 x:hall motion clear
18:06 x:hall motion detected
"""
    result = simulate(tmp_path, events, "--run", "--hours", "0.15")
    refused = "which fails: device 'x:lamp' does not offer power"
    assert [line[21:] for line in result.out.splitlines()] == [
        "00 UTC  lit  fires",
        f"00 UTC  lit  commands x:lamp: power on, {refused} on",
        "00 UTC  warm  fires",
        "00 UTC  warm  logs info: C",
        f"30 UTC  lit  commands x:lamp: power toggle, {refused} toggle",
        "00 UTC  double  fires",
        "00 UTC  lit  fires",
        "00 UTC  lit  commands x:lamp: power on, which fails: x:lamp is unavailable",
        "30 UTC  lit  commands x:lamp: power toggle, which fails: x:lamp is unavailable",
    ]


FAULTS = {
    "18:00 x:a power": "write `at device attribute value`, such as: 18:00 hall:motion motion detected",
    "25:00 x:a power on": "the line must begin with a time, such as 18:00, 2026-12-24T18:00, or +90, not '25:00'",
    "2026-13-24T18:00 x:a power on": "the time of the event must be a time, such as 2026-12-24T18:00 (local time) or",
    "2026-12-23T18:00 x:a power on": "2026-12-23T18:00 is before the simulation begins; sort the lines by time",
    "2026-12-26T18:00 x:a power on": "2026-12-26T18:00 is after the end of the simulation; simulate more hours",
    "18:00 x:a powr on": "'powr' is not an attribute; did you mean power?",
    "18:00 x:a power maybe": "power must be one of on, off, not 'maybe'",
    "18:00 x:a brightness 101": "brightness must be an integer from 0 to 100, not 101",
    "18:00 x:a temperature warm": "temperature must be a number with a unit, such as 21.5 celsius, not 'warm'",
    "18:00 x:a temperature 05": "temperature must be a number with a unit, such as 21.5 celsius, not '05'",
    "18:00 x:a temperature 1e999": "temperature must be a number with a unit, such as 21.5 celsius, not '1e999'",
    f"18:00 x:a temperature 9{'0' * 320} celsius": "temperature must be a number with a unit, such as 21.5 celsius",
    '18:00 x:a temperature {"value": true}': "temperature lacks the field unit",
    "18:00 x:a state offline": "state must be online or unavailable, not 'offline'",
    "18:00 x:a event \x07": "the name of an event must not contain control characters",
    f"18:00 {'x' * 300} power on": "the device id must have 1 to 256 characters, not 300",
}


def test_every_bad_line_is_listed_with_its_problem(tmp_path: Path) -> None:
    furnish(tmp_path, BERLIN, LIT)
    text = "\n".join(["# nothing", *FAULTS])
    result = simulate(tmp_path, text, "--from", "2026-12-24", "--run")
    assert (result.code, result.out) == (65, "")
    expected = result.err.splitlines()
    assert len(expected) == len(FAULTS), result.err
    for number, (line, sentence) in enumerate(zip(expected, FAULTS.values(), strict=True), 2):
        assert line.startswith(f"lares: events.txt:{number}: "), line
        assert sentence in line, line


def test_a_time_of_day_that_is_out_of_order_is_named(tmp_path: Path) -> None:
    furnish(tmp_path, BERLIN, LIT)
    result = simulate(tmp_path, "18:00 x:lamp power on\n17:00 x:lamp power off", "--from", "2026-12-24", "--run")
    sentence = "17:00 is before the previous event at 18:00:00; sort the lines by time"
    assert (result.code, result.err) == (65, f"lares: events.txt:2: {sentence}\n")


def test_a_skipped_local_time_is_the_end_of_the_gap(tmp_path: Path) -> None:
    furnish(tmp_path, BERLIN, LIT)
    events = "2026-03-29T02:30 x:hall motion clear\n03:10 x:hall motion detected"
    result = simulate(tmp_path, events, "--hours", "1")
    assert [line[:23] for line in result.out.splitlines()] == ["Sun 2026-03-29 03:10:00"]


@pytest.mark.parametrize(
    ("name", "data", "code", "sentence"),
    [
        ("nothing.txt", None, 66, "nothing.txt cannot be read: No such file or directory"),
        (".", None, 66, ". cannot be read: Is a directory"),
        ("latin.txt", b"18:00 caf\xe9 power on", 65, "latin.txt is not UTF-8 text"),
        ("large.txt", b"#" * ((16 << 20) + 1), 65, "large.txt is larger than 16 MiB"),
    ],
)
def test_an_invalid_file_is_reported(name: str, data: bytes | None, code: int, sentence: str, tmp_path: Path) -> None:
    furnish(tmp_path, "", LIT)
    if data is not None:
        (tmp_path / name).write_bytes(data)
    result = ended(tmp_path, "simulate", "--events", name)
    assert (result.code, result.err) == (code, f"lares: {sentence}\n")


def test_an_endless_loop_of_runs_without_time_ends_the_simulation_with_its_name(tmp_path: Path) -> None:
    endless = automation("endless", MOTION, body="while true do ctx:sleep(0) end")
    furnish(tmp_path, BERLIN, endless)
    result = simulate(tmp_path, EVENTS, "--run")
    sentence = "runs without end in simulated time; add a sleep or an end to its Lua code"
    assert result.code == 78
    assert result.err.splitlines()[-1] == f"lares: at 2026-12-24T17:01:00.000Z automation 'endless' {sentence}"


def test_the_pages_example_is_a_valid_file(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "lua.md").read_text()
    [events] = re.findall(r"```text\n(# at device.*?)```", text, re.DOTALL)
    furnish(tmp_path, BERLIN, LIT)
    assert simulate(tmp_path, events, "--run").code == 0


def test_executions_at_one_instant_run_one_after_another(tmp_path: Path) -> None:
    body = """for n = 1, 3 do ctx:set('last', '{id}') ctx:log('info', ctx:get('last') .. n) end
  ctx:sleep(1) ctx:log('info', 'slept')"""
    hourly = "{ type = 'cron', expression = '0 0 * * * *' }"
    furnish(tmp_path, BERLIN, *(automation(id_, hourly, body=body.format(id=id_)) for id_ in "abcdef"))
    result = ended(tmp_path, "simulate", "--run", "--from", "2026-12-24T17:30", "--hours", "4")
    words = [line.split("CET  ")[1] for line in result.out.splitlines()]
    steps = ("fires", *(f"logs info: {{id}}{n}" for n in (1, 2, 3)))
    expected = [f"{id_}  {step.format(id=id_)}" for id_ in "abcdef" for step in steps]
    assert words == [*expected, *(f"{id_}  logs info: slept" for id_ in "abcdef")] * 4


def test_a_simulation_ends_while_executions_and_scenes_sleep(tmp_path: Path) -> None:
    at = "{ type = 'cron', expression = '0 0 18 * * *', timezone = 'local' }"
    bodies = ("ctx:run_scene('slow')", "ctx:sleep(3600)", "ctx:run_scene('slow')", "ctx:sleep(3600)")
    furnish(tmp_path, BERLIN, *(automation(f"a{n}", at, body=body) for n, body in enumerate(bodies)))
    slow = "return { id = 'slow', name = 'slow', execute = function(ctx) ctx:sleep(3600) end }"
    write(tmp_path, {"scenes/slow.lua": slow})
    result = ended(tmp_path, "simulate", "--run", "--from", "2026-12-24T17:59", "--hours", "0.5")
    assert (result.code, result.err) == (0, "automations: 4, runs: 4, commands: 0\n")
    assert [line.split("CET  ")[1] for line in result.out.splitlines()] == [
        *("a0  fires", "scene slow  runs", "a1  fires", "a2  fires", "scene slow  runs", "a3  fires")
    ]
