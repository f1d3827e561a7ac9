"""`lares check`: is what people wrote sound?"""

from __future__ import annotations

import argparse
import os
import sys

from appliance import config
from appliance.cli.paths import Places
from appliance.errors import ConfigFailed, StartFailed


def check(arguments: argparse.Namespace) -> int:
    """Print every fault of the configuration as `file:line: message`; 0 when there is none, else 78."""
    file = Places.of_process(arguments.config, arguments.data_dir).find_config()
    if not file.exists():
        raise StartFailed(f"there is no configuration at {file}; `lares run` writes one there", os.EX_CONFIG)
    try:
        settings = config.load(file, os.environ)
    except ConfigFailed as failed:
        for fault in failed.faults:
            print(fault)
        count = len(failed.faults)
        print(f"lares: {count} fault{'s' if count > 1 else ''} found", file=sys.stderr)
        return os.EX_CONFIG
    for warning in settings.warnings:
        print(f"warning: {warning}")
    print(f"{file}: no faults")
    return os.EX_OK
