"""Numbers in the documents are those of the code: each sentence is made anew from what the code says."""

from __future__ import annotations

import math
import re
from pathlib import Path

from appliance.adapters.adapter_runner import MAX_RESTART_SECS, MIN_RESTART_SECS
from appliance.adapters.base import COMMAND_TIMEOUT_SECS
from appliance.adapters.mqtt.announced_devices import MAX_ENTITIES
from appliance.adapters.mqtt.announcements import MAX_DISCOVERY_BYTES
from appliance.adapters.mqtt.entity_catalog import MAX_BROKER_DEVICES, MAX_TOPICS
from appliance.adapters.mqtt.out.outlet import GATHER_SECS
from appliance.adapters.mqtt.payloads import MAX_MQTT_PAYLOAD_BYTES
from appliance.api.api_limits import ApiLimits
from appliance.automations import timers, variables
from appliance.automations.alarms import MAX_LATE
from appliance.automations.brake import PAUSE_SECS
from appliance.automations.calls import MAX_WAIT_SECS
from appliance.cli.serve import STOP_LIMIT_SECS
from appliance.cli.single_file import REMOVE_AFTER_SECS, SEAL_AFTER_SECS
from appliance.config import MIN_MASTER_KEY_CHARS
from appliance.log_buffer import MAX_LOG_ENTRIES
from appliance.lua.context import MAX_RESULT_BYTES, MAX_RESULTS
from appliance.lua.execution_limits import DEADLINE_GRACE_SECS
from appliance.lua.replies import MAX_ANSWER_BYTES
from appliance.lua.source import MAX_FILE_BYTES
from appliance.lua.worker import MAX_RUNNING
from appliance.lua.worker_pool import MAX_DRAIN_SECS
from appliance.lua_worker.worker_execution import MAX_LOG_BYTES, MAX_LOG_LINES
from appliance.settings import SECTIONS
from appliance.store.crashes import MAX_CRASHES, WINDOW_SECS
from appliance.store.files import MIN_COMPACT_BYTES

ROOT = Path(__file__).parents[2]
WORDS = {2: "two", 3: "three", 5: "five", 10: "ten", 15: "fifteen", 20: "twenty", 60: "a minute"}


def page(name: str) -> str:
    """A page of the documentation in one line; some lie above the others, some beside the code."""
    folder = ROOT if "/" in name or name in ("README.md", "ARCHITECTURE.md") else ROOT / "docs"
    return " ".join((folder / name).read_text().split())


def number_in(file: str, pattern: str) -> int:
    """The number that a file of another language than ours states."""
    [found] = re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)
    return int(found)


