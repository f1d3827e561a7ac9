"""Commands run on the same machine while a hub with a slow card is stopping. After the next start, all changes
that the commands confirmed are present."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import orjson
import pytest

from appliance.store.restore import read_present
from tests.fakes.card import Card
from tests.fakes.process import PYTHONPATH, Process, configure, running

pytestmark = pytest.mark.slow  # needs a C compiler, and each sync takes 0.6 s

MOMENTS_SECS = (0.0, 1.2)
"""Seconds between the stop signal and the start of a command. While a hub is stopping, it waits for several syncs."""


async def command(folder: Path, card: Card, *arguments: str) -> tuple[int, str, str]:
    """Return the exit code and the output of `lares`."""
    environment = {**os.environ, **card.environment, "PYTHONPATH": PYTHONPATH}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "appliance", *arguments),
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert "Traceback" not in err.decode(), err.decode()
    assert process.returncode is not None
    return process.returncode, out.decode().strip(), err.decode().strip()


async def stop_meanwhile(
    hub: Process, card: Card, folder: Path, delay: float, *arguments: str
) -> tuple[int, str, str]:
    """Stop a hub that still has changes to write, and run the command after the delay. Return the result of the
    command."""
    assert (await hub.ask("PUT", "/variables/mode", {"value": "day"}))[0] == 200
    card.switch_on("slow")
    changing = asyncio.ensure_future(hub.post("/rooms", id=f"room-{delay}", name="Room"))
    await asyncio.sleep(0.01)
    hub.popen.send_signal(signal.SIGTERM)
    await asyncio.sleep(delay)
    try:
        done, stopped = await asyncio.gather(command(folder, card, *arguments), asyncio.to_thread(hub.popen.wait, 30))
    finally:
        card.switch_off("slow")
        await asyncio.gather(changing, return_exceptions=True)
    assert stopped == 0
    return done


@pytest.fixture
def card(tmp_path: Path) -> Card:
    """Configure a home, and provide its card, which is still fast."""
    configure(tmp_path)
    return Card(tmp_path)


async def test_a_printed_key_works_after_the_next_start(tmp_path: Path, card: Card) -> None:
    secrets: list[str] = []
    for delay in MOMENTS_SECS:
        async with running(tmp_path, card.environment) as hub:
            for earlier in secrets:
                assert await hub.status_for(earlier) == 200, delay
            code, secret, err = await stop_meanwhile(
                hub, card, tmp_path, delay, "key", "create", "--label", "x", "--role", "read"
            )
        print(f"{delay}: {code} {err}")
        assert (code == 0) == bool(secret), (delay, code, err)
        secrets += [secret] * (code == 0)
    assert secrets
    async with running(tmp_path) as hub:
        assert [await hub.status_for(each) for each in secrets] == [200] * len(secrets)


async def test_a_revoked_key_does_not_work_after_the_next_start(tmp_path: Path, card: Card) -> None:
    revoked = 0
    for delay in MOMENTS_SECS:
        async with running(tmp_path, card.environment) as hub:
            _, made = await hub.ask("POST", "/auth/keys", {"label": "x", "role": "read"})
            assert await hub.status_for(made["key"]) == 200
            code, _, err = await stop_meanwhile(hub, card, tmp_path, delay, "key", "revoke", made["id"])
        print(f"{delay}: {code} {err}")
        async with running(tmp_path) as hub:
            assert await hub.status_for(made["key"]) == (401 if code == 0 else 200), (delay, code, err)
        revoked += code == 0
    assert revoked


async def test_the_next_start_has_the_restored_state(tmp_path: Path, card: Card) -> None:
    async with running(tmp_path) as hub:
        assert await hub.post("/rooms", id="kept", name="Kept") == 200
        assert (await command(tmp_path, card, "backup", "home.tar.gz"))[0] == 0
    restored = 0
    for delay in MOMENTS_SECS:
        async with running(tmp_path, card.environment) as hub:
            assert await hub.post("/rooms", id="later", name="Later") == 200
            code, _, err = await stop_meanwhile(hub, card, tmp_path, delay, "restore", "home.tar.gz")
        print(f"{delay}: {code} {err}")
        assert code in (0, 75), (code, err)
        async with running(tmp_path) as hub:
            rooms = {each["id"] for each in await hub.get("/rooms")}
            assert ("later" not in rooms) if code == 0 else ("later" in rooms), (delay, code, rooms)
            assert "kept" in rooms
        restored += code == 0
    print(f"{restored} of {len(MOMENTS_SECS)} were restored, the others refused")


async def test_a_trusted_clock_is_trusted_after_the_next_start(tmp_path: Path, card: Card) -> None:
    for delay in MOMENTS_SECS:
        async with running(tmp_path, card.environment) as hub:
            before = time.time()
            code, _, err = await stop_meanwhile(hub, card, tmp_path, delay, "clock", "trust")
        print(f"{delay}: {code} {err}")
        assert code == 0 or err, (code, err)
        noted = orjson.loads(read_present(tmp_path / "data").values["clock/trust"])
        assert code != 0 or noted["at"] >= int(before * 1000), (delay, noted)


async def test_a_second_hub_is_ready_once_the_first_has_ended(tmp_path: Path, card: Card) -> None:
    started = 0
    for delay in MOMENTS_SECS:
        async with running(tmp_path, card.environment) as first:
            assert (await first.ask("PUT", "/variables/mode", {"value": delay}))[0] == 200
            card.switch_on("slow")
            changing = asyncio.ensure_future(first.post("/rooms", id=f"room-{delay}", name="Room"))
            await asyncio.sleep(0.01)
            first.popen.send_signal(signal.SIGTERM)
            await asyncio.sleep(delay)
            (tmp_path / "hub.log").rename(tmp_path / "first.log")
            try:
                async with running(tmp_path, card.environment) as second:
                    ended = first.popen.poll()
                    [answer] = await asyncio.gather(changing, return_exceptions=True)
                    mode, rooms = await second.get("/variables/mode"), await second.get("/rooms")
                    started += 1
            except AssertionError as refused:  # a refusal is correct too
                assert "is in use by another hub" in str(refused), refused
                await asyncio.gather(changing, return_exceptions=True)
                continue
            finally:
                card.switch_off("slow")
        assert ended == 0, "the second was ready before the first had ended"
        assert mode["value"] == delay and (answer != 200 or f"room-{delay}" in {each["id"] for each in rooms})
    print(f"{started} of {len(MOMENTS_SECS)} second hubs started, the others were refused")
