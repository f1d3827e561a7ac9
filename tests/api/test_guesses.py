"""Guesses of a key cost the hub little, and delay no other client. A valid key is never rejected as invalid."""

from __future__ import annotations

import asyncio
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.api.authenticator import Authenticator
from appliance.api.keyring import make_master
from appliance.api.roles import Role
from appliance.api.tokens import Hasher, KeyToken, hash_token, hint_of
from appliance.clock import Clock
from appliance.errors import AuthenticationUnavailable, Unauthenticated
from appliance.store.stored_keys import MASTER, Key
from tests.fakes.app import open_app

OWNER = KeyToken.make(MASTER)


class CountingHasher(Hasher):
    checks = 0

    def check(self, stored_hash: str, text: str) -> asyncio.Future[bool]:
        self.checks += 1
        return super().check(stored_hash, text)


class StarvedHasher(Hasher):
    """A hasher that raises `MemoryError` until the test gives it memory."""

    is_starved = True

    def check(self, stored_hash: str, text: str) -> asyncio.Future[bool]:
        if not self.is_starved:
            return super().check(stored_hash, text)
        failed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        failed.set_exception(AuthenticationUnavailable("keys cannot be checked now: Memory allocation error"))
        return failed


def authenticator_with(hasher: Hasher, key: Key) -> Authenticator:
    authenticator = Authenticator(lambda name: key if name == key.name else None)
    authenticator.hasher.close()
    authenticator.hasher = hasher
    return authenticator


async def test_a_guess_at_the_master_key_costs_no_hash_and_the_owner_gets_in() -> None:
    key = make_master(hash_token(OWNER.text), hint_of(OWNER.text), Clock())
    authenticator = authenticator_with(hasher := CountingHasher(), key)
    for _ in range(2000):
        with pytest.raises(Unauthenticated):
            await authenticator.identify(KeyToken.make(MASTER).text)
    assert hasher.checks == 0
    assert (await authenticator.identify(OWNER.text)).role is Role.ADMIN
    assert hasher.checks == 1
    authenticator.close()


@pytest.mark.slow
async def test_after_a_restart_guesses_delay_no_owner(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with open_app(data_dir=tmp_path) as app:
        made = (await app.post("/auth/keys", {"label": "owner", "role": "admin"})).json
    prefix = made["key"].rsplit("_", 1)[0]
    async with open_app(data_dir=tmp_path) as app:
        guesses = [
            app.get("/rooms", token=f"{prefix}_{secrets.token_urlsafe(32).replace('_', '-')}") for _ in range(100)
        ]
        guessing = asyncio.gather(*guesses)
        assert (await app.get("/rooms", token=made["key"])).status == 200
        assert {each.status for each in await guessing} == {401}
        assert (await app.get("/rooms", token=None)).status == 401, "who states no key is no guess"
    lines = [each for each in caplog.messages if "its key is" in each]
    reason = "its key is wrong or revoked; `lares key list` shows the valid keys"
    assert lines == [f"refused a request from 127.0.0.1: {reason}"]


async def test_a_valid_key_without_memory_to_check_it_is_not_called_invalid_and_works_afterwards() -> None:
    key = make_master(hash_token(OWNER.text), hint_of(OWNER.text), Clock())
    authenticator = authenticator_with(hasher := StarvedHasher(), key)
    for _ in range(20):
        with pytest.raises(AuthenticationUnavailable):
            await authenticator.identify(OWNER.text)
        await asyncio.sleep(0)
    hasher.is_starved = False
    assert (await authenticator.identify(OWNER.text)).key_id == MASTER
    authenticator.close()


STARVING = """
import resource
from appliance.api.tokens import hash_token, matches
from appliance.errors import AuthenticationUnavailable
kept = hash_token("secret")
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (2 << 20), -1))
for work in (lambda: matches(kept, "secret"), lambda: matches(kept, "wrong"), lambda: hash_token("secret")):
    try:
        print("came to", work())
    except AuthenticationUnavailable as error:
        print("unavailable", error)
"""


@pytest.mark.slow
def test_argon2_without_memory_neither_accepts_nor_rejects() -> None:
    ran = subprocess.run([sys.executable, "-c", STARVING], capture_output=True, text=True, timeout=60, check=False)
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["unavailable"] * 3, ran.stdout + ran.stderr
