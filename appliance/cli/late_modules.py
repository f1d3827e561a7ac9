"""Delays the import of modules that libraries import, but that the hub rarely uses, and omits unused modules.

After `delay_imports`, rarely used modules are imported only at their first use. Until then, a hub with a broker and
a polled device needs 3 MB less memory. Without the unused modules, it needs 4 MB less.
"""

from __future__ import annotations

import importlib
import sys
import typing
from collections.abc import Callable
from importlib.machinery import PathFinder
from types import ModuleType, SimpleNamespace
from typing import Any


class LateModule(ModuleType):
    """A module that is imported when one of its names is used. `given` contains names that need no import."""

    def __init__(self, name: str, **given: Any) -> None:
        super().__init__(name)
        vars(self).update(given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python looks up names like this one in every module
            raise AttributeError(name)
        return getattr(_load(self.__name__), name)


class EmptyModule(ModuleType):
    """A module in which every name is None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


def _load(name: str) -> ModuleType:
    """Import the real module, and its real parent."""
    if isinstance(sys.modules.get(name), LateModule):
        package = name.partition(".")[0]
        for each in LATE:
            if each.partition(".")[0] == package and isinstance(sys.modules.get(each), LateModule):
                sys.modules.pop(each, None)  # another thread may have removed the module in the meantime
    return importlib.import_module(name)


def _late(module: str, name: str) -> Callable[..., Any]:
    """Return a function that calls the module's function of this name."""

    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(_load(module), name)(*arguments, **named)

    return call


class _NodeVisitor:
    """Replaces `ast.NodeVisitor`, because `inspect` derives a class from it."""

    def visit(self, node: Any) -> Any:
        return _load("ast").NodeVisitor.visit(self, node)

    def generic_visit(self, node: Any) -> Any:
        return _load("ast").NodeVisitor.generic_visit(self, node)


class _HeaderRegistry:
    """Replaces `email.headerregistry.HeaderRegistry`, because the policies of `email` create instances at import."""

    _real: Any = None

    def __call__(self, name: str, value: str) -> Any:
        return self._load()(name, value)

    def __getitem__(self, name: str) -> Any:
        return self._load()[name]

    def _load(self) -> Any:
        self._real = self._real or _load("email.headerregistry").HeaderRegistry()
        return self._real


TIME_ZONE_PATHS = "/usr/share/zoneinfo:/usr/lib/zoneinfo:/usr/share/lib/zoneinfo:/etc/zoneinfo"
"""Python's usual value of `TZPATH`. The value is copied, because importing `sysconfig` takes 0.4 MB."""


def _config_var(name: str) -> Any:
    return TIME_ZONE_PATHS if name == "TZPATH" else _load("sysconfig").get_config_var(name)


def _type_var(*arguments: Any, default: Any = None, infer_variance: bool = False, **named: Any) -> Any:
    """Return a type variable. In Python 3.11, leave out the arguments that are only for type checkers."""
    return typing.TypeVar(*arguments, **named)


_TYPING = ("NotRequired", "Required", "Self", "TypeAlias", "Unpack", "get_type_hints")
_MULTIPROCESSING = ("Manager", "Pipe", "get_context", "get_start_method", "set_start_method")

LATE: dict[str, dict[str, Any]] = {
    "ast": {"NodeVisitor": _NodeVisitor, "Return": None, "parse": _late("ast", "parse")},
    "attr.validators": {},
    "bz2": {},
    "email.headerregistry": {"HeaderRegistry": _HeaderRegistry},
    "idna": {},
    "locale": {},
    "logging.config": {},
    "lzma": {},
    "multiprocessing": {
        **{name: _late("multiprocessing", name) for name in _MULTIPROCESSING},
        "__path__": getattr(PathFinder.find_spec("multiprocessing"), "submodule_search_locations", None),
        "current_process": lambda: SimpleNamespace(name="MainProcess"),  # every log record contains this name
    },
    "multiprocessing.context": {"BaseContext": None},
    "pickle": {"_Unpickler": object},
    "sysconfig": {"get_config_var": _config_var},
    "typing_extensions": {"TypeVar": _type_var, **{name: getattr(typing, name) for name in _TYPING}},
    "urllib.request": {name: _late("urllib.request", name) for name in ("getproxies", "proxy_bypass")},
}
"""The modules to delay. Each module is mapped to the names that other modules import immediately, and to a
replacement for each name."""


EMPTY = (
    "aiohttp.tracing",
    "sanic.pages.directory_page",
    "sanic.pages.error",
    "sanic.touchup.schemes",
    "sanic.worker.inspector",
    "sanic.worker.manager",
    "sanic.worker.multiplexer",
    "sanic.worker.reloader",
    "sanic.worker.serve",
    "websockets.version",
)
"""Modules that the hub never uses, and that are replaced with empty modules. Sanic's pages would import 2 MB of
libraries, Sanic's workers would import `multiprocessing`, and `websockets.version` would import
`importlib.metadata`."""


def delay_imports() -> None:
    """Replace the modules in `EMPTY` and `LATE`, unless they are imported already."""
    for name in EMPTY:
        sys.modules.setdefault(name, EmptyModule(name))
    for name, given in LATE.items():
        if name in sys.modules:
            continue
        module = sys.modules[name] = LateModule(name, **given)
        package, _, last = name.rpartition(".")
        if package in sys.stdlib_module_names and package not in LATE:
            setattr(importlib.import_module(package), last, module)
