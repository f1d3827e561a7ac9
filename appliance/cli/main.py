"""The command line: which commands there are, and what becomes of their failures."""

from __future__ import annotations

import argparse
import importlib.machinery
import logging
import os
import platform
import sys
from collections.abc import Sequence
from typing import NoReturn

from appliance.errors import LaresError, StartFailed
from appliance.version import VERSION

COMMANDS = ("run", "demo", "check")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments ask; the exit code, one of sysexits(3)."""
    asked = list(sys.argv[1:] if arguments is None else arguments)
    if "--version" in asked[:1]:
        print(_version())
        return os.EX_OK
    parsed = _parser().parse_args(_with_command(asked))
    try:
        return _command(parsed)
    except StartFailed as error:
        return _fail(error, error.exit_code)
    except LaresError as error:
        return _fail(error, os.EX_CONFIG)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return os.EX_IOERR
    except Exception as error:
        logging.getLogger("lares").debug("failed", exc_info=error)
        return _fail(f"failed unexpectedly: {type(error).__name__}: {error}", os.EX_SOFTWARE)


def _command(parsed: argparse.Namespace) -> int:
    """Import what the command needs, and only that, and do it."""
    match parsed.command:
        case "demo":
            from appliance.cli.demo import demo

            return demo(parsed)
        case "check":
            from appliance.cli.check import check

            return check(parsed)
        case _:
            from appliance.cli.run import run

            return run(parsed)


class _Parser(argparse.ArgumentParser):
    """A parser whose failures have the exit code for wrong usage."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and how it is meant, and exit."""
        self.print_usage(sys.stderr)
        self.exit(os.EX_USAGE, f"lares: {message}\n")


def _parser() -> argparse.ArgumentParser:
    common = _Parser(add_help=False)
    common.add_argument("--config", metavar="FILE", help="the configuration file")
    common.add_argument("--data-dir", metavar="DIR", help="the folder of the hub's own state")
    parser = _Parser(prog="lares", description="A home hub in one file.", parents=[common])
    parser.add_argument("--version", action="store_true", help="print version, Python and platform")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    commands.add_parser("run", parents=[common], help="run the hub (also without a command)")
    demo = commands.add_parser("demo", parents=[common], help="run a hub with a simulated light and TV")
    demo.add_argument("--port", type=_port, metavar="N", help="the port on 127.0.0.1 (3000, or a free one)")
    commands.add_parser("check", parents=[common], help="list every fault of the configuration")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535, not {text!r}")
    return int(text)


def _with_command(asked: list[str]) -> list[str]:
    """`lares --config FILE` means `lares run --config FILE`."""
    is_for_run = not asked or (asked[0].startswith("-") and asked[0] not in ("-h", "--help"))
    return ["run", *asked] if is_for_run else asked


def _version() -> str:
    target = importlib.machinery.EXTENSION_SUFFIXES[0].strip(".").removesuffix(".so")
    return f"lares {VERSION}\nPython {platform.python_version()}\n{target}"


def _fail(message: object, code: int) -> int:
    print(f"lares: {message}", file=sys.stderr)
    return code
