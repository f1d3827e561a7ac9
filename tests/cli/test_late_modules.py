"""Modules that a hub rarely uses are imported at their first use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

START = """
import sys
import appliance.cli.main, appliance.cli.run, appliance.cli.process.serve
import appliance.cli.process.api_server
import appliance.adapters.mqtt.adapter, appliance.adapters.polling
from appliance.cli.late_modules import LATE, LateModule
"""
"""The imports of `lares run` with a broker and a polled device."""

USES = {
    "ast": "import ast; assert ast.literal_eval('[1]') == [1]",
    "ast.NodeVisitor": "import inspect; assert 'class Flag' in inspect.getsource(__import__('enum').Flag)",
    "attr.validators": "import attr; assert attr.validators.instance_of(int)",
    "bz2": "import bz2; assert bz2.decompress(bz2.compress(b'x')) == b'x'",
    "email.headerregistry": "from email.message import EmailMessage; m = EmailMessage(); m['To'] = 'a <b@c>'; "
    "assert m['To'].addresses[0].username == 'b'; from email.headerregistry import Address; assert Address",
    "idna": "import yarl; assert yarl.URL('http://b\xfccher.example').raw_host.startswith('xn--')",
    "locale": "import locale; assert locale.getlocale()",
    "logging.config": "import logging.config; logging.config.dictConfig({'version': 1})",
    "lzma": "import shutil, lzma; assert lzma.decompress(lzma.compress(b'x')) == b'x'",
    "multiprocessing": "import multiprocessing, multiprocessing.queues; assert multiprocessing.Pipe()",
    "multiprocessing.context": "from multiprocessing.context import BaseContext; assert BaseContext or True; "
    "from multiprocessing.context import SpawnContext; assert SpawnContext",
    "pickle": "import pickle; assert pickle.loads(pickle.dumps([1])) == [1]; assert pickle._Unpickler",
    "sysconfig": "import sysconfig; assert sysconfig.get_config_var('prefix') and sysconfig.get_paths()",
    "typing_extensions": "import typing_extensions; assert typing_extensions.TypedDict; "
    "from typing_extensions import TypeVar, override; assert TypeVar('T', default=int) and override",
    "urllib.request": "import urllib.request; assert urllib.request.getproxies() is not None; "
    "from urllib.request import Request; assert Request",
}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", START + code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_start_imports_no_late_module() -> None:
    code = "print([each for each in LATE if not isinstance(sys.modules.get(each), LateModule)])"
    assert run(code) == "[]\n"


@pytest.mark.slow
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_the_first_use_imports_the_module(use: str) -> None:
    run(use)


@pytest.mark.slow
def test_time_zones_are_found_without_python_s_settings() -> None:
    assert run("import zoneinfo; print('/usr/share/zoneinfo' in zoneinfo.TZPATH)") == "True\n"
