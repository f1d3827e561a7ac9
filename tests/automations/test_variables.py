"""Variables: allowed values, their events, and restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import decode

from appliance.automations.brake import Brake
from appliance.automations.variables import Variables
from appliance.errors import Invalid
from appliance.home.bus import Bus
from appliance.home.events import VariableChanged
from appliance.store.document import open_document
from appliance.store.file_format import encode_values
from tests.fakes.automations import Card, automation, bench
from tests.fakes.clock import VirtualClock
from tests.fakes.disk import RecordingDisk

WHO = "variables"


class Shelf:
    def __init__(self, card: Card | None = None) -> None:
        self.card = card or Card()
        self.changes: list[tuple[str, Any, Any]] = []
        bus = Bus()
        bus.listen(self._note)
        self.variables = Variables(self.card, bus, Brake(bus, VirtualClock()))

    def _note(self, event: object) -> None:
        if isinstance(event, VariableChanged):
            self.changes.append((event.name, event.value, event.previous))


async def test_variables_survive_a_restart_and_only_changes_are_published() -> None:
    shelf = Shelf()
    shelf.variables.set("a.b_1", {"x": [1, 2.5, True]}, WHO)
    shelf.variables.set("n", 5, WHO)
    shelf.variables.set("n", 5.0, WHO)
    await shelf.variables.set_durable("n", 6, WHO)
    shelf.variables.set("gone", "x", WHO)
    shelf.variables.set("gone", None, WHO)
    assert shelf.changes[1:] == [("n", 5, None), ("n", 6, 5.0), ("gone", "x", None), ("gone", None, "x")]
    again = Shelf(shelf.card).variables.list_all()
    assert [(each.name, each.value) for each in again] == [("a.b_1", {"x": [1, 2.5, True]}), ("n", 6)]


def test_values_have_their_limits() -> None:
    variables = Shelf().variables
    variables.set("x", "y" * ((16 << 10) - 2), WHO)
    with pytest.raises(Invalid, match="has 16385 bytes as JSON; at most 16384 are allowed"):
        variables.set("x", "y" * ((16 << 10) - 1), WHO)
    for number in range(15):
        variables.set(f"big{number}", "y" * ((16 << 10) - 2), WHO)
    with pytest.raises(Invalid, match="all variables exceed 262144 bytes"):
        variables.set("more", 1, WHO)
    variables.set("x", None, WHO)
    variables.set("more", 1, WHO)
    few = Shelf().variables
    for number in range(1000):
        few.set(f"v{number}", number, WHO)
    few.set("v1", "changed", WHO)
    with pytest.raises(Invalid, match="there are 1000 already"):
        few.set("v1000", 1, WHO)
    deep: Any = 1
    for _ in range(32):
        deep = [deep]
    few.set("v1", deep, WHO)
    for each in ([deep], {"a": deep}):
        with pytest.raises(Invalid, match="variable 'v1': the value is nested more than 32 levels deep"):
            few.set("v1", each, WHO)


@pytest.mark.slow
async def test_unsaved_variables_count_towards_the_limits() -> None:
    variables = Shelf().variables
    values = [variables.set_durable(f"big{number}", "y" * 16_000, WHO) for number in range(40)]
    ended = await asyncio.gather(*values, return_exceptions=True)
    assert sum(isinstance(each, Invalid) for each in ended) == 24 and len(variables.list_all()) == 16
    variables = Shelf().variables
    ended = await asyncio.gather(
        *(variables.set_durable(f"v{number}", number, WHO) for number in range(1020)), return_exceptions=True
    )
    assert sum(isinstance(each, Invalid) for each in ended) == 20 and len(variables.list_all()) == 1000


@pytest.mark.parametrize("is_bad", [False, True])
async def test_the_last_value_wins_over_an_unsaved_earlier_one(is_bad: bool) -> None:
    shelf = Shelf()
    shelf.variables.set("n", 1, WHO)
    shelf.card.is_bad = is_bad
    first = asyncio.ensure_future(shelf.variables.set_durable("n", 2, WHO))
    await asyncio.sleep(0)
    shelf.variables.set("n", 3, WHO)
    await asyncio.gather(first, return_exceptions=True)
    assert shelf.variables.find("n") == 3 and shelf.card.values["variable/n"] == {"value": 3}


@pytest.mark.parametrize("values", [(5, None), (5, "x", None), (None, 5, None), ("x", None, 7)])
async def test_changes_at_the_same_time_store_the_last_known_values(values: tuple[Any, ...]) -> None:
    """A restart reads the same values as without the restart."""
    async with open_document(RecordingDisk(), VirtualClock()) as document:
        bus = Bus()
        variables = Variables(document, bus, Brake(bus, VirtualClock()))
        variables.watch(frozenset({"n"}))
        await variables.set_durable("n", 3, WHO)
        await asyncio.gather(*(variables.set_durable("n", value, WHO) for value in values))
        again = Variables(document, bus, Brake(bus, VirtualClock()))
        changes: list[VariableChanged] = []
        bus.listen(changes.append, VariableChanged)  # type: ignore[arg-type]
        for each in (variables, again):
            each.watch(frozenset({"n"}))
            each.set("n", 9, WHO)
        assert changes[0].known == changes[1].known != ()


@pytest.mark.parametrize("steps", range(8))
async def test_a_reload_does_not_undo_a_change_that_is_being_stored(steps: int) -> None:
    """The reload ends the watching of the variable."""
    async with open_document(RecordingDisk(), VirtualClock()) as document:
        variables = Variables(document, bus := Bus(), Brake(bus, VirtualClock()))
        variables.watch(frozenset({"n"}))
        await variables.set_durable("n", 2, WHO)
        await variables.set_durable("n", None, WHO)
        change = asyncio.ensure_future(variables.set_durable("n", 9, WHO))
        for _ in range(steps):
            await asyncio.sleep(0)
        variables.watch(frozenset())
        await change
        for _ in range(2):
            await document.flush(lambda given, _: encode_values(given))
            assert variables.find("n") == decode(document.get("variable/n") or b"{}").get("value") == 9
            variables.watch(frozenset())
        assert document.get("variable/n") == b'{"value":9}'


async def test_an_automation_that_changes_its_own_variable_is_paused(tmp_path: Path) -> None:
    async with bench(tmp_path, automation({"type": "variable_change", "name": "n"})) as it:
        for number in range(30):
            it.variables.set("n", number, "automation:a")
            await it.drain()
        assert len(it.fired) == 10
