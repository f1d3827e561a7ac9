"""build.py keeps .venv equal to the lock files, and reports each fault in one sentence."""

import ast
import fcntl
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import build
from firmware import locks, newcomer, pip, pythons, skips
from firmware.checkout_venv import CheckoutVenv, digests
from firmware.checks import processes
from tests.fakes.rows import each_row

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
BARE_PYTHON: str = getattr(sys, "_base_executable", sys.executable)
RUNTIME_TEXT = "one==1.0 \\\n    --hash=sha256:00\n"
TEST_TEXT = RUNTIME_TEXT + "two==2.0 \\\n    --hash=sha256:00\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Provide a folder with build.py, its modules, and two small lock files."""
    shutil.copy(ROOT / "build.py", tmp_path)
    (tmp_path / "firmware").mkdir()
    for module in (ROOT / "firmware").glob("*.py"):
        shutil.copy(module, tmp_path / "firmware")
    shutil.copytree(ROOT / "firmware" / "boot", tmp_path / "firmware" / "boot")
    (tmp_path / "firmware" / "runtime.lock").write_text(RUNTIME_TEXT)
    (tmp_path / "firmware" / "test.lock").write_text(TEST_TEXT)
    return tmp_path


@pytest.fixture
def venv(clone: Path) -> CheckoutVenv:
    return CheckoutVenv(clone)


@pytest.fixture
def package(clone: Path) -> Path:
    """Create a .venv without a stamp. One package with two files is installed. Return the folder `site-packages`."""
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
    site = clone / ".venv" / "lib" / "python3" / "site-packages"
    (site / "one").mkdir(parents=True)
    (site / "one" / "__init__.py").write_text("x = 1\n")
    (site / "one" / "empty.py").touch()
    (site / "one-1.0.dist-info").mkdir()
    record = ("one/__init__.py,sha256=x,6", "one/empty.py,sha256=y,0", "one/a.pyc,,", "one-1.0.dist-info/RECORD,,")
    (site / "one-1.0.dist-info" / "RECORD").write_text("\n".join(record))
    return site


def run(clone: Path, *args: str, python: str = BARE_PYTHON, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the clone's build.py like a user."""
    command = [python, str(clone / "build.py"), *args]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, timeout=60)


@contextmanager
def start(clone: Path, *args: str, **env: str) -> "Iterator[subprocess.Popen[str]]":
    """Start the clone's build.py from another folder. Standard output and standard error go to one pipe. If the
    process does not end, kill it."""
    command = [BARE_PYTHON, str(clone / "build.py"), *args]
    variables, pipe = {**os.environ, **env}, subprocess.PIPE
    with subprocess.Popen(
        command, text=True, cwd=ROOT, env=variables, stdout=pipe, stderr=subprocess.STDOUT
    ) as process:
        try:
            yield process
            process.wait(60)
        finally:
            process.kill()


def fake_python(clone: Path, script: str) -> None:
    """Replace .venv's Python with a shell script that answers `-c` like a Python."""
    path = clone / ".venv" / "bin" / "python"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(f'#!/bin/sh\ncase "$*" in *" -c "*) exec {sys.executable} "$@";; esac\n{script}\n')
    path.chmod(0o755)


@pytest.mark.parametrize("args", [["nonsense"], ["--slow"]])
def test_a_usage_error_exits_64_and_shows_the_usage_on_stderr(clone: Path, args: list[str]) -> None:
    done = run(clone, *args)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("usage: python3 build.py [COMMAND]")


def test_lock_takes_only_upgrade(clone: Path) -> None:
    done = run(clone, "lock", "--everything")
    assert done.returncode == 64
    assert done.stderr == "build.py: lock accepts only --upgrade\n"


def test_without_a_command_the_single_file_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Sequence[str]] = []

    def pyz(args: Sequence[str]) -> int:
        called.append(args)
        return 0

    monkeypatch.setitem(build.COMMANDS, "pyz", pyz)
    assert build.main([]) == build.main(["pyz", "--target", "x"]) == 0
    assert called == [[], ["--target", "x"]]


