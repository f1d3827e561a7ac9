#!/usr/bin/env python3
"""The one door to Lares for a fresh clone: needs Python 3.11 and nothing else; try `python3 build.py --help`."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - an older Python must read as far as this sentence
    sys.stderr.write(
        "build.py: Lares needs Python 3.11 or newer and {} is {}.{}.{}; "
        "run it with a newer one, for example `python3.11 build.py`\n".format(
            sys.executable, *sys.version_info[:3]
        )
    )
    sys.exit(69)

# Everything below runs on Python 3.11 or newer, but must stay readable for 3.6: no `match`, no `:=`.

import csv
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "lares.json"
RUNTIME_LOCK = ROOT / "firmware" / "runtime.lock"
TEST_LOCK = ROOT / "firmware" / "test.lock"

USAGE = """\
usage: python3 build.py [COMMAND]

  pyz [--target TAG ...]   make dist/lares.pyz, also without a command; with --target a smaller file for each
  demo [ARG ...]           run the hub against a simulated light and TV; ARGs go to the demo
  test [--slow] [ARG ...]  lint, types, tests; --slow adds the long proofs, ARGs go to pytest
  lock [--upgrade]         for maintainers: rewrite firmware/*.lock from pyproject.toml

pyz keeps what it fetches in build/ or, where that is set, in $BUILD_PY_CACHE or $XDG_CACHE_HOME.
demo and test first make .venv from firmware/*.lock, where it is missing, out of date or damaged.
"""

USAGE_ERROR, UNAVAILABLE, IO_ERROR = 64, 69, 74  # as in sysexits.h


class Stop(Exception):
    """Ends build.py with a sentence, an exit code, and what a tool said before."""

    def __init__(self, sentence: str, code: int, *, lines: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.code, self.lines = code, lines


# --- talking -------------------------------------------------------------------------------------


def say(text: str, *, passing: bool = False) -> None:
    """Print a line; on a terminal the next line takes the place of a passing one."""
    if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        print("\r\x1b[K" + text, end="" if passing else "\n", flush=True)
    else:
        print(text, flush=True)


def complain(sentence: str, *, lines: Sequence[str] = ()) -> None:
    """Print lines and then a sentence, in build.py's name, to standard error."""
    if sys.stdout.isatty():
        say("", passing=True)
    print(*lines, f"build.py: {sentence}", sep="\n", file=sys.stderr, flush=True)


# --- running -------------------------------------------------------------------------------------


def overheard(
    command: Sequence[str], *, hear: Callable[[str], None] = lambda line: None, **options: Any
) -> tuple[int, list[str]]:
    """Run a command silently; `hear` gets each line at once, the caller the exit code and all lines.

    It has its own process group, so that nothing of it outlives an interruption.
    """
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    lines = []
    with subprocess.Popen(command, text=True, errors="replace", process_group=0, **pipes, **options) as child:
        try:
            for line in child.stdout or ():
                lines.append(line.rstrip())
                hear(lines[-1])
            return child.wait(), lines
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            child.wait()
            raise


def seen(command: Sequence[str], env: dict[str, str]) -> int:
    """Run a command in the open and give its exit code; Ctrl-C is for the command to answer."""
    with subprocess.Popen(command, cwd=ROOT, env=env) as child:
        while child.poll() is None:
            try:
                child.wait()
            except KeyboardInterrupt:
                if not sys.stdin.isatty():  # a terminal has told the child by itself
                    child.send_signal(signal.SIGINT)
            except SystemExit:
                child.terminate()
                raise
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


# --- .venv: is it what the locks say? ------------------------------------------------------------


def digests(locks: Sequence[Path]) -> dict[str, str]:
    """The SHA-256 of each lock by its name: what .venv remembers of it."""
    return {lock.name: hashlib.sha256(lock.read_bytes()).hexdigest() for lock in locks}


def read_stamp() -> dict[str, Any]:
    """What .venv was last finished with; empty where it never was, or where nobody can read it."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) and {"locks", "packages"} <= stamp.keys() else {}


def write_stamp(locks: dict[str, str]) -> None:
    """Note, as the last act of an installation, which locks .venv holds and which packages came of them."""
    packages = sorted(str(record.parent.relative_to(VENV)) for record in VENV.glob("lib/*/*/*.dist-info/RECORD"))
    STAMP.write_text(json.dumps({"locks": locks, "packages": packages}))


def damage(packages: Sequence[str]) -> str:
    """The first installed file that is gone or was emptied, by each package's own list; else empty."""
    for package in packages:
        folder = VENV / package
        try:
            files = [(name, size) for name, _, size in csv.reader((folder / "RECORD").read_text().splitlines())]
        except (OSError, ValueError):
            files = []
        if not files:
            return folder.name
        for name, size in files:
            path = os.path.join(folder.parent, name)  # noqa: PTH118 - thousands of files at each start
            if not name.endswith(".pyc") and not whole(path, size):
                return name
    return ""


def whole(path: str, size: str) -> bool:
    """Whether a file is there, and has something in it if it should."""
    try:
        return os.stat(path).st_size > 0 or size in ("", "0")  # noqa: PTH116
    except OSError:
        return False


def same_python() -> bool:
    """Whether .venv has a Python that starts, and has this one's version and ABI."""
    tell = "import sys; print(sys.implementation.cache_tag + sys.abiflags)"
    try:
        said = subprocess.run([PYTHON, "-I", "-S", "-c", tell], capture_output=True, text=True)
    except OSError:
        return False
    return said.stdout.strip() == f"{sys.implementation.cache_tag}{sys.abiflags}"


def fault(locks: Sequence[Path]) -> str:
    """Why .venv has to be made anew before it can serve these locks; empty where it need not be."""
    if not VENV.is_dir():
        return "there is none"
    stamp = read_stamp()
    if not stamp:
        return "it was not finished"
    if not same_python():
        return "it belongs to another Python"
    changed = [name for name, now in digests(locks).items() if stamp["locks"].get(name, now) != now]
    if changed:
        return f"{changed[0]} has changed"
    lost = damage(stamp["packages"])
    return f"{lost} is damaged" if lost else ""


def lacks(lock: Path) -> bool:
    """Whether .venv, itself sound, has yet to get what a lock names."""
    return lock.name not in read_stamp().get("locks", {})


# --- .venv: make it so ---------------------------------------------------------------------------


def ensure(*locks: Path) -> None:
    """Make .venv hold what the last lock names, which contains those before it; quick where it does."""
    if not fault(locks) and not lacks(locks[-1]):
        return
    with turn() as held:
        started = time.monotonic()
        reason = fault(locks)
        if reason:
            make(reason, held)
        if reason or lacks(locks[-1]):
            STAMP.unlink(missing_ok=True)
            installed = digests(locks)
            install(locks[-1], held)
            write_stamp(installed)
            say(f".venv is ready after {time.monotonic() - started:.0f} s")


@contextmanager
def turn() -> Iterator[int]:
    """Wait until no other build.py works on .venv; who inherits the handle works on it too."""
    with Path(__file__).open("r+b") as file:  # NFS locks only what is open for writing
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build.py that works on .venv")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def make(reason: str, held: int) -> None:
    """Put a new, empty .venv in the place of any old one."""
    check_venv()
    say(f"making .venv with Python {version()} ({reason})")
    STAMP.unlink(missing_ok=True)
    if VENV.is_symlink():
        VENV.unlink()
    if VENV.exists():
        shutil.rmtree(VENV)
    code, lines = overheard(venv_command(VENV), pass_fds=[held])
    if code:
        raise Stop(f"{sys.executable} could not make .venv", UNAVAILABLE, lines=readable(lines))


def venv_command(folder: Path) -> list[str]:
    """How to make a virtual environment, also when build.py itself runs in the one that it replaces."""
    return [getattr(sys, "_base_executable", "") or sys.executable, "-I", "-m", "venv", str(folder)]


def check_venv() -> None:
    """Stop where Python came without the part that makes virtual environments."""
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        raise Stop(no_venv(), UNAVAILABLE)


def no_venv() -> str:
    """What to do there."""
    package = f"python3.{sys.version_info.minor}-venv"
    return (
        f"{sys.executable} has no `venv` and `ensurepip` to make .venv with: install them "
        f"(Debian, Ubuntu, Raspberry Pi OS: `sudo apt install python3-venv`, or `{package}`) and run this again"
    )


def version() -> str:
    """This Python's version, as people write it."""
    return ".".join(str(part) for part in sys.version_info[:3])


ENTRY = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)", re.MULTILINE)
REACHED = re.compile(
    r"(?:Collecting |Processing \S*/)(?P<name>\w[\w.-]*?)(?:==|-)(?P<version>\d[^\s-]*)|Requirement already|Ignoring "
)


