"""Writes the home's location, and the translated automations, scripts, and scenes, to the configuration folder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from appliance import config
from appliance.cli.homeassistant import scenes, scripts
from appliance.cli.homeassistant.automation import TIMES, translate, translate_times
from appliance.cli.homeassistant.entities import Entities
from appliance.cli.homeassistant.installation import Installation
from appliance.cli.homeassistant.lua_file import MARK, LuaFile
from appliance.cli.homeassistant.not_translated import NotTranslated, TooLarge
from appliance.cli.homeassistant.records import Step
from appliance.cli.homeassistant.values import as_mapping, title_of
from appliance.cli.terminal import counted
from appliance.errors import LaresError, StartFailed
from appliance.lua.text.source import MAX_FILE_BYTES
from appliance.store.disk import write_file
from appliance.tables.plain_files import read_plain

MODULE = "homeassistant.lua"
"""The name of the script that the translated automations require."""

FindFaults = Callable[[Sequence[LuaFile]], Mapping[LuaFile, str]]
"""Returns the faults of each file that the hub could not load."""


def import_locale(locale: Mapping[str, Any], file: Path) -> list[Step]:
    """Set the time zone and coordinates if they still have their initial values."""
    text = read_plain(file).decode()
    stated = config.parse_toml(text, str(file)).get("locale", {})
    missing = {key: each for key, each in locale.items() if stated.get(key, "UTC") == "UTC" and each != "UTC"}
    kept = {key: stated[key] for key, each in locale.items() if key not in missing and stated.get(key, each) != each}
    steps = [(False, f"locale.{key} = {json.dumps(locale[key])}: {file} has {each}") for key, each in kept.items()]
    changed = text
    for key, value in missing.items():
        changed = _with_locale(changed, f"{key} = {json.dumps(value)}")
    try:
        config.parse(changed, str(file), {})
    except LaresError as fault:
        return [*steps, (False, f"locale: {fault}")] if missing else steps
    if missing:
        before = file.stat()
        _write(file, changed, before.st_mode & 0o777)
        with suppress(PermissionError):  # as root, keep the group, so that the hub can read the file
            os.chown(file, -1, before.st_gid)
    return [*steps, *((True, f"locale.{key} = {json.dumps(each)}") for key, each in missing.items())]


def _with_locale(text: str, line: str) -> str:
    """Set a line in `[locale]`. If the section has a line or a comment with the same key, replace this line."""
    key = line.split(" ", maxsplit=1)[0]
    head, header, rest = text.partition("[locale]\n")
    if not header:
        return f"{text}\n[locale]\n{line}\n"
    following = re.search(r"^\[", rest, re.MULTILINE)
    section, more = (rest[: following.start()], rest[following.start() :]) if following else (rest, "")
    stated = re.compile(rf"^(?:# )?{key} = .*$", re.MULTILINE)
    section = stated.sub(line, section, count=1) if stated.search(section) else f"{line}\n{section}"
    return head + header + section + more


def import_files(
    installation: Installation, entities: Entities, folders: Mapping[str, Path], module: str, find_faults: FindFaults
) -> list[Step]:
    """Write one Lua file per automation, script, and scene, and their common module. Omit files that exist, and files
    with faults. `folders` contains the folder for each name in `LUA_FOLDERS`. `module` is the text of the common
    module."""
    module_file = folders["scripts"] / MODULE
    taken = {name: _taken(folder) for name, folder in folders.items()}
    taken["scripts"].add(module_file.stem)
    results = [(label, _make(make, entities)) for label, make in _makers(installation, entities, taken)]
    paths = {made: folders[made.folder] / f"{made.id}.lua" for _, made in results if isinstance(made, LuaFile)}
    new = {made: None for made, path in paths.items() if not os.path.lexists(path)}
    steps = _import_module(module_file, module) if new else []
    faults = find_faults([*new])
    for label, made in results:
        if isinstance(made, str):
            steps.append((False, f"{label}: {made}"))
        elif made not in new:
            steps.append((False, f"{label}: {paths[made]} exists already"))
        elif made in faults:
            steps.append((False, f"{label}: {faults[made]}"))
        else:
            _write(paths[made], made.text)
            parts = f"; {counted(len(made.problems), 'part')} to translate by hand" if made.problems else ""
            steps.append((True, f"{label}: {paths[made]}{parts}"))
            steps += [(False, f"{label}: {problem}") for problem in made.problems]
    return steps


def _import_module(file: Path, text: str) -> list[Step]:
    """Write the common module. If it exists and differs, for example because an older version wrote it, report it."""
    if not os.path.lexists(file):
        _write(file, text)
        return []
    if read_plain(file) == text.encode():
        return []
    hint = "if you did not change it, delete it and import again"
    return [(False, f"script {file.stem}: {file} differs from this version's; {hint}")]


def _make(make: Callable[[], LuaFile], entities: Entities) -> LuaFile | str:
    """Return the translated file, or the reason why it cannot be translated."""
    entities.begin_file()
    try:
        made = make()
        size = len(made.text.encode())
    except (NotTranslated, TooLarge) as reason:
        return str(reason)
    except UnicodeEncodeError:
        return "contains a character that UTF-8 cannot encode"
    except Exception:  # one unexpected file must not prevent the import of the others
        return "unknown format; please report this file"
    return made if size <= MAX_FILE_BYTES else "the Lua file is larger than 1 MiB"


def _makers(
    installation: Installation, entities: Entities, taken: Mapping[str, set[str]]
) -> Iterator[tuple[str, Callable[[], LuaFile]]]:
    """Yield the label and the translation function of each file. The caller must call each function before it
    requests the next pair."""
    scene_ids = iter(scripts.prepare(entities, taken))
    for origin, each in installation.scenes:
        made = partial(scenes.translate_scene, origin, each, entities, scene_ids)
        yield _label("scene", each, "name", origin), made
    for origin, key, each in installation.scripts:
        made = partial(scripts.translate_script, origin, key, each, entities)
        yield _label("script", each, "alias", origin), made
    for origin, each in installation.automations:
        made = partial(translate, each, origin, entities, taken["automations"])
        yield _label("automation", each, "alias", origin), made
    if entities.timers:
        yield f"automation {TIMES}", partial(translate_times, entities, taken["automations"])


def _label(kind: str, definition: Any, key: str, origin: str) -> str:
    """Return the kind, the name, and the origin of a definition."""
    name = title_of(as_mapping(definition).get(key))
    return f"{kind} {name} ({origin})" if name else f"{kind} ({origin})"


def _taken(folder: Path) -> set[str]:
    """Return the ids of existing files that no import has written."""
    files = folder.glob("*.lua")
    return {each.stem for each in files if MARK not in read_plain(each).decode(errors="replace")}


def read_module(locale: Mapping[str, Any]) -> str:
    """Return the common module with the coordinates of the home."""
    text = (Path(__file__).parent / MODULE).read_text(encoding="utf-8")
    coordinates = f"{locale.get('latitude', 0)}, {locale.get('longitude', 0)}"
    return text.replace("LATITUDE, LONGITUDE = 0, 0", f"LATITUDE, LONGITUDE = {coordinates}")


def _write(file: Path, text: str, mode: int = 0o644) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text.encode(), mode)
    except OSError as error:
        raise StartFailed(f"cannot write {file}: {error.strerror}", os.EX_CANTCREAT) from None
