"""`lares check`, reloads, and runs over HTTP report common mistakes with the file, the line, and what to do."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from appliance.cli.check import check
from tests.fakes.app import open_app
from tests.fakes.lua import scene, write
from tests.lua.mistakes import AT_CHECK, AT_RUN, Mistake

KINDS = ["scenes", "automations"]
CHECKED = [(mistake.kinds[0], mistake) for mistake in (AT_CHECK[0], AT_CHECK[4], AT_CHECK[-1])]
"""A mistake in a text, a mistake in a field, and a mistake in a script. `lares check` and a reload report each
mistake with the same message."""
TRIGGERS = {"scenes": "", "automations": 'trigger = { type = "interval", every_secs = 3600 },'}


def lay_out(root: Path, kind: str, mistake: Mistake) -> str:
    """Write the mistake's files as scenes or automations. Return the error message of the mistake, with file and
    line."""
    files = {f"{kind}/mistake.lua": mistake.text, **mistake.files}
    filled = {name.replace("KIND", kind): text.replace("TRIGGER", TRIGGERS[kind]) for name, text in files.items()}
    write(root, {**filled, "default.toml": ""})
    return f"config/{kind}/mistake.lua:{mistake.line}: {mistake.sentence.replace('KIND', kind)}"


@pytest.mark.parametrize(("kind", "mistake"), CHECKED)
def test_check_reports_each(kind: str, mistake: Mistake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reported = lay_out(tmp_path, kind, mistake)
    code = check(argparse.Namespace(config=str(tmp_path / "config/default.toml"), data_dir=None))
    assert (code, capsys.readouterr().out) == (78, f"{reported}\n")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
async def test_reloads_report_each_mistake(kind: str, tmp_path: Path) -> None:
    async with open_app(root=tmp_path) as app:
        for mistake in (each for each in AT_CHECK if kind in each.kinds):
            reported = lay_out(tmp_path, kind, mistake)
            answer = await app.post(f"/{kind}/reload")
            errors = [f"{each['file']}:{each['line']}: {each['message']}" for each in answer.json["errors"]]
            assert errors == [reported], mistake.sentence
            for file in (*(tmp_path / "config" / kind).iterdir(), *(tmp_path / "config").rglob("scripts/**/*.lua")):
                file.unlink()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
async def test_runs_report_each_mistake(kind: str, tmp_path: Path) -> None:
    async with open_app(root=tmp_path) as app:
        for mistake in AT_RUN:
            reported = lay_out(tmp_path, kind, mistake)
            assert (await app.post(f"/{kind}/reload")).json["status"] == "ok", mistake.sentence
            answer = await app.post(f"/{kind}/x/execute")
            failed = f"{kind.removesuffix('s')} 'x' failed: "
            assert (answer.status, answer.json["error"]) == (400, failed + reported), mistake.sentence
            for script in (tmp_path / "config").rglob("scripts/**/*.lua"):
                script.unlink()


def test_check_warns_of_names_without_a_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config" / "default.toml"
    body = 'house.name = "x"\n    ctxx:sleep(1)\n    ctx:log("info", string.fomat("x"))'
    write(tmp_path, {"default.toml": "", "scenes/x.lua": scene("x", body), "scripts/lib/house.lua": "house = {}"})
    assert check(argparse.Namespace(config=str(file), data_dir=None)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "warning: config/scenes/x.lua:6: ctxx has no value in any file, so it is nil; did you mean ctx?",
        "warning: config/scenes/x.lua:7: string has no fomat; did you mean string.format?",
        f"{file}: no faults, 2 warnings",
    ]
