"""Secrets in backups. A backup contains API keys only as hashes. A backup never contains the master key or the
kept texts of kinds in Lua."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from appliance.cli import archive
from appliance.cli.backup import collect
from appliance.clock import Clock
from appliance.store.disk import Disk
from appliance.store.document import open_document
from tests.cli.commands import Command, Running, ended, lares, status_of
from tests.cli.homes import HOME, entries, everything, home, members, pack, stored_values

pytestmark = pytest.mark.slow


AT = "2026-11-20T08:09:11.042Z"
TABLET: dict[str, Any] = {"label": "tablet", "role": "read", "hash": "$argon2id$tablet", "created_at": AT}
MASTER: dict[str, Any] = {"label": "the master key", "role": "admin", "hash": "$argon2id$box", "created_at": AT}


def keys_of(folder: Path) -> dict[str, Any]:
    return {key: value for key, value in stored_values(folder).items() if key.startswith("key/")}


def test_a_backup_contains_hashes_of_api_keys_but_not_of_the_master_key(tmp_path: Path, command: Command) -> None:
    home(tmp_path, {**HOME, "key/key_a": TABLET, "key/master": MASTER})
    assert command(tmp_path, "backup", "b") == (0, "b: 6 state entries and 1 configuration file\n")
    assert orjson.loads(members(tmp_path / "b")[archive.STATE_FILE]) == {**HOME, "key/key_a": TABLET}


def test_a_restore_replaces_api_keys_and_keeps_the_boxs_master_key(tmp_path: Path, command: Command) -> None:
    home(tmp_path, {**HOME, "key/key_since": TABLET, "key/master": MASTER})
    pack(tmp_path / "b", entries(state={**HOME, "key/key_a": TABLET, "key/master": {**MASTER, "hash": "other"}}))
    assert command(tmp_path, "restore", "b")[0] == 0
    assert keys_of(tmp_path) == {"key/key_a": TABLET, "key/master": MASTER}


def test_a_box_without_a_stored_master_key_gets_no_key(tmp_path: Path, command: Command) -> None:
    home(tmp_path)
    pack(tmp_path / "b", entries(state={**HOME, "key/master": MASTER}))
    assert command(tmp_path, "restore", "b")[0] == 0
    assert keys_of(tmp_path) == {}


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        "x",
        {},
        {**TABLET, "hash": None},
        {**TABLET, "role": ["admin"]},
        {**TABLET, "label": 7},
        {**TABLET, "created_at": "yesterday"},
        {**TABLET, "created_at": 7},
        {name: value for name, value in TABLET.items() if name != "hash"},
    ],
)
def test_an_archive_with_an_invalid_key_is_refused(tmp_path: Path, command: Command, record: Any) -> None:
    pack(home(tmp_path) / "b", entries(state={**HOME, "key/key_a": record}))
    before = everything(tmp_path)
    code, result = command(tmp_path, "restore", "b")
    assert code == 65 and re.fullmatch(
        r"lares: b (is not a backup of Lares, or is incomplete|contains an invalid .*; nothing was restored)\n",
        result,
    )
    assert everything(tmp_path) == before


def test_a_restored_key_works_on_the_new_box(tmp_path: Path) -> None:
    old, new = home(tmp_path / "old"), home(tmp_path / "new")
    token = made(old)
    assert ended(old, "backup", "b").code == 0
    with lares(new, "run") as running:
        own = first_key(running, new)
    assert ended(new, "restore", str(old / "b")).code == 0
    with lares(new, "run") as running:
        url = running.url()
        assert (status_of(url, token), status_of(url, own)) == (200, 200)
        assert status_of(url, token, path="/auth/keys") == 403


def test_doctor_counts_keys(tmp_path: Path, command: Command) -> None:
    home(tmp_path, {"key/key_a": TABLET, "key/master": MASTER})
    assert "1 API key, a generated master key\n" in command(tmp_path, "doctor")[1]
    home(tmp_path / "other", {"key/key_a": TABLET, "key/key_b": TABLET})
    assert "2 API keys, no generated master key\n" in command(tmp_path / "other", "doctor")[1]


def made(folder: Path) -> str:
    """Create a key on the box, and return it."""
    result = ended(folder, "key", "create", "--label", "tablet", "--role", "read")
    assert result.code == 0
    return result.out.strip()


def first_key(running: Running, folder: Path) -> str:
    """Return the key that was generated at the first start."""
    running.url()
    return (folder / "data" / "first-key").read_text().strip()


async def test_a_backup_contains_optional_parts_only_on_request(tmp_path: Path) -> None:
    config, data = tmp_path / "config" / "default.toml", tmp_path / "data"
    config.parent.mkdir()
    config.touch()
    data.mkdir()
    async with open_document(Disk(data), Clock()) as document:
        await document.put_many({"adapter/hue/kept": '{"key":"s3cret"}', "room/hall": {"name": "Hall"}})
    without, _ = collect(config, data)
    assert set(without.values) == {"room/hall"}
    assert "adapter/hue/kept" in collect(config, data, has_secrets=True)[0].values
