"""Creates versions of the store that lack one precaution. Every sync and every check in the syntax tree is a
precaution."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

PACKAGE = "appliance.store"
SCRATCH = "scratch_store"
MODULES = ("disk", "file_format", "recovery", "journal", "document_files")
"""The modules of a scratch copy. Each module comes after the modules that it imports."""

SYNCS = {"sync", "sync_folder", "fsync", "fdatasync"}
CHECKED = re.compile(r"crc|length|\bseq|sequence|kind|'generation'|\.generation != |'format'\] >")
"""Words that occur in comparisons. These comparisons distinguish valid bytes from damaged bytes, or confirmed records
from other records."""


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """One precaution: its function and its source. `number` distinguishes equal precautions."""

    module: str
    function: str
    source: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.module}.{self.function}: {self.source}"


def folder() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def find_sites() -> list[Site]:
    """Return all syncs and checks in the store."""
    found: list[Site] = []
    for file in sorted(folder().glob("*.py")):
        finder = _Finder(file.stem)
        finder.visit(ast.parse(file.read_text()))
        found += finder.found
    return found


def load(mutated: Site | None = None) -> dict[str, ModuleType]:
    """Return a scratch copy of the store's modules, by name, without the precaution."""
    loaded: dict[str, ModuleType] = {SCRATCH: ModuleType(SCRATCH)}
    sys.modules[SCRATCH] = loaded[SCRATCH]
    try:
        for name in MODULES:
            module = loaded[name] = ModuleType(f"{SCRATCH}.{name}")
            sys.modules[module.__name__] = module
            setattr(loaded[SCRATCH], name, module)
            site = mutated if mutated is not None and mutated.module == name else None
            exec(_compile(name, site), module.__dict__)  # noqa: S102
    finally:
        for each in [name for name in sys.modules if name.partition(".")[0] == SCRATCH]:
            del sys.modules[each]
    return loaded


@cache
def _compile(name: str, site: Site | None) -> CodeType:
    tree: ast.Module = _Moved().visit(ast.parse((folder() / f"{name}.py").read_text()))
    if site is not None:
        mutator = _Mutator(site)
        tree = mutator.visit(tree)
        assert mutator.is_done, site
    return compile(ast.fix_missing_locations(tree), f"{SCRATCH}/{name}.py", "exec")


class _Moved(ast.NodeTransformer):
    """Redirects the imports of a module to the scratch copy."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.module is not None and node.module.startswith(PACKAGE):
            node.module = SCRATCH + node.module.removeprefix(PACKAGE)
        return node


class _Walker(ast.NodeTransformer):
    """A visitor that identifies each precaution."""

    def __init__(self, module: str) -> None:
        self.module = module
        self._path: list[str] = []
        self._seen: dict[Site, int] = {}

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return self._enter(node.name, node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self._enter(node.name, node)

    def site(self, node: ast.AST) -> Site:
        first = Site(self.module, ".".join(self._path), ast.unparse(node))
        number = self._seen.get(first, 0)
        self._seen[first] = number + 1
        return Site(first.module, first.function, first.source, number)

    def _enter(self, name: str, node: ast.AST) -> ast.AST:
        self._path.append(name)
        self.generic_visit(node)
        self._path.pop()
        return node


class _Finder(_Walker):
    def __init__(self, module: str) -> None:
        super().__init__(module)
        self.found: list[Site] = []

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if _is_sync(node):
            self.found.append(self.site(node))
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if _is_check(node):
            self.found.append(self.site(node))
        return node


class _Mutator(_Walker):
    """Removes one precaution. A removed sync is not called, and a removed check finds no fault."""

    def __init__(self, site: Site) -> None:
        super().__init__(site.module)
        self.is_done = False
        self._site = site

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if _is_sync(node) and self.site(node) == self._site:
            self.is_done = True
            return ast.Constant(None)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if _is_check(node) and self.site(node) == self._site:
            self.is_done = True
            return ast.Constant(isinstance(node.ops[0], ast.Eq))
        return node


def _is_sync(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in SYNCS


def _is_check(node: ast.Compare) -> bool:
    is_order = isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.Gt | ast.Lt | ast.LtE | ast.GtE)
    return is_order and CHECKED.search(ast.unparse(node)) is not None
