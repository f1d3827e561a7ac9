"""Reads the files of Home Assistant's configuration folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from appliance.cli.homeassistant.values import as_mapping, shown
from appliance.cli.homeassistant.yaml_parser import (
    MAX_DEPTH,
    MAX_VALUES,
    TOO_DEEP,
    TOO_MANY,
    Tagged,
    YamlParser,
    value_count,
)
from appliance.errors import StartFailed
from appliance.tables.plain_files import read_plain

MAX_REGISTRY_BYTES = 16 * 1024 * 1024

MAX_YAML_BYTES = 4 * 1024 * 1024
"""Maximum size of a YAML file. The YAML library takes some hundred times longer per byte than the JSON library."""

INCLUDE_COUNT = 20
"""Each use of an included file counts like this number of values."""

STORAGE = ".storage"


class ConfigFolder:
    """Reads the files of the configuration folder. The names of files are relative to the folder.

    Raises `StartFailed` if a file is outside the folder, also through a link, or if the files exceed a limit.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._root = path.resolve()
        self._count = 0
        self._yaml = YamlParser()
        self._contents: dict[str, Any] = {}
        self._lists: dict[tuple[str, str, str], list[str]] = {}
        self.problems: dict[str, None] = {}
        """Sentences about parts that the import skips. Each sentence begins with the name of the file."""

    def contains(self, name: str) -> bool:
        return self._is_inside(self._path / name)

    def report(self, origin: str, sentence: str) -> None:
        self.problems[f"{origin}: {sentence}"] = None

    def mapping(self, origin: str, what: str, value: Any) -> Mapping[Any, Any]:
        """Return a mapping. Report any other value, except a missing value, and return an empty mapping instead."""
        if not isinstance(value, Mapping | None):
            self.report(origin, f"{what} is not a YAML mapping, but {shown(value)}")
        return as_mapping(value)

    def count(self, origin: str, value: Any, depth: int = 1) -> None:
        """Count a value of the expanded configuration."""
        self._count += value_count(value)
        if self._count > MAX_VALUES or depth > MAX_DEPTH:
            fault = TOO_DEEP if depth > MAX_DEPTH else TOO_MANY
            raise StartFailed(f"{self._path / origin}: {fault}", os.EX_DATAERR)

    def list_included(self, origin: str, include: Tagged) -> list[str]:
        """Return the names of the included files. Report a missing file or folder. Like Home Assistant, ignore hidden
        files and `secrets.yaml` in an included folder."""
        place = os.path.dirname(origin), include.tag, str(include.value)  # noqa: PTH120 - it is a text
        found = self._lists.get(place)
        if found is None:
            found = self._lists[place] = self._list_included(origin, include)
        self._count += INCLUDE_COUNT * len(found)
        return found

    def _list_included(self, origin: str, include: Tagged) -> list[str]:
        name = os.path.normpath(Path(origin).parent / str(include.value))
        if not self.contains(name):
            raise StartFailed(
                f"{self._path / origin}:{include.line}: {include} is outside the configuration folder; "
                "copy it into the folder and change the path",
                os.EX_DATAERR,
            )
        is_folder = include.tag.startswith("!include_dir")
        if (fault := _find_fault(self._path / name, is_folder=is_folder)) is not None:
            kind = "a folder with YAML files" if is_folder else "a YAML file"
            self.report(
                f"{origin}:{include.line}",
                f"{include} cannot be read: {fault}; put {kind} at {self._path / name}, then import again",
            )
            return []
        if not is_folder:
            return [name]
        found = (each.relative_to(self._path) for each in (self._path / name).rglob("*.yaml"))
        return sorted(
            str(each)
            for each in found
            if each.name != "secrets.yaml" and not any(part.startswith(".") for part in each.parts)
        )

    def read_yaml(self, name: str) -> Any:
        """Return the content of a YAML file, or None if it is missing."""
        if name not in self._contents:
            file = self._path / name
            self._contents[name] = (
                self._yaml.parse(self._read(file, MAX_YAML_BYTES), file) if file.is_file() else None
            )
        return self._contents[name]

    def read_json(self, registry: str) -> Any:
        """Return the content of a registry, or None if it is missing."""
        file = self._path / STORAGE / registry
        if not file.is_file():
            return None
        try:
            return orjson.loads(self._read(file, MAX_REGISTRY_BYTES))
        except orjson.JSONDecodeError as error:
            raise StartFailed(f"{file}: not valid JSON: {error}", os.EX_DATAERR) from None

    def _is_inside(self, file: Path) -> bool:
        try:
            return file.resolve().is_relative_to(self._root)
        except (RuntimeError, ValueError):  # a loop of links, or a name with a NUL character
            return False

    def _read(self, file: Path, max_bytes: int) -> bytes:
        if not self._is_inside(file):
            raise StartFailed(
                f"{file} is a link to a file outside the configuration folder; copy the file into the folder",
                os.EX_DATAERR,
            )
        try:
            return read_plain(file, max_bytes)
        except OSError as error:
            raise StartFailed(f"{file}: {error.strerror}", os.EX_NOINPUT) from None


def _find_fault(place: Path, *, is_folder: bool) -> str | None:
    """Return the reason why the import cannot read this file or folder, or None."""
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        return f"the {'folder' if is_folder else 'file'} is missing"
    except OSError as error:
        return str(error.strerror)
    if is_folder:
        return None if stat.S_ISDIR(mode) else "it is not a folder"
    return None if stat.S_ISREG(mode) else "it is not a regular file"
