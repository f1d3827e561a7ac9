"""The page about internals of Sanic and other libraries: the installed versions contain all names on the page, the
listed files use these names, and the listed tests exist."""

from __future__ import annotations

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
    assert len(ROWS) == PAGE.read_text().count("\n| `")
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
