"""`lares import homeassistant`: imports rooms, names, variables, and Lua files. The import never overwrites
anything."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from appliance import config
from appliance.cli.examination import load_or_default
from appliance.cli.homeassistant.automation import TIMES
from appliance.cli.homeassistant.config_files import import_files, import_locale, read_module
from appliance.cli.homeassistant.entities import Entities
from appliance.cli.homeassistant.hub_checks import find_faults
from appliance.cli.homeassistant.installation import Installation, read_installation
from appliance.cli.homeassistant.lua_file import LuaFile
from appliance.cli.homeassistant.records import Step, import_records, read_known_devices
from appliance.cli.initial_config import ConfigTemplate, read_template, write_config
from appliance.cli.lua_pool import open_pool
from appliance.cli.machine_zone import in_machine_zone
from appliance.cli.owner import as_owner, as_owner_of_all, become_owner_of_both, give_new_files
from appliance.cli.paths import HubPaths, make_data_dir
from appliance.cli.terminal import say
from appliance.clock import Clock
from appliance.config import LUA_FOLDERS, Config
from appliance.tables.plain_files import read_plain


def import_(arguments: argparse.Namespace) -> int:
    """Import from the folder, and print each imported or skipped record and file."""
    folder = Path(arguments.folder)
    with as_owner_of_all(folder):
        installation = read_installation(folder)
    paths = HubPaths.of_process(arguments)
    asyncio.run(_import(installation, paths.find_config(), paths.find_data_dir()))
    return os.EX_OK


async def _import(installation: Installation, file: Path, data_dir: Path) -> None:
    """Start the Lua workers and read the program's files while this process may still be root, because the owner of
    the home may be unable to read them. Then switch to the owner of the home, and import on another thread, so that
    the event loop can serve the workers."""
    template, module = read_template(config.bundled_config()), read_module(installation.locale)
    with as_owner(data_dir, file):
        settings, _ = load_or_default(file)
    async with open_pool(settings, Clock(), data_dir, file, becomes_owner=False) as pool:
        become_owner_of_both(file, data_dir)
        loop = asyncio.get_running_loop()

        def check(files: Sequence[LuaFile], settings: Config) -> Mapping[LuaFile, str]:
            found = find_faults(files, settings, pool, (data_dir, file))
            return asyncio.run_coroutine_threadsafe(found, loop).result()

        await asyncio.to_thread(_import_all, installation, template, module, file, data_dir, check)


def _import_all(
    installation: Installation,
    template: ConfigTemplate,
    module: str,
    file: Path,
    data_dir: Path,
    check: Callable[[Sequence[LuaFile], Config], Mapping[LuaFile, str]],
) -> None:
    with as_owner(data_dir):
        make_data_dir(data_dir)
        known = read_known_devices(data_dir)
    if not file.exists():
        write_config(file.parent, template if "timezone" in installation.locale else in_machine_zone(template))
    steps = [(False, each) for each in installation.problems]
    steps += import_locale(installation.locale, file)
    with as_owner(data_dir, file):
        settings, _ = load_or_default(file)
    entities = Entities(installation, _mqtt_section(file), known, settings.locale)
    with as_owner(data_dir):
        steps += import_records(installation, entities, known, data_dir)
    folders = {name: settings.root / getattr(settings, name).directory for name in LUA_FOLDERS}
    with ExitStack() as stack:
        for folder in (file.parent, *folders.values()):
            stack.enter_context(give_new_files(folder))
        steps += import_files(installation, entities, folders, module, lambda files: check(files, settings))
    _report(steps, entities)


def _report(steps: Sequence[Step], entities: Entities) -> None:
    """Print each step, and the next tasks of the user."""
    for is_imported, sentence in steps:
        say(f"{'imported' if is_imported else 'skipped '}  {sentence}")
    if entities.missing:
        say(
            f"not found in Lares: {', '.join(sorted(entities.missing))}; "
            "the files contain guessed ids for these entities, so check the ids"
        )
    has_moved = any(is_imported and sentence.startswith("locale.") for is_imported, sentence in steps)
    if entities.timers:
        say(
            f"the automation {TIMES} sets the timers of input_datetime helpers when the hub starts, at 00:00, and "
            "when a helper changes; if you reload without a restart, run this automation once"
        )
    last = "restart the hub" if has_moved or entities.timers else "`lares reload`"
    other = f", except {TIMES.lower()}," if entities.timers else ""
    say(f"each automation{other} is off until you switch it on; next, run `lares check`, then {last}")


def _mqtt_section(file: Path) -> str:
    """Return the name of the first enabled MQTT section, or `mqtt` if there is none."""
    sections = config.parse_toml(read_plain(file).decode(errors="replace"), str(file)).get("adapters", {})
    for name, section in sections.items() if isinstance(sections, Mapping) else ():
        if isinstance(section, Mapping) and section.get("type", name) == "mqtt" and section.get("enabled", True):
            return str(name)
    return "mqtt"
