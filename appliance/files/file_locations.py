"""The home's files that clients can read and save, with paths, kinds, and locations on disk."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from msgspec import Struct

from appliance.config import Config
from appliance.errors import Invalid
from appliance.lua.files.folder import Folder
from appliance.lua.text.source import MAX_FILE_BYTES
from appliance.tables.plain_files import read_plain

MAX_PATH_CHARS = 255

MAX_PATH_DEPTH = 20
"""Maximum number of parts of a path. `lares restore` rejects deeper paths."""

PERMISSION_HINT = '; allow the hub to use its files, as "Edit on the page" in docs/systemd.md describes'

_NAME = re.compile(r"[^./\\][^/\\]*\.lua")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def has_control_characters(path: str) -> bool:
    return _CONTROL.search(path) is not None


class FileLocation(Struct, frozen=True, kw_only=True):
    """A file of the home.

    `kind` is scene, automation, script, adapter, or config. `folder` is the folder for files of this kind.
    """

    kind: str
    path: str
    file: Path
    folder: Path | None = None

    def inner_folders(self) -> list[Path]:
        """Return the folders between `folder` and the file."""
        if self.folder is None:
            return []
        depth = len(self.file.relative_to(self.folder).parts) - 1
        return list(self.file.parents[:depth])

    def has_room(self, added_bytes: int) -> bool:
        """Return whether the folder can have this number of further bytes."""
        if self.folder is None or added_bytes <= 0:
            return True
        return Folder(path=self.folder, name="", is_deep=self.kind == "script").has_room(added_bytes)

    def read(self) -> bytes | None:
        """Return the file's content, or None if it does not exist.

        Raise `Invalid` for a link, a folder, or a special file.
        """
        try:
            # check each folder of the path, because it can be a link to a missing folder
            for each in (*reversed(self.inner_folders()), self.file):
                if stat.S_ISLNK(os.lstat(each).st_mode):
                    raise Invalid(f"{self.path} is a symbolic link; edit its target on the hub's machine")
            return read_plain(self.file, MAX_FILE_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            hint = PERMISSION_HINT if isinstance(error, PermissionError) else ""
            raise Invalid(f"{self.path} cannot be read: {error.strerror or error}{hint}") from None


class FileLocations:
    """Finds the location of a file by its path. `config_path` is the path of the configuration file."""

    def __init__(self, config: Config) -> None:
        self._file = Path(config.file).absolute()
        self._root = config.root
        self.config_path = f"{self._file.parent.name}/{self._file.name}"
        self._folders = {
            "scene": config.scenes.directory,
            "automation": config.automations.directory,
            "script": config.scripts.directory,
            "adapter": f"{self._file.parent.name}/adapters",
        }

    def kind_path(self, kind: str) -> str:
        """Return the file path for a kind in Lua, even if the file does not exist."""
        return f"{self._folders['adapter']}/{kind}.lua"

    def get(self, path: str) -> FileLocation:
        """Return the location of a file. Raise `Invalid` if clients may not save the path."""
        if path == self.config_path:
            return self._config_location()
        if len(path) > MAX_PATH_CHARS or has_control_characters(path):
            raise Invalid(f"the path must have at most {MAX_PATH_CHARS} characters and no control characters")
        for kind, folder in self._folders.items():
            name = path.removeprefix(f"{folder.rstrip('/')}/")
            if name == path:
                continue
            parts = name.split("/")
            if len(parts) > 1 and kind != "script":
                raise Invalid(f"{path} is in a subfolder; only {self._folders['script']} may have subfolders")
            if path.count("/") >= MAX_PATH_DEPTH:
                raise Invalid(f"the path must have at most {MAX_PATH_DEPTH} parts, separated by slashes")
            if not all(parts) or any(each.startswith(".") or "\\" in each for each in parts):
                raise Invalid(f"{path} is not a valid path: no part may be empty or begin with a dot")
            if _NAME.fullmatch(parts[-1]) is None:
                raise Invalid(f"{path} must end in .lua")
            return FileLocation(kind=kind, path=path, file=self._root / folder / name, folder=self._root / folder)
        folders = ", ".join(self._folders.values())
        raise Invalid(f"{path} is neither a file in {folders} nor {self.config_path}")

    def list_all(self) -> list[FileLocation]:
        """Return the locations of the configuration and of all existing Lua files, even if a file's name is
        invalid. In a path, escape bytes that are not UTF-8."""
        locations = [self._config_location()]
        for kind, name in self._folders.items():
            folder = self._root / name
            for file in sorted(folder.rglob("*.lua") if kind == "script" else folder.glob("*.lua")):
                path = os.fsencode(f"{name.rstrip('/')}/{file.relative_to(folder)}").decode(errors="backslashreplace")
                locations.append(FileLocation(kind=kind, path=path, file=file, folder=folder))
        return locations

    def _config_location(self) -> FileLocation:
        return FileLocation(kind="config", path=self.config_path, file=self._file)
