"""Examples: how each command is typed, as its help shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

EXAMPLES: Mapping[str, Sequence[str]] = {
    "run": (
        "lares run",
        "lares run --config /etc/lares/config/default.toml --data-dir /var/lib/lares",
        "lares run --safe",
    ),
    "demo": ("lares demo", "lares demo --port 8080"),
    "check": ("lares check",),
    "init": ("lares init /etc/lares",),
    "backup": ("lares backup home.tar.gz",),
    "restore": ("lares restore home.tar.gz",),
    "simulate": (
        "lares simulate --from 2026-12-24T12:00 --hours 24",
        "lares simulate --json",
        "lares simulate --events evening.txt --run",
    ),
    "clock": ("lares clock trust",),
    "clock trust": ("lares clock trust",),
    "import": ("lares import homecmdr /opt/homecmdr",),
    "import homecmdr": ("lares import homecmdr /opt/homecmdr", "lares import homecmdr smart-home.db"),
    "doctor": ("lares doctor",),
    "status": ("lares status", "lares status --watch", "lares status --json"),
    "why": ("lares why evening_light", "lares why elgato_lights:light:0"),
    "log": ("lares log -f --level warning", "lares log --part automations --contains evening"),
    "completion": ("lares completion bash > /etc/bash_completion.d/lares",),
    "help": ("lares help simulate", "lares help exit-codes"),
    "key": ("lares key list",),
    "key create": ('lares key create --label "kitchen tablet" --role write',),
    "key list": ("lares key list",),
    "key revoke": ("lares key revoke key_3f9a1c2e",),
    "key reset-master": ("lares key reset-master",),
}
"""The examples of each command; a test parses every one."""
