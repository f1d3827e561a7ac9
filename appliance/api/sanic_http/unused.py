"""Modules of libraries that the hub does not use, but whose imports take memory and time."""

from __future__ import annotations

import sys
from types import ModuleType

UNUSED = {
    "sanic.pages.error": ("ErrorPage",),
    "sanic.pages.directory_page": ("DirectoryPage", "FileInfo"),
    "websockets.version": ("version",),
}
"""The imported names of each module. The pages import libraries of 2 MB, the version imports `importlib.metadata`."""


def leave_out_unused() -> None:
    """Replace the modules by empty ones. Call this before the first import of Sanic."""
    for name, imported in UNUSED.items():
        module = sys.modules.setdefault(name, ModuleType(name))
        for each in imported:
            vars(module).setdefault(each, None)
