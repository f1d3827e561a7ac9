"""The paths of the configuration and the data directory."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from appliance.errors import StartFailed
from appliance.store.disk import Disk, for_its_user
from appliance.store.file_format import generations_of
from appliance.store.lock import LOCK

CONFIG_FILE = Path("config") / "default.toml"


class HubPaths(Struct, frozen=True, kw_only=True):
    """The paths from the command line, and the default folders. `working_dir` is None if that folder was deleted."""

    config_flag: str | None
    data_flag: str | None
    environment: Mapping[str, str]
    working_dir: Path | None
    executable_dir: Path

    @staticmethod
    def of_process(arguments: argparse.Namespace) -> HubPaths:
        return HubPaths(
            config_flag=arguments.config,
            data_flag=arguments.data_dir,
            environment=os.environ,
            working_dir=_find_working_dir(),
            executable_dir=Path(sys.argv[0]).resolve().parent,
        )

    def find_config(self, *, is_new: bool = False) -> Path:
        """Return the path of the configuration file, which may be missing.

        If the file is a link without a target, raise `StartFailed`. If a named file is missing, raise `StartFailed`,
        unless the caller writes it (`is_new`).
        """
        file = self._find_config(is_new)
        if file.is_symlink() and not file.exists():
            raise StartFailed(_no_config(file), os.EX_CONFIG)
        return file

    def _find_config(self, is_new: bool) -> Path:
        named = self._find_named_config()
        if named is not None:
            if not is_new or os.path.lexists(named):
                self.check_named_config()
            return named
        by_systemd = self.environment.get("CONFIGURATION_DIRECTORY")
        if by_systemd:
            return Path(by_systemd.split(":")[0]) / CONFIG_FILE
        return self._first(CONFIG_FILE)

    def check_named_config(self) -> None:
        """If the command line or the environment names a configuration file, raise `StartFailed` if it is missing."""
        file = self._find_named_config()
        if file is not None and not file.is_file():
            other = f"{file} is not a regular file" if file.exists() else _no_config(file)
            raise StartFailed(other, os.EX_CONFIG)

    def _find_named_config(self) -> Path | None:
        named = self.config_flag or self.environment.get("LARES_CONFIG")
        return self._from_here(Path(named)) if named else None

    def need_config(self) -> Path:
        """Return the configuration file. Raise `StartFailed` if the file is missing."""
        file = self.find_config()
        if not file.exists():
            raise StartFailed(f"{_no_config(file)}; `lares run` writes it", os.EX_CONFIG)
        return file

    def need_data_dir(self) -> Path:
        """Return the data directory. Raise `StartFailed` if the data directory is missing, or if a named
        configuration file is missing."""
        self.check_named_config()
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
        """Return the path in the working directory. If the path exists only next to the executable, return that
        path."""
        next_to_program = self.executable_dir / path
        here = self._from_here(path)
        return next_to_program if os.access(next_to_program, os.F_OK) and not os.access(here, os.F_OK) else here

    def _from_here(self, path: Path) -> Path:
        if self.working_dir is None and not path.is_absolute():
            raise StartFailed("the working directory was deleted; change to another one (cd)", os.EX_NOINPUT)
        return path if self.working_dir is None else self.working_dir / path


def _no_config(file: Path) -> str:
    if file.is_symlink():
        return f"{file} is a link to a missing file; restore that file, or remove the link"
    return f"there is no configuration file {file}"


def _find_working_dir() -> Path | None:
    """Return the working directory, or None if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def config_folder(file: Path) -> Path:
    """Return the configuration folder. Raise `StartFailed` if the file is not in a folder named `config`."""
    if file.parent.name != "config":
        raise StartFailed(
            f"{file} is in {file.parent}; move it to a folder named config",
            os.EX_CONFIG,
        )
    return file.parent


def check_store(data_dir: Path) -> None:
    """Raise `StartFailed` if this user can read the data directory, and it has no store."""
    is_readable = os.access(data_dir, os.R_OK | os.X_OK, effective_ids=True)
    if is_readable and not (generations_of(Disk(data_dir).list_names()) or (data_dir / LOCK).exists()):
        raise StartFailed(f"there is no store in {data_dir}; `lares run` creates it", os.EX_NOINPUT)


def make_data_dir(folder: Path) -> None:
    """Create the data directory if it is missing. Raise `StartFailed` if that fails, or if this user cannot write
    there (`AccessDenied`). A directory on a read-only card is accepted, because the store can read from it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except PermissionError:
        raise for_its_user(folder) from None
    except FileExistsError as error:
        raise StartFailed(
            f"cannot create the data directory {folder}: {error.filename} is not a directory; rename it, or name "
            "another folder",
            os.EX_CANTCREAT,
        ) from None
    except OSError as error:
        raise StartFailed(f"cannot create the data directory {folder}: {error.strerror}", os.EX_CANTCREAT) from None
    is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
    if not is_read_only and not os.access(folder, os.W_OK | os.X_OK):
        raise for_its_user(folder)
