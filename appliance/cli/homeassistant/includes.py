"""Follows `!include` and its variants, as Home Assistant does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from appliance.cli.homeassistant.folder import ConfigFolder
from appliance.cli.homeassistant.yaml_parser import Tagged


def included_files(folder: ConfigFolder, origin: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the path and content of each included file. Yield a value without a tag unchanged."""
    if not isinstance(value, Tagged) or not value.tag.startswith("!include"):
        yield origin, value
        return
    for file in folder.list_included(origin, value):
        yield file, folder.read_yaml(file)


def expand_includes(folder: ConfigFolder, origin: str, value: Any, depth: int = 1) -> Any:
    """In the value, replace each include with the content of the included files."""
    folder.count(origin, value, depth)
    if isinstance(value, Tagged) and value.tag.startswith("!include"):
        contents = [
            (file, expand_includes(folder, file, content, depth + 1))
            for file, content in included_files(folder, origin, value)
        ]
        if value.tag == "!include_dir_named":
            return {Path(file).stem: content for file, content in contents}
        if value.tag == "!include_dir_list":
            return [content for _, content in contents]
        return merged(content for _, content in contents)
    if isinstance(value, Mapping):
        return {key: expand_includes(folder, origin, each, depth + 1) for key, each in value.items()}
    return [expand_includes(folder, origin, each, depth + 1) for each in value] if isinstance(value, list) else value


def merged(values: Iterable[Any]) -> Any:
    found: Any = None
    for each in values:
        if isinstance(found, Mapping) and isinstance(each, Mapping):
            found = {**found, **each}
        elif isinstance(found, list) and isinstance(each, list):
            found = [*found, *each]
        else:
            found = each if found is None else found
    return found
