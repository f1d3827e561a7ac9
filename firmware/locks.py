"""`build.py lock`: writes `runtime.lock` and `test.lock` from pyproject.toml. `build.lock` is maintained by hand."""

from __future__ import annotations

import shutil
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from firmware.checkout_venv import VENV_COMMAND, CheckoutVenv
from firmware.console import UNAVAILABLE, USAGE_ERROR, BuildFailed, say
from firmware.pip import ENTRY, run_tool

LOCK_TOOLS = ("pip==26.3", "pip-tools==7.6.2")
"""Tools whose versions affect the contents of a lock."""

EDITABLE = ("editables",)
"""Packages that `pip install --no-build-isolation -e .` needs in addition to [build-system] in pyproject.toml."""

LEFT_OUT = {
    "setuptools": "required but never imported by sanic; has 4 MB and a .pth file that runs at each start",
    "ujson": "crashes on musl before 1.2.4; sanic would import it, but works with orjson too",
    "uvloop": "it would not make a home faster, and tests and hub should use the same event loop",
    "pycparser": "only cffi's compiler needs it; argon2 needs only _cffi_backend, which is compiled",
    "bluetooth-data-tools": "aioshelly needs it only for devices over Bluetooth",
    "setproctitle": "only names processes, and the hub has only one",
}
"""Dependencies that are removed from the locks. With `--no-deps`, pip accepts that these dependencies are missing."""

LOCK_HEAD = """\
# Pinned packages with the hashes of all their wheels, for Python 3.11 to 3.14.
# Written from pyproject.toml by `python3 build.py lock`; with --upgrade it takes newer versions.
# Not closed under dependencies: see LEFT_OUT in firmware/locks.py; pip needs --no-deps.
"""


def write_locks(venv: CheckoutVenv, arguments: Sequence[str]) -> int:
    """Rewrite `runtime.lock` and `test.lock`. Without `--upgrade`, keep all versions that still satisfy the
    requirements."""
    if list(arguments) not in ([], ["--upgrade"]):
        raise BuildFailed("lock accepts only --upgrade", USAGE_ERROR)
    if sys.version_info[:2] != (3, 11):
        raise BuildFailed("lock needs Python 3.11, the oldest version in the locks", UNAVAILABLE)
    toml = tomllib.loads((venv.root / "pyproject.toml").read_text())
    runtime = toml["project"]["dependencies"]
    tests = [*toml["project"]["optional-dependencies"]["test"], *toml["build-system"]["requires"], *EDITABLE]
    with tempfile.TemporaryDirectory(prefix="lares-lock-") as name:
        folder = Path(name)
        say("fetching " + " and ".join(LOCK_TOOLS))
        run_tool([*VENV_COMMAND, str(folder / "venv")], cwd=folder)
        run_tool([f"{folder}/venv/bin/python", "-I", "-m", "pip", "install", *LOCK_TOOLS], cwd=folder)
        needed = ((venv.runtime_lock, runtime), (venv.test_lock, ["-c pins", *runtime, *tests]))
        for path, requirements in needed:
            say(f"resolving and hashing {path.relative_to(venv.root)}; this takes minutes")
            text = _compile(path, requirements, folder, upgrade=arguments)
            path.write_text(LOCK_HEAD + text)
            (folder / "pins").write_text("".join(f"{name}=={pin}\n" for name, pin in ENTRY.findall(text)))
    return 0


def _compile(path: Path, requirements: Sequence[str], folder: Path, *, upgrade: Sequence[str]) -> str:
    """Compile the requirements with pip-compile. Keep the versions in the existing lock, but upgrade the packages in
    `upgrade`."""
    (folder / "wanted").write_text("\n".join(requirements) + "\n")
    if path.exists():
        shutil.copy(path, folder / path.name)
    flags = "--quiet --no-config --generate-hashes --no-reuse-hashes --strip-extras --no-header --no-emit-options"
    hosts = "--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --pip-args=--only-binary=:all:"
    left_out = [f"--unsafe-package={name}" for name in LEFT_OUT]
    command = [f"{folder}/venv/bin/python", "-I", "-m", "piptools", "compile", *flags.split(), *hosts.split()]
    run_tool([*command, *left_out, *upgrade, "-o", path.name, "wanted"], cwd=folder)
    return _clean((folder / path.name).read_text())


def _clean(text: str) -> str:
    """Remove comments, and the names of temporary files."""
    lines = [line for line in text.splitlines() if line[:1] not in ("", "#") and not line.endswith("-c pins")]
    return "\n".join(lines).replace("-r wanted", "pyproject.toml") + "\n"
