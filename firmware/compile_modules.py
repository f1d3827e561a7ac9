"""Compile modules to bytecode without docstrings, which the hub would only keep in memory.

    python compile_modules.py SITE NAME...

`build.py` runs this file with each Python of the targets. Unlike `python -OO`, it keeps assertions.
"""

from __future__ import annotations

import ast
import importlib.util
import marshal
import struct
import sys
from pathlib import Path

DOCUMENTED = ("appliance/api/routes/", "appliance/home/events.py")
"""Modules whose docstrings are part of the API's description."""


def main(site: str, *names: str) -> None:
    for name in names:
        file = Path(site, name)
        tree = ast.parse(file.read_bytes())
        if not name.startswith(DOCUMENTED):
            remove_docstrings(tree)
        bytecode = Path(importlib.util.cache_from_source(str(file)))
        bytecode.parent.mkdir(exist_ok=True)
        bytecode.write_bytes(header(file) + marshal.dumps(compile(tree, name, "exec", dont_inherit=True)))


def remove_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())) as docstring, *rest]:
                    node.body = rest or [ast.copy_location(ast.Pass(), docstring)]


def header(file: Path) -> bytes:
    """Return the first 16 bytes of the bytecode; see PEP 552."""
    status = file.stat()
    return importlib.util.MAGIC_NUMBER + struct.pack("<3I", 0, int(status.st_mtime), status.st_size & 0xFFFFFFFF)


if __name__ == "__main__":
    main(*sys.argv[1:])
