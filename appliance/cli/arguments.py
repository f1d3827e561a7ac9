"""The arguments of all commands."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from appliance.api.simulation import MAX_SIMULATED_HOURS
from appliance.cli.completion import SHELLS, PathText
from appliance.cli.help import EXAMPLES, subcommands
from appliance.cli.log_output import one_line
from appliance.cli.terminal import shorten_middle, write
from appliance.errors import StartFailed
from appliance.log_buffer import LOG_LEVELS, MAX_LOG_ENTRIES
from appliance.tables.checks import nearest, suggest

_UNKNOWN_COMMAND = re.compile(r"argument COMMAND: invalid choice: '?(?P<word>.*?)'? \(choose from ", re.DOTALL)


class _Parser(argparse.ArgumentParser):
    """A parser that exits with code 64 after a usage error."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        if found := _UNKNOWN_COMMAND.match(message):
            message = f"unknown command '{found['word']}'{self._suggest_command(found['word'])}"
        self.exit(os.EX_USAGE, f"lares: {shorten_middle(one_line(message))}\n")

    def _suggest_command(self, word: str) -> str:
        known = subcommands(self)
        near = nearest(word, known)
        return suggest(near and f"`{self.prog} {near}`", f"`{self.prog}` has the commands {', '.join(known)}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Flush standard output and exit."""
        write("")
        super().exit(status, message)


class _RunRefused(Exception):
    """Raised if the arguments are for a command other than `run`."""


class _RunParser(_Parser):
    """A parser for `run` only. Raises `_RunRefused` for other arguments."""

    def error(self, message: str) -> NoReturn:
        raise _RunRefused(message)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse and check the arguments. The complete parser is built only for commands other than `run`, because
    building it delays the start."""
    parser = _RunParser(parents=[_common(None)], add_help=False)
    parser.set_defaults(version=False, licenses=False)
    _add_run(
        parser.add_subparsers(dest="command", parser_class=_RunParser), [_common(argparse.SUPPRESS)], add_help=False
    )
    try:
        parsed = parser.parse_args(arguments)
    except _RunRefused:
        parsed = _parse_all(build_parser(), arguments)
    _check_texts(parsed)
    return parsed


def _parse_all(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments. If the command does not accept one of them, show the usage of this command."""
    parsed, others = parser.parse_known_args(arguments)
    for command in (parsed.command, getattr(parsed, "do", None)):
        parser = subcommands(parser).get(command or "", parser)
    if others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    return parsed


def _check_texts(parsed: argparse.Namespace) -> None:
    """Raise `StartFailed` for invalid UTF-8, and for an empty path, which an unset shell variable may cause."""
    for name, value in vars(parsed).items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, PathText) and not each:
                raise StartFailed(
                    f"{name.replace('_', '-')} is empty; specify a path, or omit the option", os.EX_USAGE
                )
            if not isinstance(each, PathText) and isinstance(each, str) and re.search("[\ud800-\udfff]", each):
                raise StartFailed(f"{each} is not UTF-8 text", os.EX_USAGE)


