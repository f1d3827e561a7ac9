"""The pages of docs/: all commands and Lua blocks run, and the printed output is the real output."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, Home, blocks, open_home, plain
from tests.fakes.process import ROOT
from tests.fakes.programs import need

OURS = ("api.md", "card.md", "hooks.md", "moving.md", "troubleshooting.md", "virtual.md")
"""The pages whose blocks run here, each in a new home. First evening, Lua, and monitoring have separate tests."""

SOFTENER = """return {
  id = "soften",
  name = "Never too bright",
  trigger = { type = "device_state_change", device_id = "elgato_lights:light:0", attribute = "power", equals = "on" },
  conditions = {
    { type = "device_state", device_id = "elgato_lights:light:0", attribute = "brightness", above = 60 },
  },
  execute = function(ctx)
    ctx:command("elgato_lights:light:0", { capability = "brightness", action = "set", value = 40 })
  end,
}
"""
"""The automation on the page Troubleshooting."""

LINK = re.compile(r"\]\(([^)#]+)(?:#([^)]+))?\)")


async def _toggle(home: Home) -> None:
    """Cause the events that the page Troubleshooting explains."""
    url = "http://127.0.0.1:3000/devices/elgato_lights:light:0/command"
    for action in ("off", "on"):
        body = f'{{"capability": "power", "action": "{action}"}}'
        await home.shell(f"curl -sf -H \"Authorization: Bearer $KEY\" {url} -d '{body}'")
    await home.shell("sleep 1")


async def _save(home: Home, lua: str) -> None:
    """Save an automation, and load it."""
    [id_] = re.findall(r'^  id = "(\w+)"', lua, re.MULTILINE)
    (home.folder / "config" / "automations" / f"{id_}.lua").write_text(lua)
    assert (await home.hub.ask("POST", "/automations/reload"))[1]["status"] == "ok"


async def _show(home: Home, text: str) -> None:
    """Run the command of a block, and check that its output contains all lines on the page."""
    first, _, shown = text.partition("\n")
    found = plain(await home.shell(first.removeprefix("$ ")))
    for line in plain(shown):
        assert line in found, (first, line, found)


@pytest.mark.slow
@pytest.mark.parametrize("page", OURS)
async def test_every_command_of_a_page_succeeds_and_shows_what_it_shows(page: str, tmp_path: Path) -> None:
    sections = "".join(text for language, text in blocks(page) if language == "toml")
    async with open_home(tmp_path, sections) as home:
        if page == "troubleshooting.md":
            await _save(home, SOFTENER)
            await _toggle(home)
        for language, text in blocks(page):
            if language == "lua":
                await _save(home, text)
            elif language == "sh":
                out = await home.shell(text)
                assert '{"error":' not in out or "execution_not_found" in out, out  # the page uses an example id
            elif language == "console":
                await _show(home, text)
            elif language in PROGRAMS:
                await PROGRAMS[language](home, text)
            else:
                assert language in ("text", "toml", "json"), f"{page}: nothing runs a block of {language}"


async def _run_python(home: Home, text: str) -> None:
    (home.folder / "example.py").write_text(text)
    assert "Simulated light online" in await home.run("python3", "example.py")


async def _run_javascript(home: Home, text: str) -> None:
    need("node")
    (home.folder / "example.mjs").write_text(text)
    assert "200 { status: 'ok' }" in await home.run("node", "example.mjs")


PROGRAMS: dict[str, Callable[[Home, str], Awaitable[None]]] = {"python": _run_python, "js": _run_javascript}


def test_each_row_of_a_table_is_one_line() -> None:
    for page in [*DOCS.glob("*.md"), *ROOT.glob("*.md")]:
        rows = [line for line in page.read_text().splitlines() if line.startswith("|")]
        assert [line for line in rows if not line.endswith("|")] == [], page.name


def test_links_between_pages_lead_somewhere() -> None:
    for page in (*DOCS.glob("*.md"), ROOT / "README.md"):
        for target, anchor in LINK.findall(page.read_text()):
            if target.startswith("http"):
                continue
            file = (page.parent / target).resolve()
            assert file.exists(), f"{page.name}: {target}"
            if anchor:
                titles = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
                slugs = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
                assert anchor in slugs, f"{page.name}: {target}#{anchor}"


@pytest.mark.slow
def test_the_container_image_is_built_and_serves(tmp_path: Path) -> None:
    builder = next((each for each in ("podman", "docker") if shutil.which(each) and _works(each)), None)
    file = ROOT / "dist" / "lares.pyz"
    if builder is None or not file.exists():
        pytest.skip("NO CONTAINER BUILDER WORKS HERE (podman, docker), OR NO dist/lares.pyz: THE IMAGE WAS NOT BUILT")
    _need_base_image(builder)
    subprocess.run(
        [builder, "build", "-q", "-f", "Containerfile", "-t", "lares-test", "."], cwd=ROOT, check=True, timeout=600
    )
    message = subprocess.run(
        [builder, "run", "--rm", "lares-test", "lares", "--version"], capture_output=True, text=True, timeout=120
    )
    assert message.returncode == 0 and message.stdout.startswith("lares "), message.stderr


def _need_base_image(builder: str) -> None:
    """Skip the test if the base image is neither here nor available from its registry."""
    [image] = re.findall(r"^FROM (\S+)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    if subprocess.run([builder, "image", "inspect", image], capture_output=True, timeout=60).returncode != 0:
        pulled = subprocess.run([builder, "pull", "-q", image], capture_output=True, text=True, timeout=600)
        if pulled.returncode != 0:
            pytest.skip(f"needs a container registry that answers: {pulled.stderr.strip()[-300:]}")


def _works(builder: str) -> bool:
    return subprocess.run([builder, "info"], capture_output=True, timeout=60).returncode == 0
