"""Runs README's two commands as a newcomer would, on a copy of the checkout.

The commands run with `python3` from PATH. For a release, `build.py test` also runs with each other supported Python.
Only Python and git are on PATH. HOME and PATH are the only environment variables.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from firmware.console import end_on_sigterm, run_visible, say
from firmware.pythons import pythons

ROOT = Path(__file__).resolve().parents[1]
TESTS_FAILED = 1
"""pytest's exit code for failed tests."""

AGAIN = ("--last-failed", "--last-failed-no-failures", "none", "-n", "0")
"""Options of pytest that run the failed tests again, one after another."""


def commands() -> list[list[str]]:
    """Return README's two commands, split into words."""
    _, _, section = (ROOT / "README.md").read_text().partition("\n## Try it\n")
    block = section.partition("```sh\n")[2].partition("```")[0]
    return [line.partition("#")[0].split() for line in block.splitlines()]


class Newcomer:
    """A newcomer with a copy of the checkout, a Python, and git."""

    def __init__(self, folder: Path, python: str) -> None:
        self.checkout, links = folder / "lares", folder / "bin"
        shutil.rmtree(links, ignore_errors=True)
        links.mkdir()
        (links / "python3").symlink_to(python)
        (links / "git").symlink_to(shutil.which("git") or "/usr/bin/git")
        self.variables = {"HOME": str(Path.home()), "PATH": str(links)}
        if not self.checkout.exists():
            ours = (ROOT / ".gitignore").read_text().replace("/", "").split()
            shutil.copytree(ROOT, self.checkout, symlinks=True, ignore=shutil.ignore_patterns(*ours))

    def try_demo(self, command: list[str]) -> bool:
        """Start the demo, wait for its answer, and stop it with Ctrl-C. Return whether all steps succeeded."""
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=self.checkout, env=self.variables, stdout=pipe, text=True) as demo:
            assert demo.stdout is not None
            try:
                has_answered = False
                for line in demo.stdout:
                    say(line.rstrip())
                    if found := re.match(r"\s+REST\s+(http\S+)", line):
                        with urllib.request.urlopen(f"{found[1]}/health", timeout=30) as answer:
                            has_answered = answer.status == 200
                    if "Ctrl-C ends the demo" in line:
                        demo.send_signal(signal.SIGINT)
            except BaseException:
                demo.terminate()
                raise
        return has_answered and demo.returncode == 0

    def try_tests(self, command: list[str]) -> int:
        """Run the tests, then run the failed tests again, one after another. Return the exit code."""
        code = run_visible(command, self.checkout, self.variables)
        if code == TESTS_FAILED:
            say("newcomer: running each failed test again, alone; a test that now passes is flaky, so fix the test")
            code = run_visible([*command, *AGAIN], self.checkout, self.variables)
        return code


def main() -> int:
    """Run both commands, up to the first failure. Return the exit code."""
    demo, test = commands()
    with tempfile.TemporaryDirectory(prefix="lares-newcomer-") as folder:
        version, python = next(pythons())
        newcomer = Newcomer(Path(folder), python)
        say(f"== newcomer, Python {version}: {' '.join(demo)}")
        if not newcomer.try_demo(demo):
            say("newcomer: the demo did not answer, or did not exit cleanly")
            return 1
        say(f"== newcomer, Python {version}: {' '.join(test)}")
        if code := newcomer.try_tests(test):
            say(f"newcomer: {' '.join(test)} failed with Python {version}: exit code {code}")
            return code
        # a later run on the checkout itself can use the results of the type check
        shutil.copytree(newcomer.checkout / ".mypy_cache", ROOT / ".mypy_cache", dirs_exist_ok=True)
    return 0


if __name__ == "__main__":
    end_on_sigterm()
    sys.exit(main())
