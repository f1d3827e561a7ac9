"""`lares help`: prints the commands with examples, and the exit codes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence

from appliance.cli.exit_codes import EXIT_CODES
from appliance.cli.terminal import say
from appliance.errors import StartFailed

EXAMPLES: Mapping[str, Sequence[str]] = {
    "run": (
        "lares run",
        "lares run --config /etc/lares/config/default.toml --data-dir /var/lib/lares",
        "lares run --safe",
    ),
    "demo": ("lares demo", "lares demo --port 8080"),
    "check": ("lares check",),
    "init": ("lares init /etc/lares", "lares init --adapter shelly"),
    "backup": ("lares backup home.tar.gz", "lares backup home.tar.gz --without-history"),
    "restore": ("lares restore home.tar.gz",),
    "upgrade": ("lares upgrade lares.pyz", "lares upgrade --rollback"),
    "simulate": (
        "lares simulate --from 2026-12-24T12:00 --hours 24",
        "lares simulate evening_light",
        "lares simulate --json",
        "lares simulate --events evening.txt --run",
    ),
    "clock": ("lares clock trust",),
    "clock trust": ("lares clock trust",),
    "import": ("lares import homeassistant /path/to/homeassistant",),
    "import homeassistant": ("lares import homeassistant /path/to/homeassistant",),
    "doctor": ("lares doctor",),
    "status": ("lares status", "lares status --watch", "lares status --json"),
    "devices": ("lares devices", "lares devices kitchen", "lares devices elgato_lights:light:0 --json"),
    "reload": ("lares reload",),
    "discover": ("lares discover", "lares discover --seconds 10 --json"),
    "notify": ('lares notify phone "It works"',),
    "why": ("lares why evening_light", "lares why elgato_lights:light:0"),
    "try-adapter": (
        "lares try-adapter shelly --set base_url=http://192.168.1.50",
        'lares try-adapter kitchen --command switch:0 \'{"capability": "power", "action": "on"}\'',
        "lares try-adapter shelly --set base_url=http://192.168.1.50 --record shelly.json",
        "lares try-adapter shelly --replay shelly.json",
    ),
    "log": ("lares log -f --level warning", "lares log --part automations --contains evening"),
    "completion": ("lares completion bash > /etc/bash_completion.d/lares",),
    "help": ("lares help simulate", "lares help exit-codes"),
    "history": ("lares history export > home.csv",),
    "history export": (
        "lares history export --start 2026-11-01 --end 2026-11-07T12:00 > week.csv",
        "lares history export --json",
    ),
    "key": ("lares key list",),
    "key create": (
        'lares key create --label "kitchen tablet" --role write',
        "lares key create --label doorbell --role hook --hook doorbell",
    ),
    "key list": ("lares key list",),
    "key revoke": ("lares key revoke key_3f9a1c2e",),
    "key reset-master": ("lares key reset-master",),
}
"""Examples by command. A test parses each example."""


def help(arguments: argparse.Namespace) -> int:
    parser = arguments.parser
    if arguments.topic == ["exit-codes"]:
        for code, meaning in EXIT_CODES.items():
            say(f"{code:>3}  {meaning}")
        return os.EX_OK
    for word in arguments.topic:
        if word not in (known := subcommands(parser)):
            topic = " ".join(arguments.topic)
            raise StartFailed(f"unknown command {topic!r}; `lares help` lists all commands", os.EX_USAGE)
        parser = known[word]
    parser.print_help()
    return os.EX_OK


def subcommands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found: Mapping[str, argparse.ArgumentParser] = action.choices
            return found
    return {}
