"""A key in the store is valid only after it is on the card. The same object represents a key until the key ends,
and the end of a key is reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from appliance.api.roles import Role
from appliance.clock import Clock
from appliance.errors import NotFound
from appliance.home.bus import Bus
from appliance.home.events import Event, KeyRevoked
from appliance.store.document import open_document
from appliance.store.stored_keys import Key, Keys
from tests.fakes.keys import keep
from tests.fakes.moody_disk import MoodyDisk

DESK, SHELF = keep("desk", Role.READ, "hash of desk"), keep("shelf", Role.ADMIN, "hash of shelf")
MASTER = keep("master", Role.ADMIN, "hash of master")


class Box:
    """A card, and the reports about its keys."""

    def __init__(self, folder: Path) -> None:
        self.disk = MoodyDisk(folder)
        self.events: list[Event] = []

    @asynccontextmanager
    async def opened(self, *keys: Key) -> AsyncIterator[Keys]:
        """Add these keys to the card, and provide the keys on the card."""
        bus = Bus()
        async with open_document(self.disk, Clock()) as document:
            opened = Keys(document, bus)
            for key in keys:
                await opened.put(key)
            bus.listen(self.events.append)
            yield opened


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """Provide an empty card."""
    return Box(tmp_path)


async def test_a_key_is_the_same_object_while_it_is_valid(box: Box) -> None:
    async with box.opened(DESK) as keys:
        assert keys.find("desk") is keys.find("desk")
        other = replace(DESK, token_hash="another")
        await keys.put(other)
        assert keys.find("desk") is other
    assert box.events == [KeyRevoked(key_id="key_desk")]


@pytest.mark.parametrize("key_id", ["nobody", "desk", "key_", "", "master", "key_master", "key_key_desk", "KEY_DESK"])
async def test_an_unknown_key_and_the_master_key_cannot_be_revoked(box: Box, key_id: str) -> None:
    async with box.opened(DESK, MASTER) as keys:
        with pytest.raises(NotFound) as refused:
            await keys.remove(key_id)
        assert str(refused.value) == f"key '{key_id}' not found"
        assert keys.list_all() == [DESK] and keys.master is MASTER


async def test_the_master_key_is_separate_and_can_be_replaced(box: Box) -> None:
    async with box.opened(DESK, MASTER) as keys:
        assert keys.list_all() == [DESK]
        assert keys.master is keys.find("master") is MASTER
        new = replace(MASTER, token_hash="new")
        await keys.put(new)
        assert keys.master is new
    assert box.events == [KeyRevoked(key_id="master")]
    async with box.opened() as keys:
        assert keys.master == new


@pytest.mark.parametrize("begin", [lambda keys: keys.put(SHELF), lambda keys: keys.remove("key_desk")])
async def test_a_change_is_finished_without_its_caller(
    box: Box, begin: Callable[[Keys], asyncio.Future[None]]
) -> None:
    async with box.opened(DESK) as keys:
        asking = asyncio.ensure_future(begin(keys))
        for _ in range(3):  # the change is queued, but not yet on the card
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await keys.put(MASTER)
        now = keys.list_all()
        assert now in ([DESK, SHELF], [])
    async with box.opened() as keys:
        assert keys.list_all() == now


async def test_one_of_two_revocations_of_the_same_key_fails(box: Box) -> None:
    async with box.opened(DESK) as keys:
        both = await asyncio.gather(keys.remove("key_desk"), keys.remove("key_desk"), return_exceptions=True)
    assert [type(each) for each in both] == [type(None), NotFound]
    assert box.events == [KeyRevoked(key_id="key_desk")]
