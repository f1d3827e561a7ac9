"""`lares clock trust`: makes the hub trust an unsynchronised clock."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import replace

from appliance.cli.hub_client import HubRequest, ask, ask_or_act, open_stored
from appliance.cli.owner import become_owner
from appliance.cli.paths import HubPaths
from appliance.cli.terminal import say
from appliance.clock import Clock, timestamp
from appliance.store.card_counts import read_card_counts
from appliance.store.clock_trust import ClockTrust, newest_time
from appliance.store.record_keys import CARD


def clock(arguments: argparse.Namespace) -> int:
    """Mark the clock as trusted: through the hub if it is running, otherwise directly in the store."""
    data_dir = HubPaths.of_process(arguments).need_data_dir()
    become_owner(data_dir)
    request = HubRequest(method="POST", path="/diagnostics/clock/trust")
    asyncio.run(ask_or_act(data_dir, lambda: ask(data_dir, request), lambda: _trust_without_hub(data_dir)))
    say(f"the clock is trusted: {timestamp(Clock().now())}")
    return os.EX_OK


async def _trust_without_hub(data_dir: Path) -> None:
    """Trust the clock in the store, without a running hub."""
    async with open_stored(data_dir) as (document, clock):
        now = clock.now()
        changes = ClockTrust(clock, newest_time(document)).record(now)
        if (card := read_card_counts(document)) is not None:
            changes[CARD] = to_builtins(replace(card, at=timestamp(now)))
        await document.put_many(changes)
