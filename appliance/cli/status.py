"""`lares status`: prints the state of the running hub."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

from appliance.cli.hub_client import HubRequest, ask_hub
from appliance.cli.terminal import fit, local_time, paint, say, size, span, with_local_times
from appliance.home_locale import load_zone

REDRAW_SECS = 2.0
MAX_FAILED_LINES = 10
CLEAR = "\x1b[H\x1b[J"

_STATUS_COLOURS = {"running": "green", "degraded": "red", "starting": "yellow"}


def status(arguments: argparse.Namespace) -> int:
    """Print the state. With `--watch`, repeat until interrupted."""
    while True:
        reply = ask_hub(arguments, HubRequest(path="/diagnostics/status"))
        if arguments.watch and sys.stdout.isatty() and not arguments.json:
            sys.stdout.write(CLEAR)
        say(*([json.dumps(reply)] if arguments.json else _lines(reply)))
        if not arguments.watch:
            return os.EX_OK
        time.sleep(REDRAW_SECS)


def _lines(reply: dict[str, Any]) -> Iterator[str]:
    zone = load_zone(reply["timezone"])
    return (fit(with_local_times(line, zone)) for line in _screen(reply, zone))


def _screen(reply: dict[str, Any], zone: ZoneInfo) -> Iterator[str]:
    memory = "unknown" if reply["memory_bytes"] is None else size(reply["memory_bytes"])
    yield f"Lares {reply['version']}, up {span(reply['uptime_secs'])}, memory {memory}"
    if reply["safe"] is not None:
        yield paint(reply["safe"], "red")
    for change in reply.get("config", ()):
        yield paint(change, "yellow")
    if reply["waiting_for"]:
        yield f"starting: waiting for {', '.join(reply['waiting_for'])}"
    yield _card(reply["card"], zone)
    yield from _adapters(reply["adapters"], zone)
    yield from _devices(reply["devices"], zone)
    yield from _automations(reply["automations"], zone)
    yield from _executions(reply["executions"], zone)
    yield from _failed_calls(reply["failed_calls"], zone)
    yield from _faults(reply["faults"], zone)


def _card(card: dict[str, Any], zone: ZoneInfo) -> str:
    today, in_all = size(card["today_bytes"]), size(card["bytes_written"])
    written = f"card: {today} written today, {in_all} since {local_time(card['since'], zone)[:10]}"
    return (
        written
        if card["failure"] is None
        else paint(f"{written}; changes cannot be stored: {card['failure']}", "red")
    )


def _adapters(adapters: list[dict[str, Any]], zone: ZoneInfo) -> Iterator[str]:
    yield f"adapters: {len(adapters) or 'none is enabled'}"
    for each in adapters:
        last = (
            "has not answered yet"
            if each["last_success"] is None
            else f"last answer {local_time(each['last_success'], zone)}"
        )
        because = "" if each["message"] is None else f": {each['message']}"
        state = paint(each["status"], _STATUS_COLOURS[each["status"]])
        yield f"  {each['name']}  {state}, {last}{because}"
        if each["file_fault"] not in (None, each["message"]):
            reason = paint("the new file has an error", "red")
            yield f"    the previous version runs, because {reason}: {each['file_fault']}"


def _devices(devices: dict[str, Any], zone: ZoneInfo) -> Iterator[str]:
    yield f"devices: {devices['total']}, offline: {len(devices['offline'])}"
    for each in devices["offline"]:
        name = "" if each.get("name") in (None, each["id"]) else f" ({each['name']})"
        yield f"  {each['id']}{name}  {paint(each['state'], 'red')} since {local_time(each['since'], zone)}"


def _automations(automations: list[dict[str, Any]], zone: ZoneInfo) -> Iterator[str]:
    yield f"automations: {len(automations)}"
    for each in automations:
        armed = "armed" if each["is_enabled"] else "switched off"
        is_due = each["is_enabled"] and each["next_fire"] is not None
        due = "" if not is_due else f", next {local_time(each['next_fire'], zone)}"
        yield f"  {each['id']}  {armed}{due}{_last(each['last'], zone)}"


def _executions(executions: list[dict[str, Any]], zone: ZoneInfo) -> Iterator[str]:
    yield f"running: {len(executions) or 'nothing'}"
    for each in executions:
        doing, cpu = each["doing"], f"{each['cpu_secs']:.1f} s of processor time"
        yield f"  {each['kind']} {each['of']}  since {local_time(each['started_at'], zone)}, {doing}, {cpu}"


def _failed_calls(rows: list[dict[str, Any]], zone: ZoneInfo) -> Iterator[str]:
    if rows:
        yield f"failed calls since the hub's start: {sum(each['count'] for each in rows)}"
    for each in rows[:MAX_FAILED_LINES]:
        times = "" if each["count"] == 1 else f" {each['count']} times, last"
        at = local_time(each["at"], zone)
        yield f"  {each['source']}  {each['target']} failed{times} at {at}: {each['reason']}"


def _last(last: dict[str, Any] | None, zone: ZoneInfo) -> str:
    if last is None:
        return ""
    because = "" if last["error"] is None else f" ({last['error']})"
    status = "failed in part" if because and last["status"] == "ok" else last["status"]
    return f", last {status} at {local_time(last['at'], zone)}{because}"


def _faults(faults: list[dict[str, Any]], zone: ZoneInfo) -> Iterator[str]:
    yield f"latest errors: {'' if faults else 'none'}".rstrip()
    for each in faults:
        yield f"  {local_time(each['at'], zone)}  {each['part']}: {each['message']}"
