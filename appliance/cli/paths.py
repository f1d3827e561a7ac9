"""The paths of configuration and data, and the bundled configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from appliance.config import bundled_config
from appliance.errors import StartFailed
from appliance.store.disk import write_file
from appliance.tables.plain_files import read_plain

CONFIG_FILE = Path("config") / "default.toml"

ConfigTemplate = Mapping[Path, tuple[bytes, int]]
"""Content and mode of files, by their paths in the folder of configuration."""

STAGE = ".restore-part"
"""The ending of a folder that a restore has yet to put in place, or has replaced when it was interrupted."""

MARKER = ".restored"
"""A file in a folder of configuration that a restore has put in place; it stays until the document is in place,
too."""


class HubPaths(Struct, frozen=True, kw_only=True):
    """The paths from the command line, and the default places to search; `working_dir` is None if it was deleted."""

    config_flag: str | None
    data_flag: str | None
    environment: Mapping[str, str]
    working_dir: Path | None
    executable_dir: Path

    @staticmethod
    def of_process(config_flag: str | None, data_flag: str | None) -> HubPaths:
        """Return the paths of these flags, and of this process's environment, working directory, and executable."""
        return HubPaths(
            config_flag=config_flag,
            data_flag=data_flag,
            environment=os.environ,
            working_dir=_find_working_dir(),
            executable_dir=Path(sys.argv[0]).resolve().parent,
        )

    def find_config(self, *, is_new: bool = False) -> Path:
        """Return the path of the configuration file, which may be missing.

        Raise `StartFailed` if a named file is missing, unless the caller writes it (`is_new`).
        """
        named = self.config_flag or self.environment.get("LARES_CONFIG")
        if named:
            file = self._from_here(Path(named))
            if not file.is_file() and not (is_new and not os.path.lexists(file)):
                other = f"{file} is not a regular file" if file.exists() else f"there is no configuration file {file}"
                raise StartFailed(other, os.EX_CONFIG)
            return file
        by_systemd = self.environment.get("CONFIGURATION_DIRECTORY")
        if by_systemd:
            return Path(by_systemd.split(":")[0]) / CONFIG_FILE
        return self._first(CONFIG_FILE)

    def need_config(self) -> Path:
        """Return the configuration file; raise `StartFailed` if it is missing."""
        file = self.find_config()
        if not file.exists():
            raise StartFailed(f"there is no configuration at {file}; `lares run` writes one there", os.EX_CONFIG)
        return file

    def need_data_dir(self) -> Path:
        """Return the data directory; raise `StartFailed` if it, or a named configuration file, is missing."""
        self.find_config()
        folder = self.find_data_dir()
        if not folder.is_dir():
            raise StartFailed(f"there is no data directory {folder}; `lares run` creates it", os.EX_NOINPUT)
        return folder

    def find_data_dir(self) -> Path:
        """Return the path of the data directory, which may be missing."""
        named = self.data_flag or self.environment.get("LARES_DATA_DIR")
        if named:
            return self._from_here(Path(named))
        by_systemd = self.environment.get("STATE_DIRECTORY")
        return Path(by_systemd.split(":")[0]) if by_systemd else self._first(Path("data"))

    def _first(self, path: Path) -> Path:
        """Return the path under the working directory; if it exists only next to the executable, return that path."""
        next_to_program = self.executable_dir / path
        here = self._from_here(path)
        return next_to_program if os.access(next_to_program, os.F_OK) and not os.access(here, os.F_OK) else here

    def _from_here(self, path: Path) -> Path:
        if self.working_dir is None and not path.is_absolute():
            raise StartFailed("the working directory was deleted; change to another one (cd)", os.EX_NOINPUT)
        return path if self.working_dir is None else self.working_dir / path


def _find_working_dir() -> Path | None:
    """Return the working directory; None if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def config_folder(file: Path) -> Path:
    """Return the folder of the whole configuration; raise `StartFailed` if the file is not in a folder `config`."""
    if file.parent.name != "config":
        raise StartFailed(
            f"{file} lies in {file.parent}, which may hold more than configuration; move it to a folder named config",
            os.EX_CONFIG,
        )
    return file.parent


def find_template(config_flag: str | None) -> Path:
    """Return the folder of the initial configuration: the folder of the named file, or the bundled folder."""
    if not config_flag:
        return bundled_config()
    return config_folder(HubPaths.of_process(config_flag, None).find_config())


MAX_INITIAL_FILE_BYTES = 16 << 20
"""Bytes of one file of an initial configuration."""


RECIPES = "recipes"
"""Name of the folder of recipes; bundled recipes stay with the program."""


def read_template(source: Path) -> ConfigTemplate:
    """Return the files of the initial configuration; raise `StartFailed` if one cannot be read."""
    try:
        left_out = bundled_config() / RECIPES
        files = sorted(path for path in source.rglob("*") if path.is_file() and path.parent != left_out)
        return {
            file.relative_to(source): (read_plain(file, MAX_INITIAL_FILE_BYTES), file.stat().st_mode & 0o666)
            for file in files
        }
    except OSError as error:
        raise StartFailed(f"{error.filename} cannot be read: {error.strerror}", os.EX_NOINPUT) from None


def write_config(folder: Path, template: ConfigTemplate) -> list[Path]:
    """Write the missing files of the configuration into the folder and return them; raise `StartFailed`."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(path.suffix == ".toml" for path in template):  # A complete configuration, even without automations
            (folder / "automations").mkdir(exist_ok=True)
        for path, (data, mode) in template.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() and not target.is_symlink():
                write_file(target, data, mode)
                written.append(target)
    except OSError as error:
        raise StartFailed(f"cannot write the configuration to {folder}: {error.strerror}", os.EX_CANTCREAT) from None
    return written


def write_private(file: Path, data: bytes, name: Path | None = None) -> None:
    """Write the file with mode 0600, completely or not at all; raise `StartFailed`, which names it, if it cannot be
    written."""
    try:
        write_file(file, data)
    except OSError as error:
        raise StartFailed(f"cannot write {name or file}: {error.strerror}", os.EX_IOERR) from None


def make_data_dir(folder: Path) -> None:
    """Create the data directory if it is missing; raise `StartFailed` if that fails, or if this user cannot write to
    it.

    A directory on a card that is now read-only is enough: the store reads from it until the card is writable.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartFailed(f"cannot create the data directory {folder}: {error.strerror}", os.EX_CANTCREAT) from None
    is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
    if not is_read_only and not os.access(folder, os.W_OK | os.X_OK):
        raise StartFailed(f"the data directory {folder} cannot be written by this user", os.EX_CANTCREAT)