def _add_run(commands: Any, common: Sequence[_Parser], **more: Any) -> None:
    run = commands.add_parser("run", parents=common, help="run the hub (the default)", **more)
    run.add_argument("--safe", action="store_true", help="run the hub without automations")


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="lares", description="A home hub in one file.", parents=[_common(None)])
    parser.add_argument("--version", action="store_true", help="print version, Python, and platform")
    parser.add_argument(
        "--licenses", action="store_true", help="list the packages inside lares.pyz, with their licences"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    common = [_common(argparse.SUPPRESS)]
    _add_run(commands, common)
    _add_demo(commands, common)
    commands.add_parser("check", parents=common, help="list all errors of configuration and Lua files")
    _add_init(commands, common)
    _add_try_adapter(commands, common)
    _add_backup(commands, common)
    _add_restore(commands, common)
    _add_upgrade(commands, common)
    _add_simulate(commands, common)
    _add_import(commands, common)
    commands.add_parser("doctor", parents=common, help="check this box: files, permissions, clock, space, store, hub")
    _add_clock(commands, common)
    _add_history(commands, common)
    _add_status(commands, common)
    _add_devices(commands, common)
    _add_why(commands, common)
    commands.add_parser("reload", parents=common, help="reload Lua files and changed adapter sections")
    _add_discover(commands, common)
    _add_notify(commands, common)
    _add_log(commands, common)
    _add_completion(commands)
    _add_help(commands)
    _add_key(commands, common)
    _explain(parser)
    parser.set_defaults(parser=parser)
    return parser


def _add_demo(commands: Any, common: Sequence[_Parser]) -> None:
    demo = commands.add_parser("demo", parents=common, help="run a hub with a simulated light, TV, and Matter server")
    demo.add_argument("--port", type=_port, metavar="N", help="the port on 127.0.0.1 (default: 3000, or a free port)")
    demo.add_argument(
        "--keep", type=PathText, metavar="DIR", help="save the home in this folder, and add virtual sensors"
    )


def _add_init(commands: Any, common: Sequence[_Parser]) -> None:
    init = commands.add_parser("init", parents=common, help="write a new configuration")
    init.add_argument("folder", type=PathText, metavar="DIR", nargs="?", help="the folder that will contain config/")
    init.add_argument(
        "--adapter",
        metavar="NAME",
        help="copy the Lua file of a bundled adapter kind to config/adapters/, for editing",
    )


def _add_try_adapter(commands: Any, common: Sequence[_Parser]) -> None:
    attempt = commands.add_parser("try-adapter", parents=common, help="poll a Lua kind once, without a hub")
    attempt.add_argument("name", metavar="NAME", nargs="?", help="a Lua kind, or a section with a Lua kind")
    attempt.add_argument(
        "--set", metavar="KEY=VALUE", action="extend", nargs="+", default=[], help="settings of the section"
    )
    attempt.add_argument(
        "--command", dest="command_", nargs=2, metavar=("ID", "JSON"), help="then send this command to a device"
    )
    files = attempt.add_mutually_exclusive_group()
    files.add_argument("--record", type=PathText, metavar="FILE", help="save requests and answers, without secrets")
    files.add_argument("--replay", type=PathText, metavar="FILE", help="use a recording instead of the device")


def _add_backup(commands: Any, common: Sequence[_Parser]) -> None:
    backup = commands.add_parser("backup", parents=common, help="write state, configuration, and history to one file")
    backup.add_argument("file", type=PathText, metavar="FILE", help="the archive to write")
    backup.add_argument(
        "--with-secrets", action="store_true", help="include secrets of Lua devices, such as pairing keys"
    )
    backup.add_argument("--without-history", action="store_true", help="omit the history")


def _add_restore(commands: Any, common: Sequence[_Parser]) -> None:
    restore = commands.add_parser("restore", parents=common, help="restore a backup; stop the hub first")
    restore.add_argument("file", type=PathText, metavar="FILE", help="the archive to restore")


def _add_upgrade(commands: Any, common: Sequence[_Parser]) -> None:
    upgrade = commands.add_parser("upgrade", parents=common, help="replace this version with another lares.pyz")
    upgrade.add_argument(
        "file",
        type=PathText,
        metavar="FILE",
        nargs="?",
        help="the new lares.pyz, checked against FILE.sha256 if that file exists",
    )
    upgrade.add_argument("--rollback", action="store_true", help="restore the previous version")


def _add_simulate(commands: Any, common: Sequence[_Parser]) -> None:
    simulate = commands.add_parser("simulate", parents=common, help="simulate automations for the next hours")
    simulate.add_argument("id", metavar="ID", nargs="?", help="only this automation, by id or name (default: all)")
    simulate.add_argument(
        "--from",
        dest="start",
        metavar="T",
        help="the start, such as 2026-12-24T18:00 or 2026-12-24T17:00:00Z (default: now)",
    )
    simulate.add_argument("--hours", type=_hours, default=24, metavar="N", help="the hours to simulate (default: 24)")
    simulate.add_argument(
        "--events",
        type=PathText,
        metavar="FILE",
        help="a file of device events, one per line: TIME DEVICE ATTRIBUTE VALUE",
    )
    simulate.add_argument(
        "--run", action="store_true", help="also run the Lua code, and print the commands that it sends"
    )
    simulate.add_argument("--json", action="store_true", help="print one JSON object per line")


def _add_import(commands: Any, common: Sequence[_Parser]) -> None:
    import_ = commands.add_parser("import", help="import from another hub; overwrites nothing")
    hubs = import_.add_subparsers(dest="hub", metavar="HUB", required=True, parser_class=_Parser)
    homeassistant = hubs.add_parser(
        "homeassistant", parents=common, help="import rooms, names, and automations of a Home Assistant folder"
    )
    homeassistant.add_argument("folder", type=PathText, metavar="DIR", help="Home Assistant's configuration folder")


def _add_clock(commands: Any, common: Sequence[_Parser]) -> None:
    clock = commands.add_parser("clock", help="trust a clock that is not synchronised")
    clocks = clock.add_subparsers(dest="do", metavar="COMMAND", required=True, parser_class=_Parser)
    clocks.add_parser("trust", parents=common, help="trust the current clock, also after restarts")


def _add_history(commands: Any, common: Sequence[_Parser]) -> None:
    history = commands.add_parser("history", help="export the stored history")
    subcommands = history.add_subparsers(dest="do", metavar="COMMAND", required=True, parser_class=_Parser)
    export = subcommands.add_parser("export", parents=common, help="print one line per hour, change, or command")
    export.add_argument(
        "--start",
        metavar="T",
        help="the start, such as 2026-11-01, 2026-11-01T18:00, or 2026-11-01T17:00:00Z (default: all)",
    )
    export.add_argument("--end", metavar="T", help="the end, inclusive (default: all)")
    forms = export.add_mutually_exclusive_group()
    forms.add_argument("--csv", action="store_true", help="print a table (the default)")
    forms.add_argument("--json", action="store_true", help="one JSON object per line")


def _add_status(commands: Any, common: Sequence[_Parser]) -> None:
    status = commands.add_parser("status", parents=common, help="show the state of the running hub")
    status.add_argument("--watch", action="store_true", help="refresh every two seconds")
    status.add_argument("--json", action="store_true", help="print one JSON object")


def _add_devices(commands: Any, common: Sequence[_Parser]) -> None:
    devices = commands.add_parser("devices", parents=common, help="list devices, or show one with its commands")
    devices.add_argument(
        "text", metavar="TEXT", nargs="?", help="part of an id, alias, name, room, or kind (default: all)"
    )
    devices.add_argument("--json", action="store_true", help="print a JSON list")


def _add_why(commands: Any, common: Sequence[_Parser]) -> None:
    why = commands.add_parser("why", parents=common, help="explain an automation, scene, or device")
    why.add_argument("id", metavar="ID", help="the id, alias, or name of an automation, scene, or device")
    why.add_argument("--json", action="store_true", help="print one JSON object")


def _add_discover(commands: Any, common: Sequence[_Parser]) -> None:
    discover = commands.add_parser("discover", parents=common, help="find devices in the local network")
    discover.add_argument("--seconds", default="3", metavar="N", help="the seconds to listen (default: 3)")
    discover.add_argument("--json", action="store_true", help="print one JSON object")


def _add_notify(commands: Any, common: Sequence[_Parser]) -> None:
    notify = commands.add_parser("notify", parents=common, help="send a test message through a section")
    notify.add_argument("section", metavar="SECTION", help="SECTION or SECTION:OPERATION (default: send)")
    notify.add_argument("text", metavar="TEXT", help="the message")
    notify.add_argument("--title", help="its title")


def _add_log(commands: Any, common: Sequence[_Parser]) -> None:
    log = commands.add_parser("log", parents=common, help="print the latest lines of the running hub's log")
    log.add_argument("-f", "--follow", action="store_true", help="keep printing new lines")
    log.add_argument(
        "--level", choices=[*LOG_LEVELS], default="debug", help="print only this level and above (default: debug)"
    )
    log.add_argument("--part", help="print only lines of this part: hub, automations …")
    log.add_argument("--contains", metavar="TEXT", help="print only lines with this text")
    log.add_argument(
        "--lines", type=_lines, default=100, metavar="N", help="the number of earlier lines (default: 100)"
    )
    log.add_argument("--json", action="store_true", help="print one JSON object per line")


def _add_completion(commands: Any) -> None:
    completion = commands.add_parser("completion", help="print the completion script of a shell")
    completion.add_argument("shell", choices=SHELLS, help="the shell")


def _add_help(commands: Any) -> None:
    help_ = commands.add_parser("help", help="explain a command or the exit codes")
    help_.add_argument("topic", nargs="*", metavar="COMMAND", help="a command, or exit-codes")


def _add_key(commands: Any, common: Sequence[_Parser]) -> None:
    key = commands.add_parser("key", help="create, list, and revoke keys, also while the hub runs")
    subcommands = key.add_subparsers(dest="do", metavar="COMMAND", required=True, parser_class=_Parser)
    create = subcommands.add_parser(
        "create", parents=common, help="create a key; print only its secret on standard output"
    )
    create.add_argument("--label", required=True, help="the name of the person or device that uses the key")
    create.add_argument("--role", required=True, help="read, write, admin, automation, or hook")
    create.add_argument("--hook", metavar="ID", help="with --role hook: the id of the hook for this key")
    subcommands.add_parser("list", parents=common, help="list the keys")
    revoke = subcommands.add_parser("revoke", parents=common, help="revoke a key")
    revoke.add_argument("key_id", metavar="ID", help="the key's id from `lares key list`")
    subcommands.add_parser("reset-master", parents=common, help="create a new master key; the old one stops working")


def _explain(parser: argparse.ArgumentParser, path: str = "") -> None:
    """Add the examples of each command to its help."""
    for name, child in subcommands(parser).items():
        full = f"{path} {name}".strip()
        child.formatter_class = argparse.RawDescriptionHelpFormatter
        if examples := EXAMPLES.get(full):
            child.epilog = "\n  ".join(["examples:" if len(examples) > 1 else "example:", *examples])
        _explain(child, full)


def _common(default: str | None) -> _Parser:
    """Return the parser of the common arguments, which can be given before or after the command."""
    common = _Parser(add_help=False, argument_default=default)
    common.add_argument("--config", type=PathText, metavar="FILE", help="the configuration file")
    common.add_argument("--data-dir", type=PathText, metavar="DIR", help="the data directory")
    return common


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535, not {text!r}")
    return int(text)


def _lines(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_LOG_ENTRIES:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MAX_LOG_ENTRIES}, not {text!r}")
    return int(text)


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= MAX_SIMULATED_HOURS:
        raise argparse.ArgumentTypeError(
            f"must be a number of hours above 0, at most {MAX_SIMULATED_HOURS} (a year), not {text!r}"
        )
    return hours
