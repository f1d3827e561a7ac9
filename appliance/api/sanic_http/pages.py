"""Sanic's HTML pages for errors and folders, which the hub does not use, and which import 2 MB of libraries."""

from __future__ import annotations

import sys
from types import ModuleType


def leave_out_pages() -> None:
    """Replace the pages by None. Call this before the first import of Sanic."""
    for name, imported in (("error", ["ErrorPage"]), ("directory_page", ["DirectoryPage", "FileInfo"])):
        module = sys.modules.setdefault(f"sanic.pages.{name}", ModuleType(f"sanic.pages.{name}"))
        for each in imported:
            vars(module).setdefault(each, None)
