"""The promises of the documents: keys, events, errors, routes, and the README's own commands."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import tomli

from appliance import config
from appliance.adapters.kinds import KINDS
from appliance.api.app import ROUTES
from appliance.api.frames import BY_EVENT
from appliance.automations.policy import Policy
from appliance.cli.arguments import build_parser
from appliance.cli.help import subcommands
from appliance.history.card_lines import decode_changes, decode_command, decode_execution, decode_hours
from appliance.home import events
from appliance.store.file_format import check_crc, decode_snapshot, read_journal
from tests.fakes.rows import each_row
from tests.lua.mistakes import AT_CHECK, AT_RUN

ROOT = Path(__file__).parent.parent
APPLIANCE = ROOT / "appliance"
DEVICES, ROUTES_PAGE, COMMANDS = (
    (ROOT / "docs" / f"{name}.md").read_text() for name in ("devices", "routes", "command-line")
)
RESULTS = "".join((ROOT / "benchmarks" / name).read_text() for name in ("RESULTS.md", "DETAILS.md"))
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
LUA = (ROOT / "docs" / "lua.md").read_text()


def classes_of(module: ModuleType, base: type) -> set[type]:
    """Return the subclasses of the base that the module defines."""
    found = {kind for kind in vars(module).values() if inspect.isclass(kind) and issubclass(kind, base)}
    return found - {base}


def test_every_event_has_a_frame_or_is_marked_as_internal() -> None:
    assert classes_of(events, events.Event) == set(BY_EVENT)
    for event, build in BY_EVENT.items():
        assert (build is None) == ("Internal" in (inspect.getdoc(event) or "")), event


def test_a_page_names_every_route() -> None:
    for route in ROUTES:
        path = re.sub(r"<(\w+)>", r"{\1}", re.sub(r"<\w+_id>", "{id}", route.path))
        assert path in ROUTES_PAGE, f"docs/routes.md does not name {path}"


def test_a_page_names_every_command() -> None:
    for name in subcommands(build_parser()):
        assert f"`lares {name}" in COMMANDS, f"docs/command-line.md does not name {name}"


def test_the_configurations_on_the_pages_are_valid() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        for text in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL):
            config.parse(text, page.name, {})


@each_row(("page", "section"), [("limits.md", "How it grows"), ("mqtt.md", "A cluster of brokers")])
def test_the_tables_of_a_page_match_the_measurements(page: str, section: str) -> None:
    text = (ROOT / "docs" / page).read_text().partition(f"## {section}\n")[2].partition("\n## ")[0]
    shown = re.findall(r"(?<![\d.])\d+\.\d+", "\n".join(re.findall(r"^\|.*$", text, re.MULTILINE)))
    assert shown and set(shown) <= set(re.findall(r"\| ([\d.]+) ", RESULTS)), page


def test_the_reference_of_lua_has_each_field_of_a_policy() -> None:
    for name in Policy.__struct_fields__:
        assert f"| `{name}` |" in LUA


def test_the_page_has_a_row_for_every_kind_of_adapter() -> None:
    table = DEVICES.split("| Kind | Devices |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(KINDS)


def test_the_bundled_configuration_is_valid_and_listens_on_the_lan() -> None:
    bundled = tomli.loads((ROOT / "config" / "default.toml").read_text())
    assert bundled["api"]["bind_address"] == "0.0.0.0:3000"
    assert not any(each["enabled"] for each in bundled["adapters"].values() if isinstance(each, dict))


def test_the_errors_that_the_reference_of_lua_explains_exist() -> None:
    message = [mistake.sentence for mistake in (*AT_CHECK, *AT_RUN)]
    table = LUA.split("| Message |")[1]
    for quoted in re.findall(r"`([^`]+)`", " ".join(row.split("|")[1] for row in table.splitlines()[2:] if row)):
        words = quoted.replace("…", ".*")
        assert any(re.search(words, sentence) for sentence in message), quoted


def test_files_named_in_the_architecture_exist() -> None:
    pages = ["ARCHITECTURE.md", "docs/store.md", "firmware/README.md", "appliance/lua_worker/README.md"]
    for page in pages:
        for name in re.findall(r"`((?!dist/)(?:\w+/)+[\w*]+\.\w+)`", (ROOT / page).read_text()):
            base = (
                ROOT
                if name.startswith(("appliance/", "tests/", "config/", "firmware/", "docs/"))
                else ROOT / "appliance"
            )
            assert list(base.glob(name)), f"{page} names {name}"


def test_each_test_named_on_the_page_of_security_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(?:\w+::)?(test_\w+)`", (ROOT / "docs" / "security.md").read_text())
    assert len(named) > 20
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(), f"there is no {file}::{test}"


def test_the_store_can_read_the_annotated_journal() -> None:
    blocks = re.findall(r"```text\n(\{.*?)```", (ROOT / "docs" / "store.md").read_text(), re.DOTALL)
    lines = ("".join(line + "\n" for line in block.splitlines() if line[0] == "{") for block in blocks)
    reported, changed, was = lines
    whole = decode_snapshot(reported.encode(), 7)
    assert whole is not None and set(whole.values) == {"group/evening", "room/attic", "room/kitchen"}
    reading = read_journal(changed.encode() + bytes(512), 7)
    assert [record["seq"] for record in reading.records] == [4025, 4026, 4027]
    assert not reading.is_damaged and not reading.torn and whole.sequence == 4024
    month = [check_crc(line) or {} for line in was.encode().splitlines()]
    assert [len(decode_hours(line)) for line in month] == [0, 2, 1, 0, 0, 0, 0], month
    assert len(decode_changes(month[3])) == 2 and decode_command(month[4])["source"] == "room"
    assert decode_execution(month[5]).subject == "evening" and month[6]["days"] == 12


def test_the_page_of_the_store_lists_every_key_on_the_card() -> None:
    constant = re.compile(r"^[A-Z][A-Z_, ]* = ((?:\"[a-z]+/[a-z_]*\"(?:, )?)+)$", re.MULTILINE)
    sources = [file.read_text() for room in ("store", "automations") for file in (APPLIANCE / room).glob("*.py")]
    keys = {key for text in sources for found in constant.findall(text) for key in re.findall(r"\"(.+?)\"", found)}
    page = (ROOT / "docs" / "store.md").read_text().split("| Key |")[1].split("**Writing.**")[0]
    reported = re.findall(r"`([a-z]+/[a-z_]*)(?:<[^`]+>)?`", page)
    assert {key for key in reported if key != "key/master"} == keys