def numbers() -> list[tuple[str, str]]:
    """Sentences of pages, made of what the code says."""
    limits, prelude = ApiLimits(), "appliance/lua_worker/prelude"
    deepest = number_in(f"{prelude}/json.lua", r"^local MAX_DEPTH = (\d+)")
    longest = number_in(f"{prelude}/json.lua", r"^local MAX_VALUE_BYTES = (\d+)")
    message = number_in(f"{prelude}/ctx.lua", r"^local MAX_LOG_BYTES = (\d+)")
    watchdog = number_in("firmware/systemd/lares.service", r"^WatchdogSec=(\d+)$")
    brake_runs = SECTIONS["automations.runner"]["brake_runs"].default
    brake_secs = SECTIONS["automations.runner"]["brake_secs"].default
    flush_secs = SECTIONS["persistence"]["flush_secs"].default
    stop = WORDS[math.ceil(STOP_LIMIT_SECS)]
    kept = f"{MAX_RESULTS:,} results and {MAX_RESULT_BYTES >> 10} KiB of them kept"
    kept_variables = f"{variables.MAX_VALUE_BYTES >> 10} KiB as JSON, {variables.MAX_VARIABLES:,} of them"
    mqtt = f"{MAX_BROKER_DEVICES:,} devices, {MAX_ENTITIES} entities each, {MAX_TOPICS:,} topics"
    back_off = f"after {MIN_RESTART_SECS:g} s, 2 s … {MAX_RESTART_SECS:g} s"
    user = number_in("Containerfile", r"--uid (\d+)")
    return [
        ("installing.md", f"sudo install -d -o {user} /srv/lares"),
        ("installing.md", f"runs as user {user} of the box"),
        ("lua.md", f"at most {deepest} levels deep, and {longest >> 10} KiB large"),
        (
            "lua.md",
            f"{MAX_LOG_LINES:,} log lines and {MAX_LOG_BYTES >> 20} MiB of them, {message >> 10} KiB for a logged",
        ),
        ("lua.md", f"{MAX_FILE_BYTES >> 20} MiB for a file"),
        ("lua.md", kept),
        ("lua.md", f"{kept_variables}, {variables.MAX_TOTAL_BYTES >> 10} KiB in all"),
        ("lua.md", f"up to {timers.MAX_SECS // 86_400} days"),
        ("lua.md", f"up to {MAX_WAIT_SECS} seconds"),
        ("lua.md", "is answered for one second after its limit" if DEADLINE_GRACE_SECS == 1 else ""),
        ("lua.md", "what else ran in it has a minute to end" if MAX_DRAIN_SECS == 60 else ""),
        ("lua.md", f"it is paused for {WORDS[int(PAUSE_SECS)]}"),
        ("systemd.md", f"every {WORDS[watchdog // 2]} seconds"),
        ("systemd.md", f"stops within {stop} seconds"),
        ("systemd.md", f"Requests in progress have {WORDS[int(limits.stop_secs)]} seconds"),
        ("systemd.md", "Half a second later" if limits.abort_secs == 0.5 else ""),
        ("README.md", f"in order and within {stop} seconds"),
        ("README.md", f"a stop of at most {WORDS[round(MAX_LATE.total_seconds() / 60)]} minutes"),
        (
            "README.md",
            f"sets itself off more than {WORDS[brake_runs]} times within {WORDS[brake_secs]} seconds is paused for",
        ),
        ("README.md", f"the last {MAX_LOG_ENTRIES:,} lines of the log"),
        ("README.md", f"every {WORDS[flush_secs // 60]} minutes (`persistence.flush_secs`)"),
        ("firmware/README.md", f"{WORDS[int(SEAL_AFTER_SECS)]} seconds after it began to serve"),
        ("README.md", "removes the versions before it a minute after" if REMOVE_AFTER_SECS == 60 else ""),
        ("card.md", f"{WORDS[MAX_CRASHES]} within {WORDS[int(WINDOW_SECS) // 60]} minutes"),
        ("events.md", f"One that reads nothing for {limits.stall_secs:g} s is closed"),
        ("events.md", f"The hub pings every {limits.ping_secs:g} s"),
        ("events.md", f"a message of more than {limits.message_bytes >> 10} KiB"),
        ("events.md", f"larger than {limits.head_bytes >> 10} KiB"),
        ("reverse-proxy.md", f"for more than {limits.ping_secs:g} seconds; the hub pings every {limits.ping_secs:g}"),
        ("mqtt.md", f"after {COMMAND_TIMEOUT_SECS:g} seconds with an error"),
        ("mqtt.md", f"gathered for {1000 * GATHER_SECS:g} ms"),
        (
            "mqtt.md",
            f"{mqtt}, {MAX_MQTT_PAYLOAD_BYTES >> 10} KiB a message, {MAX_DISCOVERY_BYTES >> 10} KiB a configuration",
        ),
        ("adapters.md", back_off),
        ("troubleshooting.md", f"set one of {MIN_MASTER_KEY_CHARS} characters or more"),
        ("store.md", f"outgrown its snapshot and {MIN_COMPACT_BYTES >> 10} KiB"),
        ("ARCHITECTURE.md", f"The adapter has {WORDS[int(COMMAND_TIMEOUT_SECS)]} seconds"),
        ("appliance/lua_worker/README.md", f"{MAX_RUNNING} executions of a worker run Lua at once"),
        ("appliance/lua_worker/README.md", f"{MAX_ANSWER_BYTES >> 20} MiB an answer"),
    ]


def test_numbers_in_the_documents_are_those_of_the_code() -> None:
    missing = [(name, sentence) for name, sentence in numbers() if not sentence or sentence not in page(name)]
    assert not missing, missing
