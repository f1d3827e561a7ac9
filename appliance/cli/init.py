"""`lares init`: writes an initial configuration."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path

from appliance.adapters.lua_kinds.definition import BUNDLED_KINDS, list_bundled_kinds
from appliance.cli.initial_config import write_config
from appliance.cli.machine_zone import read_initial_config
from appliance.cli.owner import become_owner
from appliance.cli.paths import CONFIG_FILE, HubPaths
from appliance.cli.terminal import say
from appliance.errors import StartFailed
from appliance.tables.checks import nearest, suggest


def init(arguments: argparse.Namespace) -> int:
    """Copy the bundled configuration, or the configuration in `--config`, to the folder. Never overwrite files. Print
    the written files."""
    if arguments.adapter is not None:
        return _write_kind(arguments)
    if arguments.folder is None:
        raise StartFailed("specify a folder, as in `lares init /etc/lares`, or a kind with --adapter", os.EX_USAGE)
    folder = Path(arguments.folder).absolute()
    template = read_initial_config(arguments)
    become_owner(folder / CONFIG_FILE.parent, folder)
    written = write_config(folder / CONFIG_FILE.parent, template)
    for file in written:
        say(f"wrote {file}")
    if not written:
        say(f"{folder / CONFIG_FILE.parent}: already complete; nothing was changed")
    file = CONFIG_FILE.parent / Path(arguments.config or CONFIG_FILE).name
    data_dir = Path(arguments.data_dir or folder / "data").absolute()
    words = [*program_words(), "--config", str(folder / file), "--data-dir", str(data_dir)]
    say(f"Run it with: {shlex.join(words)}")
    return os.EX_OK


def _write_kind(arguments: argparse.Namespace) -> int:
    """Copy a bundled kind to the configuration folder, and explain how to use the kind. Never overwrite a file."""
    name, file = arguments.adapter, HubPaths.of_process(arguments).find_config()
    folder = file.parent if arguments.folder is None else Path(arguments.folder).absolute() / CONFIG_FILE.parent
    bundled = list_bundled_kinds()
    if name not in bundled:
        near = nearest(name, bundled)
        hint = suggest(near, f"available: {', '.join(bundled)}")
        raise StartFailed(f"there is no bundled Lua kind {name}{hint}", os.EX_USAGE)
    text = (BUNDLED_KINDS / f"{name}.lua").read_bytes()
    become_owner(folder, folder.parent)
    written = write_config(folder, {Path("adapters", f"{name}.lua"): (text, 0o644)})
    for each in written:
        say(f"wrote {each}; it replaces the bundled kind {name}")
    if not written:
        say(f"{folder / 'adapters' / name}.lua already exists; nothing was changed")
    say(f"Try it with: lares try-adapter {name} --set base_url=http://…")
    return os.EX_OK


def program_words(*, is_elsewhere: bool = False) -> list[str]:
    """Return the shell command for this program: its name if the shell finds it, otherwise its path. If
    `is_elsewhere` is true, the path is absolute."""
    started = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    script = Path(started[-1])
    if "-m" in started:
        return started
    if is_elsewhere:
        script = script.absolute()
    if not os.access(script, os.X_OK):
        return [*started[:-1], str(script)]
    found = shutil.which(script.name)
    if found is not None and Path(found).resolve() == script.resolve():
        return [script.name]
    return [str(script) if script.is_absolute() else f"./{script}"]
