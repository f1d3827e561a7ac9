"""What a HomeCmdr hub left: its configuration, its Lua files, and the rooms and groups of its SQLite file."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct

from appliance.config import parse_toml
from appliance.errors import StartFailed

_CONFIG = Path("config") / "default.toml"
DATABASES = ("data/homecmdr.db", "data/smart-home.db")
"""Where the database lies when the configuration does not say."""

LUA_FOLDERS = ("scenes", "automations", "scripts")

MAX_SOURCE_FILE_BYTES = 4 << 20
"""Of a file that is taken over."""

MAX_CELL_BYTES = 16 << 20
"""Of one value of its database."""

MAX_SQL_STEPS = 100_000_000
"""Instructions of SQLite for all that is read, some ten seconds; a database may be made to be read without end."""

MAX_ROWS = 20_000
"""Rows of one table."""

_URL = "sqlite://"


class Home(Struct, frozen=True, kw_only=True):
    """Rooms and groups by id, and the room of each device that has one. `keys` and `persons` are only counted."""

    rooms: Mapping[str, str]
    groups: Mapping[str, tuple[str, list[str]]]
    room_assignments: Mapping[str, str]
    keys: int
    persons: int


class HomecmdrInstallation(Struct, frozen=True, kw_only=True):
    """A folder of such a hub, or its database alone. `config` is its configuration as it stands, unchecked."""

    root: Path
    config: Mapping[str, Any]
    database: Path | None

    def read_lua(self, kind: str) -> Iterator[tuple[Path, bytes | str]]:
        """The Lua files of `scenes`, `automations` or `scripts`: the path of each in the folder, and its text.

        Instead of the text there is a sentence where it is not read: where it lies outside, or is no plain file.
        """
        section = self.config.get(kind, {})
        stated = section.get("directory", f"config/{kind}") if isinstance(section, Mapping) else f"config/{kind}"
        folder = self.root / str(stated)
        if not is_inside(folder, self.root):
            yield Path(), f"{folder} lies outside of {self.root}"
            return
        for file in sorted(folder.rglob("*.lua") if kind == "scripts" else folder.glob("*.lua")):
            yield file.relative_to(folder), read_plain(file, self.root)


def is_inside(path: Path, root: Path) -> bool:
    """Whether the path is in the folder, links followed."""
    return path.resolve().is_relative_to(root.resolve())


def read_plain(file: Path, root: Path) -> bytes | str:
    """The bytes, or why there is none; a link is not followed, and nothing but a plain file is opened."""
    if not is_inside(file.parent, root) or not stat.S_ISREG(file.lstat().st_mode):
        return "it is a link or no plain file"
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            text = stream.read(MAX_SOURCE_FILE_BYTES + 1)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return text if len(text) <= MAX_SOURCE_FILE_BYTES else f"it is larger than {MAX_SOURCE_FILE_BYTES >> 20} MiB"


def find_source(path: Path) -> HomecmdrInstallation:
    """What lies at the path; `StartFailed` where it is neither a HomeCmdr folder nor its database."""
    if path.is_file():
        return HomecmdrInstallation(root=path.parent, config={}, database=path)
    file = path / _CONFIG
    if not file.is_file():
        raise StartFailed(f"{path} is no HomeCmdr folder: there is no {_CONFIG} in it", os.EX_NOINPUT)
    try:
        text = read_plain(file, path)
        if isinstance(text, str):
            raise StartFailed(f"{file}: {text}", os.EX_NOINPUT)
        config = parse_toml(text.decode(), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise StartFailed(f"{file} cannot be read: {error}", os.EX_NOINPUT) from None
    return HomecmdrInstallation(root=path, config=config, database=_find_database(path, config))


def _find_database(root: Path, config: Mapping[str, Any]) -> Path | None:
    section = config.get("persistence", {})
    url = str(section.get("database_url", "")) if isinstance(section, Mapping) else ""
    stated = [url.removeprefix(_URL).partition("?")[0]] if url.startswith(_URL) else []
    places = [root / each for each in (*stated, *DATABASES) if each and "\0" not in each]
    return next((each for each in places if each.is_file() and is_inside(each, root)), None)


def read_home(database: Path) -> Home:
    """What the database holds; `StartFailed` where it is none. It is only read, also while that hub runs."""
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
            connection.text_factory = lambda raw: raw.decode(errors="replace")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.set_progress_handler(lambda: 1, MAX_SQL_STEPS)
            return _read(connection)
    except sqlite3.Error as error:
        raise StartFailed(f"{database} is no database of HomeCmdr: {error}", os.EX_DATAERR) from None


def _read(connection: sqlite3.Connection) -> Home:
    def rows(query: str) -> list[tuple[Any, ...]]:
        found = connection.execute(query).fetchmany(MAX_ROWS + 1)
        if len(found) > MAX_ROWS:
            raise sqlite3.DatabaseError(f"a table has more than {MAX_ROWS} rows")
        return found

    tables = {name for (name,) in rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"rooms", "devices"} <= tables:
        raise sqlite3.DatabaseError("it has no tables of rooms and devices")
    members: dict[str, list[str]] = {}
    if "group_members" in tables:
        for group_id, device_id in rows(
            "SELECT group_id, device_id FROM group_members ORDER BY group_id, member_order"
        ):
            members.setdefault(group_id, []).append(device_id)
    groups = rows("SELECT id, name FROM groups") if "groups" in tables else ()
    [keys, persons] = [
        rows(f"SELECT count(*) FROM {table}")[0][0] if table in tables else 0 for table in ("api_keys", "persons")
    ]
    return Home(
        rooms=dict(rows("SELECT id, name FROM rooms")),
        groups={id_: (name, members.get(id_, [])) for id_, name in groups},
        room_assignments=dict(rows("SELECT device_id, room_id FROM devices WHERE room_id IS NOT NULL")),
        keys=keys,
        persons=persons,
    )
