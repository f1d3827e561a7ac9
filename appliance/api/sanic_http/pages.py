"""Sanic's own pages, for errors and folders: the hub shows none, and they import 2 MB of libraries for HTML."""

from __future__ import annotations

import sys
from types import ModuleType


def leave_out_pages() -> None:
    """Have Sanic import its pages as None. Call this before the first import of Sanic."""
    for name, imported in (("error", ["ErrorPage"]), ("directory_page", ["DirectoryPage", "FileInfo"])):
        module = sys.modules.setdefault(f"sanic.pages.{name}", ModuleType(f"sanic.pages.{name}"))
        for each in imported:
            vars(module).setdefault(each, None)