def install(lock: Path, held: int) -> None:
    """Let pip put into .venv what the lock names, telling how far it is."""
    total = len(ENTRY.findall(lock.read_text()))
    say(f"installing the {total} packages of {lock.relative_to(ROOT)}")
    count = 0

    def hear(line: str) -> None:
        nonlocal count
        reached = REACHED.match(line)
        if reached:
            count += 1
            if reached["name"]:
                say(f"[{count}/{total}] {reached['name']} {reached['version']}", passing=True)
        elif line.startswith("Installing collected packages"):
            say(f"[{total}/{total}] all here, unpacking", passing=True)
        elif line.startswith("WARNING: Retrying"):
            say(f"[{count}/{total}] no answer from the package index yet, trying again", passing=True)

    code, lines = overheard(pip_command(lock), hear=hear, pass_fds=[held], env={**os.environ, "PIP_USER": "0"})
    if code:
        raise Stop(advice(lines), UNAVAILABLE, lines=readable(lines))


def pip_command(lock: Path) -> list[str]:
    """The pip call that installs exactly the files that a lock names, and never runs a package's own build."""
    flags = "--no-deps --require-hashes --only-binary=:all: --no-input --progress-bar=off --disable-pip-version-check"
    return [str(PYTHON), "-I", "-m", "pip", "install", *flags.split(), "-r", str(lock)]


