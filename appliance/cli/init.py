"""`lares init`: a fresh configuration to begin with."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path

from appliance.cli.owner import become_owner
from appliance.cli.paths import CONFIG_FILE, find_template, read_template, write_config
from appliance.cli.terminal import say


def init(arguments: argparse.Namespace) -> int:
    """Write a configuration into the folder, never over a file that exists, and say what was written.

    It is the bundled one, or that of the file that `--config` names.
    """
    folder = Path(arguments.folder).absolute()
    template = read_template(find_template(arguments.config))
    become_owner(folder / CONFIG_FILE.parent, folder)
    written = write_config(folder / CONFIG_FILE.parent, template)
    for file in written:
        say(f"wrote {file}")
    if not written:
        say(f"{folder / CONFIG_FILE.parent}: all of it is there already; nothing was changed")
    file = CONFIG_FILE.parent / Path(arguments.config or CONFIG_FILE).name
    data_dir = Path(arguments.data_dir or folder / "data").absolute()
    words = [*program_words(), "--config", str(folder / file), "--data-dir", str(data_dir)]
    say(f"Run it with: {shlex.join(words)}")
    return os.EX_OK


def program_words(*, is_elsewhere: bool = False) -> list[str]:
    """What a person types to start this program again: its name if the shell finds it, else as it was started.

    It works in another folder too where it `is_elsewhere` that it is typed.
    """
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
