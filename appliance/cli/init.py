"""`lares init`: a fresh configuration to begin with."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from appliance.cli.paths import CONFIG_FILE, write_bundled_config


def init(arguments: argparse.Namespace) -> int:
    """Write the bundled `config/` into the folder, never over a file that exists, and say what was written."""
    folder = Path(arguments.folder).absolute()
    written = write_bundled_config(folder / CONFIG_FILE.parent)
    for file in written:
        print(f"wrote {file}")
    if not written:
        print(f"{folder / CONFIG_FILE.parent}: all of it is there already; nothing was changed")
    print(f"Run it with: lares --config {folder / CONFIG_FILE} --data-dir {folder / 'data'}")
    return os.EX_OK