ADVICE = (
    ("No space left", "the disk is full: make room and run this again"),
    (
        "Retrying|Connection|timed out|Temporary failure|SSLError|ProxyError|certificate",
        "the package index cannot be reached: check the network (a proxy?) and run this again",
    ),
    (
        "No matching distribution|Could not find a version|not a supported wheel",
        "a package has no wheel for Python {version} on this machine: "
        "run this with Python 3.11 to 3.14 on a 64-bit system",
    ),
    (
        "DO NOT MATCH THE HASHES",
        "a file is not the one that the lock names, so it was not used: "
        "run this again with Python 3.11 to 3.14, without a proxy or mirror that changes files",
    ),
    ("", "pip failed, see above; run this again"),
)


def advice(lines: Sequence[str]) -> str:
    """What to do about a pip that failed with these lines."""
    text = "\n".join(lines)
    return next(sentence for pattern, sentence in ADVICE if re.search(pattern, text)).format(version=version())


def readable(lines: Sequence[str]) -> list[str]:
    """The last lines worth reading, without the hosts and folders that pip was told to look in."""
    progress = r"(Collecting|Processing|Requirement already|  Downloading|  Using) "
    noise = re.compile(rf"\s*$|Looking in |WARNING: (Location|Url) |\[notice|{progress}")
    secret = re.compile(r"\w+://\S+|(?<=host=)'[^']*'|(?<=Retrying) \(Retry\([^)]*\)\)")
    return [secret.sub("(...)", line) for line in lines if not noise.match(line)][-8:]


# --- the single file -----------------------------------------------------------------------------


