"""`lares init`: a fresh configuration to begin with."""

from __future__ import annotations

import argparse
import os
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
    say(f"Run it with: lares --config {folder / file} --data-dir {data_dir}")
    return os.EX_OK
