"""docs/first-evening.md: its commands run one after another in one shell, in a home without hardware."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import Running, environment, until
from tests.docs.pages import PATIENCE_SECS, blocks, make_tools, plain
from tests.fakes.process import start
from tests.fakes.programs import need

AUTOMATION = "config/automations/hall_light.lua"
MARK = "=== block "

BLOCKS = blocks("first-evening.md")


OBSERVE = """curl -sf -o /dev/null -H "Authorization: Bearer $KEY" {url}/adapters/virtual/operations/observe \\
  -d '{{"device_id": "virtual:motion", "attributes": {{"motion": "{motion}"}}}}'
sleep 1
"""
ON_THE_PAGE = {
    2: """KEY=$(lares key create --label page --role admin)
curl -sf -o /dev/null -H "Authorization: Bearer $KEY" {url}/rooms -d '{{"id": "hall", "name": "Hall"}}'
curl -sf -o /dev/null -H "Authorization: Bearer $KEY" {url}/devices/virtual:lamp/room -d '{{"room_id": "hall"}}'
""",
    5: OBSERVE.replace("{motion}", "detected"),
    6: OBSERVE.replace("{motion}", "clear") + OBSERVE.replace("{motion}", "detected"),
}
"""Maps the number of a block to the actions in the dashboard before this block."""


def script(url: str) -> str:
    """Return all blocks after the first as one shell program, with a numbered line before each block."""
    text = "set -euo pipefail\n"
    for number, (language, block) in enumerate(BLOCKS[1:], 1):
        text += ON_THE_PAGE.get(number, "").format(url=url)
        text += f"echo '{MARK}{number}'\n"
        if language == "sh":
            text += block
        elif language == "console":
            text += block.partition("\n")[0].removeprefix("$ ") + "\n"
        elif language == "lua":
            text += f"cat > {AUTOMATION} <<'LUA'\n{block}LUA\n"
        else:
            assert language == "toml", f"nothing runs a block of {language}"
        text += "echo\n"
    return text


def test_the_page_names_the_file_that_its_automation_is_saved_as() -> None:
    assert [language for language, _ in BLOCKS].count("lua") == 1
    assert BLOCKS[0] == ("sh", "lares demo --keep home\n")


@pytest.mark.slow
def test_each_command_of_the_first_evening_works_in_its_order_and_shows_what_the_page_shows(tmp_path: Path) -> None:
    need("curl")
    need("bash")
    make_tools(tmp_path / "bin")
    out, err = tmp_path / "demo.out", tmp_path / "demo.err"
    here = {**environment(), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    with out.open("wb") as done, err.open("wb") as errors:
        arguments = ("demo", "--keep", "home", "--port", "0")
        process = start(arguments, cwd=tmp_path, env=here, stdout=done, stderr=errors)
    try:
        demo = Running(process, out, err)
        url = demo.url()
        until(lambda: "it asks for a key" in demo.out, "the greeting")
        shell = subprocess.run(
            ["bash", "-c", script(url)], cwd=tmp_path, env=here, capture_output=True, timeout=PATIENCE_SECS, text=True
        )
        demo.stop()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    assert shell.returncode == 0, (shell.stdout, shell.stderr)
    parts = re.split(rf"^{MARK}(\d+)\n", shell.stdout, flags=re.MULTILINE)
    shown = {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True)}
    assert all(f"virtual:{name}" in shown[1] for name in ("lamp", "motion", "door", "plug", "button", "thermometer"))
    assert "Hall" in shown[2] and "power" in shown[2]
    assert "no faults" in shown[4] and "1 automation loaded" in shown[4]
    for number, (language, block) in enumerate(BLOCKS[1:], 1):
        if language == "console":
            for line in plain(block.replace("\n…\n", "\n"))[1:]:
                assert line in plain(shown[number]), (line, shown[number])