def pyz(args: Sequence[str]) -> int:
    """Make the single file for all targets, or one for each that is named."""
    tags = list(args[1::2])
    if len(args) % 2 or any(word != "--target" for word in args[::2]):
        raise Stop("pyz takes --target TAG, more than once if you like, and nothing else", USAGE_ERROR)
    sys.path.insert(0, str(ROOT))
    from firmware import pack, parts, wheels

    check_venv()
    started = time.monotonic()
    workshop = pack.Workshop(root=ROOT, run=run_tool, say=say, venv=venv_command(Path())[:-1])
    try:
        files = workshop.build(tags)
    except KeyError as unknown:
        raise Stop(f"there is no target {unknown}; firmware/targets.toml names them", USAGE_ERROR) from None
    except (wheels.Untrue, parts.Unfit) as fault:
        raise Stop(str(fault), IO_ERROR) from None
    for file in files:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        say(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1e6:.1f} MB, sha256 {digest}")
    say(f"build.py: made in {time.monotonic() - started:.0f} s")
    return 0


def run_tool(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run one of the tools that make the single file, or stop with what it said last."""
    code, lines = overheard(command, cwd=ROOT, env={**environment, "PIP_USER": "0"})
    if code:
        raise Stop(advice(lines), UNAVAILABLE, lines=readable(lines))


# --- commands ------------------------------------------------------------------------------------


def demo(args: Sequence[str]) -> int:
    """Become the hub's demo, of this checkout whatever folder one stands in; never returns."""
    ensure(RUNTIME_LOCK)
    command = [str(PYTHON), "-P", "-m", "appliance", "demo", *args]
    os.execve(PYTHON, command, {**os.environ, "PYTHONPATH": str(ROOT)})


def test(args: Sequence[str]) -> int:
    """Check style, types and behaviour, in this order, up to the first that fails."""
    ensure(RUNTIME_LOCK, TEST_LOCK)
    started = time.monotonic()
    speed = ["-m", "not musl" if "--slow" in args else "not slow"]
    with tempfile.TemporaryDirectory(prefix="lares-test-") as folder:
        tally = Path(folder) / "passed"
        step("lint", ["ruff", "check"])
        step("types", ["mypy"])
        several = ["-n", str(os.cpu_count() or 1), "--dist", "worksteal"]
        pytest = ["pytest", "-p", "build", *several, *speed, *(arg for arg in args if arg != "--slow")]
        step("tests", pytest, tally=tally)
        passed = tally.read_text() if tally.exists() else "0"
    say(f"build.py: lint, types and {passed} tests passed in {time.monotonic() - started:.1f} s")
    return 0


def step(name: str, command: Sequence[str], *, tally: Path | None = None) -> None:
    """Run one of the checks under its heading, in an environment that says nothing to the hub."""
    say(f"== {name}: {shlex.join(command)}")
    started = time.monotonic()
    code = seen([str(PYTHON), "-m", *command], {**outside(), "BUILD_PY_TALLY": str(tally)} if tally else outside())
    took = f"{time.monotonic() - started:.1f} s"
    if code:
        raise Stop(f"{name} failed with exit code {code} after {took}", code)
    if tally is None:  # pytest tells its own time, in the line that should be the last
        say(f"   {name} passed in {took}")


def outside() -> dict[str, str]:
    """The environment without what would configure the hub."""
    ours = ("LARES_", "CONFIGURATION_DIRECTORY", "STATE_DIRECTORY")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Leave the number of passed tests for `test`, which gives build.py to pytest as a plugin."""
    tally = os.environ.get("BUILD_PY_TALLY")
    if tally:
        Path(tally).write_text(str(len(terminalreporter.stats.get("passed", ()))))


# --- the locks -----------------------------------------------------------------------------------

LOCK_TOOLS = ("pip==26.3", "pip-tools==7.6.2")  # they decide what a lock looks like

# Needed by `pip install --no-build-isolation -e .`, beside pyproject's own [build-system].
EDITABLE = ("editables",)

# Named as dependencies, but better not there; `--no-deps` makes pip content without them.
LEFT_OUT = {
    "setuptools": "sanic requires it and never imports it; 4 MB and a .pth file that runs at each start",
    "ujson": "crashes on musl before 1.2.4, and sanic imports it wherever it finds it; orjson does its work",
    "uvloop": "no gain at a home's load, and tests and hub shall share one event loop",
    "pycparser": "only for cffi's compiler; argon2 needs the compiled _cffi_backend alone",
    "setproctitle": "the hub has one process and can name it by itself",
}

LOCK_HEAD = """\
# Pinned packages with the hashes of all their wheels, for Python 3.11 to 3.14.
# Written from pyproject.toml by `python3 build.py lock`; with --upgrade it takes newer versions.
# Not closed under dependencies: see LEFT_OUT in build.py; pip needs --no-deps.
"""


def lock(args: Sequence[str]) -> int:
    """Rewrite both locks from pyproject.toml; versions stay where they still fit, unless asked to upgrade."""
    if list(args) not in ([], ["--upgrade"]):
        raise Stop("lock takes --upgrade and nothing else", USAGE_ERROR)
    if sys.version_info[:2] != (3, 11):
        raise Stop("lock needs Python 3.11, the oldest that the locks are for", UNAVAILABLE)
    toml = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = toml["project"]["dependencies"]
    tests = [*toml["project"]["optional-dependencies"]["test"], *toml["build-system"]["requires"], *EDITABLE]
    with tempfile.TemporaryDirectory(prefix="lares-lock-") as name:
        folder = Path(name)
        say("fetching " + " and ".join(LOCK_TOOLS))
        tool(venv_command(folder / "venv"), folder)
        tool([f"{folder}/venv/bin/python", "-I", "-m", "pip", "install", *LOCK_TOOLS], folder)
        for path, requirements in ((RUNTIME_LOCK, runtime), (TEST_LOCK, ["-c pins", *runtime, *tests])):
            say(f"resolving and hashing {path.relative_to(ROOT)}; this takes minutes")
            text = compiled(path, requirements, folder, upgrade=args)
            path.write_text(LOCK_HEAD + text)
            (folder / "pins").write_text("".join(f"{name}=={pin}\n" for name, pin in ENTRY.findall(text)))
    return 0


def compiled(path: Path, requirements: Sequence[str], folder: Path, *, upgrade: Sequence[str]) -> str:
    """What pip-compile makes of the requirements, keeping to the versions of the lock that lies there."""
    (folder / "wanted").write_text("\n".join(requirements) + "\n")
    if path.exists():
        shutil.copy(path, folder / path.name)
    flags = "--quiet --no-config --generate-hashes --no-reuse-hashes --strip-extras --no-header --no-emit-options"
    hosts = "--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --pip-args=--only-binary=:all:"
    left_out = [f"--unsafe-package={name}" for name in LEFT_OUT]
    command = [f"{folder}/venv/bin/python", "-I", "-m", "piptools", "compile", *flags.split(), *hosts.split()]
    tool([*command, *left_out, *upgrade, "-o", path.name, "wanted"], folder)
    return cleaned((folder / path.name).read_text())


def cleaned(text: str) -> str:
    """What pip-compile wrote, without its own remarks and without the names of our temporary files."""
    lines = [line for line in text.splitlines() if line[:1] not in ("", "#") and not line.endswith("-c pins")]
    return "\n".join(lines).replace("-r wanted", "pyproject.toml") + "\n"


def tool(command: Sequence[str], folder: Path) -> None:
    """Run one of the lock's tools, or stop with what it said last."""
    code, lines = overheard(command, cwd=folder)
    if code:
        raise Stop(advice(lines), UNAVAILABLE, lines=readable(lines))


# --- the door ------------------------------------------------------------------------------------

COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {"pyz": pyz, "demo": demo, "test": test, "lock": lock}


def main(argv: Sequence[str]) -> int:
    """Run the command that the arguments name; gives the exit code."""
    if argv and argv[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    argv = argv or ["pyz"]
    if argv[0] not in COMMANDS:
        print(USAGE, end="", file=sys.stderr)
        return USAGE_ERROR
    try:
        return COMMANDS[argv[0]](argv[1:])
    except Stop as stop:
        complain(str(stop), lines=stop.lines)
        return stop.code
    except OSError as error:
        complain(str(error))
        return IO_ERROR
    except KeyboardInterrupt:
        complain("interrupted; run this again, it mends what is unfinished")
        return 128 + signal.SIGINT


def terminated(*_: object) -> None:
    """End in order on SIGTERM, together with the command that runs."""
    raise SystemExit(128 + signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminated)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
