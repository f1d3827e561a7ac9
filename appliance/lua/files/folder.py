"""Folders of Lua files, and the modules that `require` finds in a folder."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from appliance.errors import Fault, Invalid
from appliance.lua.running.stopped_scripts import StoppedScripts
from appliance.lua.text.source import Source, load
from appliance.settings import LuaFolder, ScriptsSettings, Sections
from appliance.tables.checks import nearest, suggest

MAX_FOLDER_BYTES = 16 << 20
"""Maximum total size of the files in a folder."""

MAX_MODULES_LISTED = 200

MAX_UNREAD = 20
"""Maximum number of warnings about unread files per folder."""

_MODULE = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_WIDE = "is UTF-16, or not text; save it as UTF-8"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CIRCLE = "is a link that leads back to itself"


class Contents(Struct, frozen=True, kw_only=True):
    """The readable files of a folder by name, and the faults of unreadable files. `unread` contains warnings about
    ignored files that look like Lua."""

    sources: tuple[Source, ...]
    faults: tuple[Fault, ...]
    is_missing: bool = False
    unread: tuple[Fault, ...] = ()


class Folder(Struct, frozen=True, kw_only=True):
    """A folder of Lua files. Messages contain `name`. If `is_deep` is true, the folder includes its subfolders.

    `unsaved` is the text of a file in this folder. It is used instead of the file on disk, which may be missing.
    """

    path: Path
    name: str
    is_deep: bool = False
    unsaved: Source | None = None

    def read(self) -> Contents:
        """Read every `*.lua` file except hidden files. This method blocks."""
        sources: list[Source] = []
        faults: list[Fault] = []
        unread: list[Path] = []
        try:
            paths = self._walk(faults, unread)
        except FileNotFoundError:
            return Contents(sources=(), faults=(), is_missing=True)
        left = MAX_FOLDER_BYTES
        for path in paths:
            name = self._name_of(path)
            try:
                source = self._load(path, name)
                if source is not None and (left := left - len(source.text)) < 0:
                    total = f"more than {MAX_FOLDER_BYTES >> 20} MiB in total"
                    raise Invalid(f"is ignored, because the files in {self.name} have {total}")
                sources += [source] if source is not None else []
            except OSError as error:
                faults.append(Fault(name, 0, f"cannot be read: {error.strerror}"))
            except UnicodeDecodeError as error:
                line = error.object.count(b"\n", 0, error.start) + 1
                is_wide = error.object.startswith(_UTF_16_MARKS) or b"\0" in error.object
                message = _WIDE if is_wide else "is not UTF-8 text; save it as UTF-8"
                faults.append(Fault(name, 1 if is_wide else line, message))
            except Invalid as error:
                faults.append(Fault(name, 0, str(error)))
        warnings = [Fault(self._name_of(path), 0, _why_unread(path)) for path in sorted(unread)[:MAX_UNREAD]]
        return Contents(sources=tuple(sources), faults=tuple(faults), unread=tuple(warnings))

    def with_unsaved(self, source: Source | None) -> Folder:
        """Return the folder with this unsaved text. If the text belongs to another folder, return the same folder."""
        is_inside = source is not None and source.name.startswith(f"{self.name}/")
        return replace(self, unsaved=source) if is_inside else self

    def has_room(self, added_bytes: int) -> bool:
        """Return whether the folder can have this number of further bytes. If it cannot, a reload would ignore some
        of its files. This method blocks."""
        try:
            total = sum((self.path / path).lstat().st_size for path in self._walk([], []))
        except OSError:
            return True  # the folder is missing, changing, or unreadable
        return total + added_bytes <= MAX_FOLDER_BYTES

    def contains(self, file: Path) -> bool:
        """Return whether the file is inside the folder after all links are followed."""
        return file.resolve().is_relative_to(self.path.resolve())

    def list_modules(self) -> list[str]:
        """Return at most `MAX_MODULES_LISTED` names for `require`. Return an empty list if the folder is
        unreadable."""
        with suppress(OSError):
            return [".".join(path.with_suffix("").parts) for path in self._walk([], [])[:MAX_MODULES_LISTED]]
        return []

    def find_unsaved(self, path: str | Path) -> Source | None:
        """Return the unsaved text of the file with this relative path, if any."""
        return self.unsaved if self.unsaved is not None and self._path_of(self.unsaved) == Path(path) else None

    def _path_of(self, source: Source) -> Path:
        return Path(source.name.removeprefix(f"{self.name}/"))

    def _walk(self, faults: list[Fault], unread: list[Path]) -> list[Path]:
        """Return the relative paths of all Lua files. Add a fault for each unreadable folder to `faults`, and a
        warning for each ignored file that looks like Lua to `unread`."""
        folders = [Path()]
        files = set() if self.unsaved is None else {self._path_of(self.unsaved)}
        while folders:
            folder = folders.pop()
            is_read = self.is_deep or folder == Path()
            for entry in self._scan(folder, faults if is_read else []):
                if entry.is_dir(follow_symlinks=False):
                    folders += [folder / entry.name] if self.is_deep or len(unread) < MAX_UNREAD else []
                elif is_read and entry.name.endswith(".lua"):
                    files.add(folder / entry.name)
                elif looks_like_lua(entry.name):
                    unread.append(folder / entry.name)
        return sorted(files, key=os.fspath)

    def _scan(self, folder: Path, faults: list[Fault]) -> list[os.DirEntry[str]]:
        """Return the visible entries of the folder. Raise `FileNotFoundError` if the top folder is missing, unless
        there is an unsaved file."""
        try:
            with os.scandir(self.path / folder) as entries:
                return [entry for entry in entries if not entry.name.startswith(".")]
        except OSError as error:
            if folder == Path() and isinstance(error, FileNotFoundError):
                if self.unsaved is None:
                    raise
                return []
            faults.append(Fault(self._name_of(folder), 0, f"the folder cannot be read: {error.strerror}"))
            return []

    def _name_of(self, path: Path) -> str:
        return os.fsencode(Path(self.name, path)).decode(errors="backslashreplace")

    def _load(self, path: Path, name: str) -> Source | None:
        """Return the file, or None for a folder. Raise `Invalid`, `OSError`, or `UnicodeDecodeError` if the file is
        unusable."""
        if (source := self.find_unsaved(path)) is None:
            file = self.path / path
            mode = file.stat().st_mode
            if stat.S_ISDIR(mode):
                return None
            if not stat.S_ISREG(mode):
                raise Invalid("is not a file")
            if self.is_deep and not self.contains(file):
                raise Invalid("is a link to a file outside the folder, so `require` cannot load it")
            source = load(file, name)
        source.text.decode()
        return _without_nul(source)


def _without_nul(source: Source) -> Source:
    """Return the source. Raise `Invalid` if it contains NUL, which a text in UTF-8 never does."""
    if b"\0" in source.text:
        raise Invalid(_WIDE)
    return source


def load_module(scripts: Folder | None, module: str) -> Source:
    """Read the script for `require(module)`. Raise `Invalid` if the script is missing. This function blocks."""
    if scripts is None:
        raise Invalid(f"require '{module[:100]}': scripts are disabled (scripts.enabled in the configuration)")
    if _MODULE.fullmatch(module) is None or len(module) > 200:
        raise Invalid(
            f"require '{module[:100]}': a module name consists of words separated by dots; "
            "a word has letters, digits, _ and -"
        )
    path = module.replace(".", "/") + ".lua"
    name = f"{scripts.name}/{path}"
    try:
        if (unsaved := scripts.find_unsaved(path)) is not None:
            return _without_nul(unsaved)
        file = (scripts.path / path).resolve(strict=True)
        if not scripts.contains(file):
            raise Invalid(f"is a link to a file outside {scripts.name}")
        if not file.is_file():
            raise Invalid("is not a file")
        return _without_nul(load(file, name))
    except FileNotFoundError:
        near = nearest(module, scripts.list_modules())
        raise Invalid(f"module '{module}' not found: there is no {name}{suggest(near)}") from None
    except OSError as error:
        reason = _CIRCLE if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
    except RuntimeError:  # before 3.13, Python raises this error for a loop of links
        reason = _CIRCLE
    except Invalid as error:
        reason = str(error)
    raise Invalid(f"module '{module}': {name} {reason}")


def answer_require(
    scripts: Folder | None, module: bytes, files: list[Source], stopped: StoppedScripts | None = None
) -> tuple[bytes, ...]:
    """Return the parts of the answer to `require`, and add the module to `files`. The answer for a stopped script is
    an error. The function reads a file and blocks."""
    try:
        script = load_module(scripts, module.decode(errors="replace"))
        if stopped is not None and (refusal := stopped.refusal_of(script)) is not None:
            raise Invalid(refusal)
    except Invalid as error:
        return b"", str(error).encode(errors="replace")
    if script not in files:  # a script whose earlier `require` failed is already in `files`
        files.append(script)
    return b"1", script.chunk, script.name.encode()


def modules_of(scripts: Folder | None, contents: Contents) -> dict[str, Source]:
    """Return the files of the scripts folder by module name. For an unreadable file or folder, the text is empty.
    The module name of the scripts folder itself is empty."""
    prefix = "" if scripts is None else f"{scripts.name}/"
    sources = [*(Source(name=each.file, text=b"") for each in contents.faults), *contents.sources]
    names = (f"{each.name}/".removeprefix(prefix).removesuffix("/").removesuffix(".lua") for each in sources)
    return {name.replace("/", "."): each for name, each in zip(names, sources, strict=True)}


def looks_like_lua(name: str) -> bool:
    """Return whether a name such as `x.LUA` or `x.lua.txt` probably belongs to a Lua file. A backup such as
    `x.lua~` is not treated as a Lua file."""
    return ".lua" in name.lower() and not name.startswith(".") and not name.endswith(("~", ".part"))


def _why_unread(path: Path) -> str:
    if not path.name.endswith(".lua"):
        return "this file is ignored, because its name does not end in .lua; rename it"
    return "this file is ignored; move it out of the subfolder"


def find_stray(config: Path) -> list[Fault]:
    """Return a warning for each Lua file that is directly in the configuration's folder, because the hub ignores
    Lua files there."""
    try:
        names = sorted(each.name for each in config.iterdir() if looks_like_lua(each.name) and each.is_file())
    except OSError:
        return []
    message = "this file is ignored; move it into automations, scenes, scripts, or adapters"
    return [Fault(f"{config.absolute().name}/{name}", 0, message) for name in names[:MAX_UNREAD]]


async def read_folder(folder: Folder | None) -> Contents:
    """Read the folder on a thread. Return empty contents if `folder` is None."""
    return Contents(sources=(), faults=()) if folder is None else await asyncio.to_thread(folder.read)


def folder_of(section: LuaFolder, root: Path, unsaved: Source | None = None) -> Folder | None:
    """Return the folder of the section with the unsaved text, or None if the section is disabled. Only `[scripts]`
    has subfolders."""
    if not section.enabled:
        return None
    is_deep, name = isinstance(section, ScriptsSettings), section.directory.rstrip("/")
    return Folder(path=root / section.directory, name=name, is_deep=is_deep).with_unsaved(unsaved)


def folders_of(sections: Sections, root: Path) -> list[Folder]:
    """Return the enabled folders of scenes, automations, and scripts."""
    folders = (folder_of(each, root) for each in (sections.scenes, sections.automations, sections.scripts))
    return [each for each in folders if each is not None]
