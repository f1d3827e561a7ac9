"""The initial configuration, from the bundled files or from a folder that the user names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from appliance.cli.named_files import reading
from appliance.cli.paths import HubPaths, config_folder
from appliance.config import bundled_config
from appliance.errors import StartFailed
from appliance.store.disk import for_its_user, write_file
from appliance.tables.plain_files import read_plain

ConfigTemplate = Mapping[Path, tuple[bytes, int]]
"""The content and mode of each file, by relative path in the configuration folder."""

MAX_INITIAL_FILE_BYTES = 16 << 20

RECIPES = "recipes"
"""The folder of recipes. Bundled recipes are not copied."""


def find_template(arguments: argparse.Namespace) -> Path:
    """Return the folder that contains the named file, by default the bundled folder."""
    if not arguments.config:
        return bundled_config()
    return config_folder(HubPaths.of_process(arguments).find_config())


def read_template(source: Path) -> ConfigTemplate:
    """Return the files of an initial configuration. Raise `StartFailed` if a file is unreadable."""
    with reading():
        recipes = bundled_config() / RECIPES
        files = sorted(path for path in source.rglob("*") if path.is_file() and path.parent != recipes)
        return {
            file.relative_to(source): (read_plain(file, MAX_INITIAL_FILE_BYTES), file.stat().st_mode & 0o666)
            for file in files
        }


def write_config(folder: Path, template: ConfigTemplate) -> list[Path]:
    """Write the missing files of the configuration, and return their paths. Raise `StartFailed` on failure."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(path.suffix == ".toml" for path in template):  # this is a whole configuration, not a single kind
            (folder / "automations").mkdir(exist_ok=True)
        for path, (data, mode) in template.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() and not target.is_symlink():
                write_file(target, data, mode)
                written.append(target)
    except PermissionError:
        raise for_its_user(folder) from None
    except OSError as error:
        raise StartFailed(f"cannot write the configuration to {folder}: {error.strerror}", os.EX_CANTCREAT) from None
    return written
