"""Runs a command of the command line, and returns the exit code."""

from __future__ import annotations

import argparse
import errno
import importlib
import importlib.machinery
import logging
import os
import platform
import signal
import sys
import warnings
from collections.abc import Callable, Sequence

from appliance.cli.late_modules import delay_imports

delay_imports()  # here, because the following modules already import some of the delayed modules

from appliance.cli.arguments import parse
from appliance.cli.log_output import discard, make_streams_safe
from appliance.cli.single_file import list_targets
from appliance.cli.terminal import say, shorten_middle, write
from appliance.errors import AccessDenied, LaresError, StartFailed
from appliance.imports import frozen_imports
from appliance.store.disk import access_remedy
from appliance.version import VERSION

SWITCH_SECS = 0.0005
"""Python's switch interval in seconds. After this time, a thread lets a waiting thread run. A low value keeps the
hub responsive during late imports."""

PRINTING_COMMANDS = frozenset({"completion", "devices", "help", "history", "log", "status", "why"})
"""Commands that only print. If a program such as `head` closes their output, they end with 0, because the program may
also close it just after the last line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; see sysexits(3)."""
    make_streams_safe()
    is_root = os.geteuid() == 0  # later, a command of root can become the owner of the home
    # Python 3.14 warns about Sanic's code when it compiles that code for the first time.
    warnings.filterwarnings("ignore", "'return' in a 'finally' block", SyntaxWarning)
    parsed = None
    try:
        parsed = parse(arguments)
        code = _version() if parsed.version else _licences() if parsed.licenses else _command(parsed)
        write("")
        return code
    except AccessDenied as error:
        return _deny(error.path, is_root=is_root)
    except StartFailed as error:
        return _fail(error, error.exit_code)
    except LaresError as error:
        return _fail(error, os.EX_CONFIG)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        discard(sys.stdout)
        only_prints = parsed is None or parsed.version or parsed.licenses or parsed.command in PRINTING_COMMANDS
        return os.EX_OK if only_prints else os.EX_IOERR
    except PermissionError as error:
        return _deny(error.filename, is_root=is_root)
    except Exception as error:
        if (failed := _describe(error)) is not None:
            return _fail(failed, failed.exit_code)
        logging.getLogger("lares").error("an internal error; please report it", exc_info=error)
        return _fail(f"failed unexpectedly: {type(error).__name__}: {error}", os.EX_SOFTWARE)


def _describe(error: Exception) -> StartFailed | None:
    """Return a sentence for the error, or None if it is an internal error."""
    if isinstance(error, MemoryError) or str(error) == "can't start new thread":  # a RuntimeError of `threading`
        return StartFailed(
            "too little memory, or too many threads; raise the limits (`ulimit -v`, `ulimit -u`), or free memory",
            os.EX_OSERR,
        )
    if not isinstance(error, OSError):
        return None
    if isinstance(error, FileNotFoundError) and error.filename is None:  # errors of os.getcwd() name no file
        return StartFailed("the working directory was deleted; change to another one (cd)", os.EX_NOINPUT)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        remedy = "raise the limit with `ulimit -n`, or with LimitNOFILE= in a systemd service"
        return StartFailed(f"the limit of open files is too low; {remedy}", os.EX_IOERR)
    if error.filename is not None:
        return StartFailed(f"{error.filename}: {error.strerror}", os.EX_IOERR)
    return None


def _deny(path: str | os.PathLike[str] | None, *, is_root: bool) -> int:
    named = "" if path is None else f": {path}; {access_remedy(path, is_root=is_root)}"
    return _fail(f"permission denied{named}", os.EX_NOPERM)


def _command(parsed: argparse.Namespace) -> int:
    """Import only the module of the command, and run the command. The default command is `run`."""
    name = {"import": "import_"}.get(parsed.command, parsed.command or "run").replace("-", "_")
    if name == "run":  # until the hub starts, a signal ends the process at once
        signal.signal(signal.SIGTERM, lambda *_: os._exit(os.EX_OK))
    with frozen_imports():
        module = importlib.import_module(f"appliance.cli.{name}")
    do: Callable[[argparse.Namespace], int] = getattr(module, name)
    sys.setswitchinterval(SWITCH_SECS)
    return do(parsed)


def _version() -> int:
    target = importlib.machinery.EXTENSION_SUFFIXES[0].strip(".").removesuffix(".so")
    say(f"lares {VERSION}", f"Python {platform.python_version()}", target)
    if held := list_targets():
        say("this file holds", *(f"  {each}" for each in held))
    return os.EX_OK


def _licences() -> int:
    code: int = importlib.import_module("appliance.cli.single_file").print_licences()
    return code


def _fail(message: object, code: int) -> int:
    first, *more = message.lines if isinstance(message, LaresError) else (str(message),)
    say(*map(shorten_middle, (f"lares: {first}", *more)), to=sys.stderr)
    return code
