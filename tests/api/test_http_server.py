"""The page about internals of Sanic and other libraries: the installed versions contain all names on the page, the
listed files use these names, and the listed tests exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import logging
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from sanic.http import Http
from sanic.server import HttpProtocol

from appliance.api.http_server.application import Application
from appliance.api.http_server.connection import Connection
from appliance.api.http_server.http1 import StrictHttp1
from tests.fakes.app import open_app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "appliance" / "api" / "http_server" / "README.md"
USE = r"relied on|`[\w.]+`, \w+"
ROWS = re.findall(
    rf"^\| `([\w.]+):([\w.]+)` \| ({USE}) \| .* \| `(tests/[\w/]+\.py)::(\w+)` \|$", PAGE.read_text(), re.MULTILINE
)
STATE = re.findall(
    r"^\| ((?:`Http(?:Protocol)?\.\w+`(?:, )?)+) \| (`.*\.py`) \| .* \|$", PAGE.read_text(), re.MULTILINE
)
"""The names and the files of each row in the table of state."""

HOLDERS = {
    "connection.py": {"self", "self.http", "http1_of(request)"},
    "http1.py": {"self", "self.protocol"},
    "websocket_protocol.py": {"http1"},
    "../body.py": {"http1"},
}
"""The expressions for objects of Sanic's classes `Http` and `HttpProtocol`, by file."""

IMPORTS = """
import sys
import appliance.cli.main
import appliance.cli.process.serve
assert "sanic" not in sys.modules
import appliance.cli.process.api_server
print({"html5tagger", "tracerite", "importlib.metadata", "multiprocessing.util"} & sys.modules.keys())
"""
"""The imports of `lares run`, in their order."""


def test_every_name_on_the_page_and_its_test_exist() -> None:
    assert len(ROWS) + len(STATE) == PAGE.read_text().count("\n| `")
    for module, name, _, file, test in ROWS:
        found: Any = importlib.import_module(module)
        *parts, last = name.split(".")
        for part in parts:
            found = getattr(found, part)
        is_set = isinstance(found, type) and f"self.{last} = " in inspect.getsource(found)
        assert is_set or hasattr(found, last), f"{module}:{name} no longer exists"
        assert f"def {test}(" in (ROOT / file).read_text(), f"there is no {file}::{test}"


def test_every_override_is_on_the_page() -> None:
    listed = {name.rsplit(".", 1)[-1] for _, name, *_ in ROWS}
    for kind in (Application, Connection, StrictHttp1):
        parents = {name for base in kind.__mro__[1:-1] for name in vars(base)}
        overridden = {name for name in vars(kind) if name in parents and not name.startswith("__")}
        assert overridden - {"HTTP_CLASS", "_abc_impl"} <= listed, kind


def test_the_named_file_uses_the_name() -> None:
    for _, name, use, *_ in ROWS:
        file, comma, how = use.replace("`", "").partition(", ")
        if comma:
            [path] = [each for each in (PAGE.parent / file, PAGE.parents[1] / file) if each.is_file()]
            is_defined = f"def {name.rsplit('.', 1)[-1]}(" in path.read_text()
            assert is_defined == (how in ("overridden", "extended", "replaced")), f"{file}: {name} is not {how}"
            assert name.rsplit(".", 1)[-1] in path.read_text(), f"{file} does not mention {name}"


def test_the_used_state_of_sanic_is_on_the_page() -> None:
    kinds = {
        kind.__name__: {name for base in kind.__mro__[:-1] for name in vars(base)} for kind in (HttpProtocol, Http)
    }
    listed = {
        (file, *name.split(".")) for names, files in STATE for file in each_of(files) for name in each_of(names)
    }
    assert [(kind, name) for _, kind, name in listed if name not in kinds[kind]] == []
    searched = set.union(*kinds.values()) - {name.rsplit(".", 1)[-1] for _, name, *_ in ROWS}
    used = {
        (file, node.attr)
        for file, holders in HOLDERS.items()
        for node in ast.walk(ast.parse((PAGE.parent / file).read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in holders and node.attr in searched
    }
    assert used == {(file, name) for file, _, name in listed}


def each_of(cell: str) -> list[str]:
    """Return the names in backticks."""
    return re.findall("`(.+?)`", cell)


def test_sanic_is_pinned_to_the_documented_version() -> None:
    assert f'"sanic=={version("sanic")}"' in (ROOT / "pyproject.toml").read_text()


def test_the_pages_of_sanic_are_not_imported() -> None:
    shown = subprocess.run([sys.executable, "-c", IMPORTS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


async def test_a_start_logs_nothing_of_sanic(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_app(adapters={}):
        pass
    sentence = [each.getMessage() for each in caplog.records] + [*capfd.readouterr()]
    assert not [each for each in sentence if "PRODUCTION" in each or "Sanic is running" in each]
