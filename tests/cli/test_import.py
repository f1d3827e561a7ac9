"""`lares import homecmdr`: what another hub left is taken over, nothing is overwritten, and all of it is told."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from pathlib import Path

import pytest

from appliance.store.replacement import PENDING, prepare, read_document
from tests.cli.test_commands_line import ended
from tests.fakes.process import ROOT, running

PAGE = ROOT / "docs" / "moving.md"

SCHEMA = """
CREATE TABLE schema_metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE rooms (id TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE devices (device_id TEXT PRIMARY KEY, room_id TEXT, kind TEXT NOT NULL, attributes_json TEXT NOT NULL,
  metadata_json TEXT NOT NULL, updated_at TEXT NOT NULL, last_seen TEXT NOT NULL);
CREATE TABLE groups (id TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE group_members (group_id TEXT NOT NULL, device_id TEXT NOT NULL, member_order INTEGER NOT NULL);
CREATE TABLE api_keys (id INTEGER PRIMARY KEY, key_hash TEXT, label TEXT, role TEXT, created_at TEXT);
INSERT INTO rooms VALUES ('office', 'Office'), ('bad', ' '), ('den', 'Den');
INSERT INTO devices VALUES ('elgato_lights:light:0', 'office', 'Light', '{}', '{}', '', ''),
  ('roku_tv:tv', NULL, 'Switch', '{}', '{}', '', '');
INSERT INTO groups VALUES ('evening', 'Evening');
INSERT INTO group_members VALUES ('evening', 'roku_tv:tv', 1), ('evening', 'elgato_lights:light:0', 0);
INSERT INTO api_keys VALUES (1, 'x', 'tablet', 'write', '');
"""

CONFIG = """
[api]
bind_address = "127.0.0.1:0"
[auth]
master_key = "the-other-hub-s-own-secret"
[locale]
timezone = "Europe/Berlin"
latitude = 52.5
longitude = 13.4
[persistence]
database_url = "sqlite://data/smart-home.db"
[adapters.elgato_lights]
enabled = true
base_url = "http://127.0.0.1:9"
poll_interval_secs = 30
[adapters.roku_tv]
enabled = true
ip_address = "not an address!"
[adapters.zigbee2mqtt]
enabled = true
"""

SCENE = """return { id = "bedtime", name = "Bedtime", execute = function(ctx) ctx:log("info", "good night") end }"""


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The folder of another hub."""
    root = tmp_path / "other"
    for folder in ("config/scenes", "config/scripts/lib", "data"):
        (root / folder).mkdir(parents=True)
    (root / "config" / "default.toml").write_text(CONFIG)
    (root / "config" / "scenes" / "bedtime.lua").write_text(SCENE)
    (root / "config" / "scripts" / "lib" / "one.lua").write_text("return {}")
    connection = sqlite3.connect(root / "data" / "smart-home.db")
    connection.executescript(SCHEMA)
    connection.close()
    return root


def timeless(text: str) -> set[str]:
    """The lines without what is of this home: addresses and numbers."""
    return {re.sub(r"http://[\d.:]+|\d+", "N", line) for line in text.splitlines()}


async def test_what_can_be_taken_is_taken_and_a_hub_begins_with_it(other: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    done = ended(home, "import", "homecmdr", str(other))
    assert done.code == 0, done.err
    taken = {line[6:] for line in done.out.splitlines() if line.startswith("took")}
    left = {line[6:].split(":")[0] for line in done.out.splitlines() if line.startswith("left")}
    assert taken == {
        'locale.timezone = "Europe/Berlin"',
        "locale.latitude = 52.5",
        "locale.longitude = 13.4",
        'api.bind_address = "127.0.0.1:0"',
        'adapters.elgato_lights.base_url = "http://127.0.0.1:9"',
        "adapters.elgato_lights.poll_interval_secs = 30",
        "adapters.elgato_lights.enabled = true",
        "scenes/bedtime.lua",
        "scripts/lib/one.lua",
        "room 'office' (Office)",
        "room 'den' (Den)",
        "group 'evening' (Evening), 2 members",
        "elgato_lights:light:0 is in 'office'",
    }
    assert left == {
        "adapters.roku_tv.ip_address, adapters.roku_tv.enabled",
        "adapters.zigbee2mqtt",
        "auth.master_key",
        "room 'bad'",
        "API keys (1)",
    }
    [shown] = re.findall(r"^\$ lares import .*\n(.*?)```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert timeless(shown) <= timeless(done.out), "the page shows what comes"
    assert "the-other-hub-s-own-secret" not in done.out + (home / "config" / "default.toml").read_text()
    assert ended(home, "check").code == 0
    async with running(home) as hub:
        assert [room["id"] for room in await hub.get("/rooms")] == ["den", "office"]
        [group] = await hub.get("/groups")
        assert group["members"] == ["elgato_lights:light:0", "roku_tv:tv"]
        assert "bedtime" in {scene["id"] for scene in await hub.get("/scenes")}
        assert ended(home, "import", "homecmdr", str(other)).code == 75, "not while a hub runs"


def test_nothing_is_overwritten(other: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert ended(home, "import", "homecmdr", str(other)).code == 0
    before = {file: file.read_bytes() for file in (home / "config").rglob("*") if file.is_file()}
    again = ended(home, "import", "homecmdr", str(other))
    assert again.code == 0 and "took" not in again.out and "is there already" in again.out
    assert {file: file.read_bytes() for file in (home / "config").rglob("*") if file.is_file()} == before


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root imports for somebody else")
def test_what_root_takes_over_belongs_to_the_one_who_runs_the_hub(other: Path, open_folder: Path) -> None:
    owner, config, data = 65534, open_folder / "config", open_folder / "data"
    for folder in (config, data):
        folder.mkdir()
        os.chown(folder, owner, owner)
    prepare(data, {"room/cut": {"name": "Cut"}}, config / ".restored", "token", own=[])
    (config / ".restored").write_text("token")
    for path in (config / ".restored", data / PENDING):
        os.chown(path, owner, owner)
    assert ended(open_folder, "import", "homecmdr", str(other)).code == 0
    made = {path: path.stat().st_uid for path in (*config.rglob("*"), *data.rglob("*"))}
    assert set(made.values()) == {owner}, made
    assert {"room/cut", "room/office"} <= set(read_document(data).values), (
        "a restore that was cut off is finished first"
    )


def test_a_database_alone_will_do_and_what_is_none_is_said(other: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    alone = ended(home, "import", "homecmdr", str(other / "data" / "smart-home.db"))
    assert alone.code == 0 and "took  room 'office'" in alone.out and "scenes" not in alone.out
    (tmp_path / "note.db").write_text(json.dumps("nothing of it"))
    connection = sqlite3.connect(tmp_path / "endless.db")
    connection.executescript(SCHEMA)
    connection.executemany("INSERT INTO rooms VALUES (?, 'x')", [(f"r{number}",) for number in range(20_001)])
    connection.commit()
    connection.close()
    for path, code in (
        (tmp_path / "endless.db", 65),
        (tmp_path / "note.db", 65),
        (tmp_path / "nowhere", 66),
        (tmp_path, 66),
    ):
        refused = ended(home, "import", "homecmdr", str(path))
        assert refused.code == code and refused.err.count("\n") == 1, refused.err