@pytest.mark.parametrize("args", [["--all"], ["--target"], ["--target", "a", "b"]])
def test_pyz_accepts_only_targets(clone: Path, args: list[str]) -> None:
    done = run(clone, "pyz", *args)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr == "build.py: pyz accepts only --target TAG, once or more\n"


def test_an_unknown_target_is_refused_before_any_download() -> None:
    done = run(ROOT, "pyz", "--target", "cpython-310-mips-linux-musl")
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr == ("build.py: unknown target 'cpython-310-mips-linux-musl'; see firmware/targets.toml\n")


def test_only_an_unknown_target_is_reported_as_such(clone: Path) -> None:
    (clone / "firmware" / "targets.toml").write_text("pythons = []\n")
    done = run(clone, "pyz")
    assert done.returncode == 1 and done.stderr.endswith("KeyError: 'gnu'\n")
    assert "unknown target" not in done.stderr


def test_an_old_python_gets_one_sentence(clone: Path) -> None:
    pretend = "import sys, runpy; sys.version_info = (3, 9, 18, 'final', 0); runpy.run_path(sys.argv[1])"
    command = [sys.executable, "-c", pretend, str(clone / "build.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (69, "")
    assert re.fullmatch(r"build\.py: Lares needs Python 3\.11 or newer, but \S+ is 3\.9\.18; .+\n", done.stderr)


def test_an_old_python_can_parse_the_check() -> None:
    ast.parse((ROOT / "build.py").read_text(), feature_version=(3, 6))


def test_a_python_without_ensurepip_gets_the_package_to_install(clone: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    stdlib = home / sys.platlibdir / f"python3.{sys.version_info.minor}"
    stdlib.mkdir(parents=True)
    for entry in Path(sysconfig.get_path("stdlib")).iterdir():
        if entry.name not in ("ensurepip", "site-packages"):
            (stdlib / entry.name).symlink_to(entry)
    done = run(clone, "demo", PYTHONHOME=str(home))
    assert done.returncode == 69
    assert done.stderr.count("\n") == 1
    assert "`sudo apt install python3-venv`" in done.stderr
    assert f"python3.{sys.version_info.minor}-venv" in done.stderr
    assert not (clone / ".venv").exists()


def test_a_finished_venv_is_complete(venv: CheckoutVenv, package: Path) -> None:
    both = (venv.runtime_lock, venv.test_lock)
    venv.write_stamp(digests(both))
    assert venv.find_fault(both) == ""
    assert venv.find_fault(both[:1]) == ""
    assert [venv.is_missing(lock) for lock in both] == [False, False]


def test_the_demos_venv_is_extended_for_the_tests(venv: CheckoutVenv, package: Path) -> None:
    both = (venv.runtime_lock, venv.test_lock)
    venv.write_stamp(digests(both[:1]))
    assert venv.find_fault(both) == ""
    assert [venv.is_missing(lock) for lock in both] == [False, True]


def test_a_missing_venv_is_a_fault(venv: CheckoutVenv) -> None:
    assert venv.find_fault((venv.runtime_lock,)) == "the folder does not exist"


@pytest.mark.parametrize("text", [None, "", '{"locks": {"run', "[]", "{}"])
def test_an_incomplete_stamp_is_a_fault(venv: CheckoutVenv, package: Path, text: str | None) -> None:
    if text is not None:
        venv.stamp.write_text(text)
    assert venv.find_fault((venv.runtime_lock,)) == "the installation was not finished"


def test_a_changed_lock_is_an_error_if_it_is_needed(venv: CheckoutVenv, package: Path) -> None:
    both = (venv.runtime_lock, venv.test_lock)
    venv.write_stamp(digests(both))
    venv.test_lock.write_text("two==2.1\n")
    assert venv.find_fault(both) == "test.lock has changed"
    assert venv.find_fault(both[:1]) == ""


def empty(path: Path) -> None:
    """Empty a file, as a power cut may do."""
    path.write_text("")


def cut(path: Path) -> None:
    """Truncate a file, as an interrupted write may do."""
    path.write_text(path.read_text()[:-2])


@pytest.mark.parametrize(
    ("name", "harm", "expected"),
    [
        ("one/__init__.py", Path.unlink, "one/__init__.py is damaged"),
        ("one/__init__.py", empty, "one/__init__.py is damaged"),
        ("one/empty.py", Path.unlink, "one/empty.py is damaged"),
        ("one-1.0.dist-info", shutil.rmtree, "one-1.0.dist-info is damaged"),
        ("one-1.0.dist-info/RECORD", empty, "one-1.0.dist-info is damaged"),
        ("one-1.0.dist-info/RECORD", cut, "one-1.0.dist-info is damaged"),
        ("one", shutil.rmtree, "one/__init__.py is damaged"),
    ],
)
def test_a_missing_file_is_a_fault(
    venv: CheckoutVenv, package: Path, name: str, harm: Callable[[Path], Any], expected: str
) -> None:
    venv.write_stamp(digests((venv.runtime_lock,)))
    harm(package / name)
    assert venv.find_fault((venv.runtime_lock,)) == expected


@pytest.mark.parametrize("script", ["echo cpython-310", "exit 127"])
def test_another_or_a_broken_python_is_a_fault(venv: CheckoutVenv, package: Path, script: str) -> None:
    venv.write_stamp(digests((venv.runtime_lock,)))
    venv.python.unlink()
    venv.python.write_text(f"#!/bin/sh\n{script}\n")
    venv.python.chmod(0o755)
    assert venv.find_fault((venv.runtime_lock,)) == "the environment belongs to another Python"


def test_an_updated_python_through_a_link_is_an_error(venv: CheckoutVenv, package: Path) -> None:
    venv.write_stamp(digests((venv.runtime_lock,)))
    stamp = json.loads(venv.stamp.read_text())
    venv.stamp.write_text(json.dumps({**stamp, "python": "cpython-310"}))
    assert venv.find_fault((venv.runtime_lock,)) == "the environment belongs to another Python"


def test_a_vanished_python_is_a_fault(venv: CheckoutVenv, package: Path) -> None:
    venv.write_stamp(digests((venv.runtime_lock,)))
    venv.python.unlink()
    assert venv.find_fault((venv.runtime_lock,)) == "the environment belongs to another Python"


PIP = """
echo "WARNING: Location 'file:///secret/folder' is ignored: it is neither a file nor a directory."
echo 'Requirement already satisfied: one==1.0 in ./.venv (from -r firmware/test.lock (line 1))'
echo 'Collecting two==2.0 (from -r firmware/test.lock (line 3))'
"""


def test_installing_shows_each_package_and_hides_other_output_of_pip(
    clone: Path, venv: CheckoutVenv, capfd: pytest.CaptureFixture[str]
) -> None:
    fake_python(clone, f"{PIP}\necho 'Installing collected packages: two'")
    with (clone / "held").open("w") as held:
        venv.install(venv.test_lock, held.fileno())
    assert capfd.readouterr().out.splitlines() == [
        "installing the 2 packages of firmware/test.lock",
        "[2/2] two 2.0",
        "[2/2] all packages are here; unpacking",
    ]


def test_a_failed_installation_shows_the_reason(clone: Path, venv: CheckoutVenv, package: Path) -> None:
    venv.write_stamp(digests((venv.runtime_lock,)))
    fake_python(clone, f"{PIP}\necho 'ERROR: [Errno 28] No space left on device'; exit 1")
    done = run(clone, "test")
    assert done.returncode == 69
    assert done.stderr.splitlines() == [
        "ERROR: [Errno 28] No space left on device",
        "build.py: the disk is full; delete some files and run this again",
    ]
    assert "secret" not in done.stdout
    assert not venv.stamp.exists()


@each_row(
    ("line", "advice"),
    [
        ("WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError(...)'", "the network"),
        ("ERROR: No matching distribution found for orjson==3.13.0", "has no wheel for Python"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "differs from the lock's hash"),
        ("ERROR: something new", "pip failed; read the message above"),
    ],
)
def test_each_failure_has_a_remedy(line: str, advice: str) -> None:
    assert advice in pip.advice(["Looking in indexes: (...)", line])


@each_row(
    ("line", "shown"),
    [
        ("Looking in links: /opt/somewhere", []),
        ("WARNING: Location 'file:///x' is ignored", []),
        ("    one==1.0 from https://host.example/one.whl (line 1)", ["    one==1.0 from (...) (line 1)"]),
        ("SSLError(HTTPSPool(host='host.example', port=443))", ["SSLError(HTTPSPool(host=(...), port=443))"]),
    ],
)
def test_messages_of_pip_are_shown_without_hosts_and_folders(line: str, shown: list[str]) -> None:
    assert pip.readable([line]) == shown


def test_a_second_build_waits_and_can_be_interrupted(clone: Path) -> None:
    with (clone / "build.py").open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with start(clone, "demo") as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "waiting until another build.py has finished its work on .venv\n"
            second.send_signal(signal.SIGINT)
            assert second.stdout.read() == "build.py: interrupted; run this again to finish\n"
        assert second.returncode == 130
    assert not (clone / ".venv").exists()


def test_a_ready_venv_needs_no_waiting(clone: Path, venv: CheckoutVenv, package: Path) -> None:
    venv.write_stamp(digests((venv.runtime_lock,)))
    with (clone / "build.py").open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        venv.ensure(venv.runtime_lock)


DEMO = """
import sys, time
try:
    print("demo", sys.argv[1:], flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("ended in order", flush=True)
    sys.exit(7)
"""


def test_the_demo_replaces_the_process_of_build_py(clone: Path, venv: CheckoutVenv, package: Path) -> None:
    venv.write_stamp(digests((venv.runtime_lock,)))
    (clone / "appliance").mkdir()
    (clone / "appliance" / "__main__.py").write_text(DEMO)
    with start(clone, "demo", "--port", "0") as hub:
        assert hub.stdout is not None
        assert hub.stdout.readline() == "demo ['demo', '--port', '0']\n"
        hub.send_signal(signal.SIGINT)
        assert hub.stdout.read() == "ended in order\n"
    assert hub.returncode == 7


def checked(clone: Path, venv: CheckoutVenv, script: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `build.py test`. The tools in .venv only print their arguments."""
    venv.write_stamp(digests((venv.runtime_lock, venv.test_lock)))
    fake_python(clone, f'echo "called $*"\ncase "$(export -p)" in *LARES_*) export -p;; esac\n{script}')
    return run(clone, "test", *args, **env)


FORMAT = "ruff format --check --quiet"


def several() -> str:
    """Return pytest's arguments for using every core."""
    return f"-p firmware.skips -n {processes()} --dist worksteal"


def calls(output: str) -> Sequence[str]:
    return re.findall(r"^called -m (.*)$", output, re.MULTILINE)


@pytest.mark.parametrize(("tally", "message"), [("", ""), ("3 proofs need chromium", "; 3 proofs need chromium")])
def test_test_runs_lint_types_and_tests_in_this_order(
    clone: Path, venv: CheckoutVenv, package: Path, tally: str, message: str
) -> None:
    done = checked(
        clone,
        venv,
        f'case "$2" in pytest) printf "12\\n{tally}" > "$BUILD_PY_TALLY"; esac',
        "-x",
        LARES_PORT="1",
    )
    assert done.returncode == 0
    assert calls(done.stdout) == ["ruff check", FORMAT, "mypy", f"pytest {several()} -m not slow -x"]
    assert "LARES_PORT" not in done.stdout
    last = rf"build\.py: lint, types and 12 tests passed in \d+\.\d s{message}"
    assert re.fullmatch(last, done.stdout.splitlines()[-1])


def test_the_option_slow_is_not_passed_to_pytest(clone: Path, venv: CheckoutVenv, package: Path) -> None:
    done = checked(clone, venv, "true", "tests/api", "--slow")
    assert calls(done.stdout)[-1] == f"pytest {several()} -m not musl and not box and not release tests/api"


def test_test_stops_at_the_first_failure_with_its_code(clone: Path, venv: CheckoutVenv, package: Path) -> None:
    done = checked(clone, venv, 'case "$2" in mypy) exit 3; esac')
    assert (done.returncode, calls(done.stdout)) == (3, ["ruff check", FORMAT, "mypy"])
    assert re.fullmatch(r"build\.py: types failed with exit code 3 after \d+\.\d s\n", done.stderr)


def test_a_tool_that_dies_of_a_signal_is_a_failure(clone: Path, venv: CheckoutVenv, package: Path) -> None:
    assert checked(clone, venv, "kill -SEGV $$").returncode == 128 + signal.SIGSEGV


def test_pytest_leaves_the_number_of_passed_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUILD_PY_TALLY", str(tmp_path / "tally"))
    skips.pytest_terminal_summary(SimpleNamespace(stats={"passed": [1, 2], "failed": [3]}))
    assert (tmp_path / "tally").read_text() == "2\n"


def entries(name: str) -> dict[str, list[str]]:
    """Return each pin of a lock with its lines."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "firmware" / name).read_text().splitlines():
        if line[0] not in " #":
            found[line.removesuffix(" \\")] = []
        elif line[0] == " ":
            found[list(found)[-1]].append(line)
    return found


def pins(name: str) -> dict[str, str]:
    """Return the version of each package that a lock pins."""
    pairs = (entry.partition(" ;")[0].split("==") for entry in entries(name))
    return {canonicalize_name(package): version for package, version in pairs}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@each_row("name", ["runtime.lock", "test.lock", "build.lock"])
def test_every_entry_of_a_lock_is_pinned_and_hashed(name: str) -> None:
    for entry, lines in entries(name).items():
        assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*==[\w.]+( ; .+)?", entry)
        hashes = [line for line in lines if re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line)]
        assert hashes, entry
        notes = [line for line in lines if line not in hashes]
        assert all(re.fullmatch(r"    # (via|(via|  ) ?[a-z0-9.-]+)", line) for line in notes)


@each_row("name", ["runtime.lock", "test.lock", "build.lock"])
def test_a_lock_names_no_host_and_no_folder(name: str) -> None:
    text = (ROOT / "firmware" / name).read_text()
    assert not re.search(r"://|file:|--(extra-)?index|--find-links|--trusted|/(tmp|opt|root|home)/", text)


@each_row("name", ["runtime.lock", "test.lock", "build.lock"])
def test_no_lock_contains_an_excluded_package(name: str) -> None:
    left_out = {"setuptools", "ujson", "uvloop", "pycparser", "setproctitle", "bluetooth-data-tools"}
    assert left_out == locks.LEFT_OUT.keys()
    assert not locks.LEFT_OUT.keys() & pins(name).keys()


def test_the_locks_contain_the_dependencies_of_pyproject() -> None:
    toml = project()
    runtime = toml["project"]["dependencies"]
    extra = toml["project"]["optional-dependencies"]["test"] + toml["build-system"]["requires"] + [*locks.EDITABLE]
    for name, required in (("runtime.lock", runtime), ("test.lock", runtime + extra)):
        held = pins(name)
        for requirement in map(Requirement, required):
            assert requirement.specifier.contains(held[canonicalize_name(requirement.name)]), f"{name}: {requirement}"


def test_the_test_lock_contains_the_runtime_lock() -> None:
    runtime, test = entries("runtime.lock"), entries("test.lock")
    for entry, lines in runtime.items():
        hashes = [line.strip(" \\") for line in lines if "--hash" in line]
        assert hashes == [line.strip(" \\") for line in test[entry] if "--hash" in line]


def test_ci_begins_with_the_readmes_commands_and_ends_with_the_slow_tests() -> None:
    script = ROOT / ".ci" / "run"
    text = script.read_text()
    assert os.access(script, os.X_OK)
    assert text.index("\npython3 -m firmware.newcomer\n") < text.index("install_missing")
    assert text.index("install_missing\n") < text.index('(python3 build.py test -m "slow and not ')
    assert newcomer.commands() == [["python3", "build.py", "demo"], ["python3", "build.py", "test"]]


def test_each_version_of_python_is_found_once_and_an_unusable_one_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = {
        "bin/python3": f'exec {sys.executable} "$@"',
        "bin/python3.11": "echo 'ModuleNotFoundError: No module named ensurepip' >&2; exit 1",
        "bin/python3.12": "echo of a sitecustomize; echo 3.12.3 /twelve",
        "pyenv/versions/3.11.9/bin/python3": "echo broken",
        "pyenv/versions/3.12.1/bin/python3": "echo 3.12.1 /another",
        "pyenv/versions/3.14.0/bin/python3": "echo 3.14.0rc1 /fourteen",
        "pyenv/versions/3.8.1/bin/python3": "echo 3.8.1 /eight",
        "bin/python3.13": "echo 'pyenv: python3.13: command not found' >&2; exit 127",
    }
    for name, script in message.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    own = platform.python_version()
    found = dict(pythons.pythons())
    assert Path(found.pop(own)).samefile(os.path.realpath(sys.executable))
    assert found == {
        version: path
        for version, path in {"3.12.3": "/twelve", "3.14.0rc1": "/fourteen"}.items()
        if version.split(".")[1] != own.split(".")[1]
    }
    assert f"{tmp_path}/bin/python3.11 lacks ensurepip, so it is skipped" in capsys.readouterr().out


def test_a_skipped_test_fails_unless_its_reason_is_allowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "nginx").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(skips, "FOLDERS", ())
    skipped = [
        ("tests/a.py", "Skipped: only root mounts filesystems"),
        ("tests/b.py", f"Skipped: {skips.needs('chromium')}"),
        ("tests/c.py", f"Skipped: {skips.needs('nginx')}"),
        ("tests/d.py", f"Skipped: {skips.needs('emacs')}"),
        ("tests/e.py", "Skipped: not today"),
        ("tests/f.py", f"Skipped: {skips.needs('mosquitto')}"),
        ("tests/g.py", f"Skipped: {skips.needs('mosquitto')}"),
    ]
    assert [each.partition(":")[0] for each in skips.unlisted(skipped)] == ["tests/c.py", "tests/d.py", "tests/e.py"]
    assert skips.summary(skipped) == "2 proofs need mosquitto, 1 chromium"
    assert skips.summary(skipped[:3]) == "1 proof needs chromium" and skips.summary(skipped[2:5]) == ""


@pytest.mark.parametrize(
    ("reason", "fails", "code"),
    [("not today", False, skips.SKIPPED), ("not today", True, skips.SKIPPED), ("only root may", False, 0)],
)
def test_an_unlisted_skip_fails_the_run(tmp_path: Path, reason: str, fails: bool, code: int) -> None:
    text = (
        f'import pytest\n\ndef test_it():\n    pytest.skip("{reason}")\n\ndef test_other():\n    assert not {fails}\n'
    )
    (tmp_path / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "firmware.skips", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--rootdir", tmp_path, "-c", os.devnull, tmp_path / "test_it.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout
    assert ("firmware/skips.py does not list" in done.stdout) == bool(code)


def plant(folder: Path) -> None:
    """Create a project with one test, and with the settings, locks, and build.py of this project."""
    shutil.copytree(ROOT / "firmware", folder / "firmware")
    for name in ("build.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    (folder / "README.md").touch()
    for name in project()["tool"]["mypy"]["files"]:
        if not (folder / name).exists():
            (folder / name).mkdir()
            (folder / name / "__init__.py").write_text('"""Small."""\n')
    (folder / "tests" / "test_small.py").write_text('"""Small."""\n\n\ndef test_small() -> None:\n    assert True\n')


@pytest.mark.release
def test_a_fresh_clone_survives_a_killed_installation_and_passes(tmp_path: Path) -> None:
    plant(tmp_path)
    with start(tmp_path, "test") as killed:
        assert killed.stdout is not None
        for line in killed.stdout:
            if "unpacking" in line:
                break
        killed.kill()
    assert not (tmp_path / ".venv" / "lares.json").exists()
    with start(tmp_path, "test") as second:
        assert second.stdout is not None
        output = second.stdout.read()
    if "the package index cannot be reached" in output:
        pytest.skip("needs a network, to install packages from nothing")
    assert second.returncode == 0, output
    assert "making .venv with Python" in output and "(the installation was not finished)" in output
    assert re.search(r"\n=+ 1 passed in .*\nbuild\.py: lint, types and 1 tests passed in [\d.]+ s\n\Z", output)
    assert set(json.loads((tmp_path / ".venv" / "lares.json").read_text())["locks"]) == {"runtime.lock", "test.lock"}
