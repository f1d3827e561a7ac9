"""Chooses the modules whose bytecode the single file contains, and compiles them."""

from __future__ import annotations

import ast
import fnmatch
import itertools
import os
import runpy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from firmware.parts import Parts
from firmware.pip import Run

DATE: int = runpy.run_path(str(Path(__file__).with_name("boot") / "lares_file.py"))["DATE"]
"""Modification date of every unpacked file. If a file has another date, it was changed. Bytecode contains the date
of its source file."""

COMPILER = Path(__file__).with_name("compile_modules.py")

HUB = (
    "appliance.cli.main",
    "appliance.cli.run",
    "appliance.lua_worker.worker_main",
    "appliance.cli.process.api_server",
    "argon2",
    "appliance.adapters.mqtt.adapter",
    "appliance.adapters.polling",
    "appliance.adapters.device_http.client",
    "aiohttp",
    "aiomqtt",
)
"""Modules that the Lua worker and a hub with MQTT and polled devices import. The file contains the bytecode of these
modules. If the hub compiled them, it would need 1.5 MB more memory afterwards."""


def compile_hub(parts: Parts, site: Path, pythons: Iterable[str], run: Run) -> None:
    """Compile `HUB` and its imports in `site` with each Python, and add the bytecode to the parts."""
    kinds = fnmatch.filter(parts.pure, "appliance/adapters/*/kind.py")
    names = imported_by(parts.pure, [*HUB, *(name[:-3].replace("/", ".") for name in kinds)])
    for python in pythons:
        magic, parts.compiled[magic] = compile_with(python, site, names, run)


def imported_by(pure: Mapping[str, bytes], roots: Iterable[str]) -> list[str]:
    """Return the files of the root modules, and of all modules that these import, directly or indirectly. Skip
    imports inside functions, and imports for type checkers."""
    files = {name.removesuffix(".py").replace("/", "."): name for name in pure if name.endswith(".py")}
    files = {module.removesuffix(".__init__"): name for module, name in files.items()}
    found: dict[str, None] = {}
    rest = [*roots][::-1]
    while rest:
        module = rest.pop()
        parent = module.rpartition(".")[0]
        if parent in files and files[parent] not in found:
            rest += [module, parent]
        elif module in files and files[module] not in found:
            found[files[module]] = None
            package = module if files[module].endswith("/__init__.py") else parent
            rest += [*_imports(ast.parse(pure[files[module]]).body, package)][::-1]
    return [*found]


def _imports(body: Iterable[ast.stmt], package: str) -> Iterator[str]:
    """Yield the modules that a module imports at import time. If a name is imported from a package, the name is
    included, because a module may have this name."""
    for each in body:
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - each.level] if each.level else []
            module = ".".join([*above, *filter(None, [each.module])])
            yield from (module, *(f"{module}.{alias.name}" for alias in each.names))
        elif isinstance(each, ast.If | ast.Try | ast.With | ast.ClassDef):
            is_for_types = isinstance(each, ast.If) and "TYPE_CHECKING" in ast.unparse(each.test)
            blocks = [[] if is_for_types else each.body]
            blocks += [getattr(each, name, []) for name in ("orelse", "finalbody")]
            blocks += [handler.body for handler in getattr(each, "handlers", ())]
            yield from _imports(itertools.chain(*blocks), package)


def compile_with(python: str, site: Path, names: Sequence[str], run: Run) -> tuple[str, dict[str, bytes]]:
    """Return this Python's magic number (hexadecimal), and its bytecode for these files in `site`. The same Python on
    another machine would compile the same bytecode."""
    for name in names:
        os.utime(site / name, (DATE, DATE))
    before = {*site.rglob("*.pyc")}
    run([python, "-I", "-S", str(COMPILER), str(site), *names], env={"LC_ALL": "C.UTF-8"})
    made = {path.relative_to(site).as_posix(): path.read_bytes() for path in {*site.rglob("*.pyc")} - before}
    return next(iter(made.values()))[:4].hex(), dict(sorted(made.items()))
