"""Scripts: the modules that `require` finds, inside one folder and nowhere else."""

from __future__ import annotations

import errno
import itertools
import re
from contextlib import suppress
from pathlib import Path

from appliance.errors import Invalid
from appliance.lua import source
from appliance.lua.source import Source
from appliance.tables.checks import nearest

MAX_FILES_SEARCHED = 200

_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\Z")
_CIRCLE = "is a link that leads back to itself"


class Scripts:
    """The folder of scripts, known to people as `name`. Without a folder every search says that scripts are off."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self._folder = folder
        self._name = name

    def load(self, module: str) -> Source:
        """Read the script that `require(module)` means; raises `Invalid`. Reads a file: not for the event loop."""
        if self._folder is None:
            raise Invalid(f"require '{module[:100]}': scripts are disabled (scripts.enabled in the configuration)")
        if _NAME.match(module) is None or len(module) > 200:
            raise Invalid(
                f"require '{module[:100]}': a name is words of letters, digits, _ and -, with dots between them"
            )
        path = module.replace(".", "/") + ".lua"
        name = f"{self._name}/{path}"
        try:
            file = (self._folder / path).resolve(strict=True)
            if not file.is_relative_to(self._folder.resolve()):
                raise Invalid(f"leads out of {self._name}")
            if not file.is_file():
                raise Invalid("is not a file")
            return source.load(file, name)
        except FileNotFoundError:
            raise Invalid(f"module '{module}' not found: there is no {name}{self._nearest(module)}") from None
        except OSError as error:
            reason = _CIRCLE if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        except RuntimeError:  # what Python before 3.13 raises for a circle of links
            reason = _CIRCLE
        except Invalid as error:
            reason = str(error)
        raise Invalid(f"module '{module}': {name} {reason}")

    def _nearest(self, module: str) -> str:
        """The end of the sentence where a script has almost that name."""
        folder = self._folder or Path()
        names: list[str] = []
        with suppress(OSError):
            files = itertools.islice(folder.rglob("*.lua"), MAX_FILES_SEARCHED)
            names = [".".join(file.relative_to(folder).with_suffix("").parts) for file in files]
        near = nearest(module, names)
        return "" if near is None else f"; did you mean {near}"
