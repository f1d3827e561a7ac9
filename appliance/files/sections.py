"""Lists, changes, tries, and removes adapter sections of the configuration, for forms."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from appliance import config
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.computing import compute_alone
from appliance.errors import ConfigFailed, FileExists, Invalid, InvalidFile, NotFound
from appliance.files.file_checks import FILES_THREAD
from appliance.files.home_files import HomeFiles, SavedFile
from appliance.files.section_trial import SectionTrials, Trial
from appliance.files.toml_edit import remove_section, set_keys
from appliance.files.toml_secrets import HIDDEN
from appliance.lua.text.source import Source


class Section(Struct, frozen=True, kw_only=True):
    """A section of the configuration file, with hidden secrets."""

    name: str
    kind: str
    is_enabled: bool
    values: Mapping[str, Any]


class Sections:
    """The adapter sections of the configuration file."""

    def __init__(self, files: HomeFiles, trials: SectionTrials) -> None:
        self._files = files
        self._trials = trials
        self._file = files.locations.config_path

    async def list_sections(self) -> tuple[str, list[Section]]:
        """Return the file's version and its sections by name. Raise `Invalid` if the file is not TOML."""
        _, shown, version = await self._files.read_config()
        stated = await compute_alone(FILES_THREAD, _adapters_in, shown)
        return version, [_section_of(name, raw) for name, raw in sorted(stated.items()) if isinstance(raw, dict)]

    async def save(
        self, name: str, kind: str, values: Mapping[str, Any], version: str | None, *, is_new: bool
    ) -> SavedFile:
        """Change or add a section. The value None removes a key. Missing keys and hidden secrets do not change.

        Raise `FileExists` if the section is new but its name is taken. Also raise the exceptions of `HomeFiles.save`.
        """

        def change(text: str) -> str:
            stated = _adapters_in(text).get(name)
            if is_new and stated is not None:
                raise FileExists(f"adapters.{name}")
            return set_keys(text, name, _changes(name, kind, values, stated or {}))

        return await self._files.change_config(change, version)

    async def remove(self, name: str, version: str | None = None) -> SavedFile:
        """Remove a section. Raise `NotFound` if the section does not exist, and the exceptions of
        `HomeFiles.save`."""

        def change(text: str) -> str:
            if name not in _adapters_in(text):
                raise NotFound("section", name)
            return remove_section(text, name)

        return await self._files.change_config(change, version)

    async def try_section(
        self, name: str, kind: str, values: Mapping[str, Any], *, text: str | None = None, replay: Any = None
    ) -> Trial:
        """Start the changed section in an empty home. If given, `text` replaces the Lua file of the section's kind.

        Raise `InvalidFile` with the faults of file and settings, `Busy` during another trial, or `Invalid` for an
        invalid recording.
        """
        stored, _, _ = await self._files.read_config()
        before = (await compute_alone(FILES_THREAD, _adapters_in, stored)).get(name) or {}
        source, faulty = None, self._file
        try:
            if text is None:
                changes = _changes(name, kind, values, before)
                full = await compute_alone(FILES_THREAD, set_keys, stored, name, {**changes, "enabled": True})
                settings = await self._parse(name, full)
            else:
                faulty = self._files.locations.kind_path(kind)
                source = Source(name=self._files.locations.get(faulty).path, text=text.encode())
                raw = {**before, **{key: value for key, value in values.items() if value != HIDDEN}, "type": kind}
                raw = {key: value for key, value in raw.items() if value is not None and key != "enabled"}
                settings = LuaSection(name=name, kind=kind, raw=raw, file=self._file, line_of=lambda _: 0)
            return await self._trials.run(name, settings, kind=source, replay=replay)
        except ConfigFailed as failed:
            raise InvalidFile(faulty, failed.faults) from None

    async def _parse(self, name: str, text: str) -> Any:
        checked = await self._files.check(self._file, text)
        if checked.errors:
            raise ConfigFailed(list(checked.errors))
        parse = partial(config.parse, text, str(self._files.locations.get(self._file).file), os.environ)
        return (await compute_alone(FILES_THREAD, parse)).adapters[name]


def _adapters_in(text: str) -> dict[str, Any]:
    """Return the adapter sections in a text. Raise `Invalid` if the text is not TOML."""
    try:
        stated = config.parse_toml(text, "the configuration").get("adapters", {})
    except ConfigFailed as failed:
        raise Invalid(f"{failed.faults[0]}; correct it in the file first") from None
    return stated if isinstance(stated, dict) else {}


def _section_of(name: str, raw: Mapping[str, Any]) -> Section:
    values = {key: value for key, value in raw.items() if key not in ("type", "enabled")}
    return Section(
        name=name, kind=str(raw.get("type", name)), is_enabled=raw.get("enabled", True) is not False, values=values
    )


def _changes(name: str, kind: str, values: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys whose values are new or differ from `stated`."""
    type_ = None if kind == name and "type" not in stated else kind
    kept = {key: value for key, value in values.items() if not (value == HIDDEN and key in stated)}
    found = {"type": type_, **kept} if type_ is not None else kept
    return {key: value for key, value in found.items() if key not in stated or stated[key] != value}
