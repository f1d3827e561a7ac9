"""Modules of libraries that the hub does not use. Importing them would take memory and time."""

from __future__ import annotations

import sys
from types import ModuleType

UNUSED = {
    "sanic.pages.error": ("ErrorPage",),
    "sanic.pages.directory_page": ("DirectoryPage", "FileInfo"),
    "websockets.version": ("version",),
}
"""The names that are imported from each module. Sanic's pages would import libraries of 2 MB, and the version would
import `importlib.metadata`."""


def stub_unused() -> None:
    """Replace the modules by empty modules. Call this function before the first import of Sanic."""
    for name, imported in UNUSED.items():
        module = sys.modules.setdefault(name, ModuleType(name))
        for each in imported:
            vars(module).setdefault(each, None)
