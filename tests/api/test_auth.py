"""Authentication: a token costs one hash, and guessing tokens does not delay other requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from appliance.api.authenticator import MAX_WAITING_CHECKS, Authenticator
from appliance.api.request_token import bearer_of
from appliance.api.roles import Principal, Role
from appliance.api.tokens import KeyToken
from appliance.errors import TooManyChecks, Unauthenticated
from appliance.store.stored_keys import Key
from tests.fakes.keys import keep, key_of
from tests.fakes.rows import each_row

MASTER_KEY = "the-owners-own-master-key"
READER, WRITER = KeyToken.make("reader"), KeyToken.make("writer")
KEYS = [key_of(READER, Role.READ), key_of(WRITER, Role.WRITE)]
NO_TOKEN = "authentication required"


Make = Callable[..., Authenticator]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Authenticator] = []

    def add(
        master_key: str | None = None, keys: list[Key] = KEYS, first_used: Callable[[str], None] | None = None
    ) -> Authenticator:
        find = {key.name: key for key in keys}.get
        made.append(Authenticator(find, master_key=master_key, first_used=first_used))
        return made[-1]

    yield add
    for each in made:
        each.close()


@contextmanager
def busy(keys: Authenticator) -> Iterator[None]:
    """Keep the hasher's threads busy inside the `with` block, so that no check begins."""
    is_over = threading.Event()
    keys.hasher._thread.submit(is_over.wait)
    try:
        yield
    finally:
        is_over.set()


def guess(number: int, key_id: str = "reader") -> str:
    """Return a wrong token in the correct format."""
    return f"lrs_{key_id}_{number:043d}"


def hashing_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("keys")}


@each_row(
    ("header", "token"),
    [("Bearer abc", "abc"), ("bEaReR   a b  ", "a b"), ("Bearer \udcff", "\udcff"), (" Bearer abc", None)],
)
def test_the_token_comes_after_the_scheme_in_any_case(header: str | None, token: str | None) -> None:
    assert bearer_of(header) == token


def who(principal: Principal) -> tuple[str, Role]:
    return principal.key_id, principal.role


class TestTokens:
    async def test_the_configured_key_is_an_admin(self, make: Make) -> None:
        before = hashing_threads()
        assert who(await make(MASTER_KEY).identify(MASTER_KEY)) == ("master", Role.ADMIN)
        assert hashing_threads() <= before

    async def test_a_token_identifies_its_key(self, make: Make) -> None:
        keys = make()
        assert who(await keys.identify(READER.text)) == ("key_reader", Role.READ)
        assert who(await keys.identify(WRITER.text)) == ("key_writer", Role.WRITE)

    async def test_a_key_with_a_broken_hash_is_invalid(self, make: Make) -> None:
        keys = make(None, [keep("reader", Role.READ, "$argon2id$broken")])
        with pytest.raises(Unauthenticated):
            await keys.identify(READER.text)


class TestCost:
    async def test_an_unknown_key_id_costs_no_hash(self, make: Make) -> None:
        before, keys = hashing_threads(), make(MASTER_KEY)
        for number in range(200):
            for token in (f"not-a-token-{number}", guess(number, f"stranger{number}")):
                with pytest.raises(Unauthenticated):
                    await keys.identify(token)
        assert hashing_threads() <= before

    async def test_a_token_is_hashed_only_once(self, make: Make) -> None:
        keys = make()
        first = await keys.identify(READER.text)
        keys.close()
        assert await keys.identify(READER.text) is first

    async def test_a_check_does_not_block_the_loop(self, make: Make) -> None:
        keys = make()
        with busy(keys):
            checking = asyncio.ensure_future(keys.identify(READER.text))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not checking.done()
        assert (await checking).key_id == "key_reader"

    async def test_simultaneous_requests_share_a_check(self, make: Make) -> None:
        used: list[str] = []
        keys = make(first_used=used.append)
        burst = await asyncio.gather(*(keys.identify(READER.text) for _ in range(10 * MAX_WAITING_CHECKS)))
        assert {principal.key_id for principal in burst} == {"key_reader"}
        assert used == ["key_reader"]

    async def test_too_many_guesses_are_rejected(self, make: Make) -> None:
        keys = make()
        guesses = [keys.identify(guess(number)) for number in range(MAX_WAITING_CHECKS + 3)]
        received = await asyncio.gather(*guesses, return_exceptions=True)
        assert [type(each) for each in received] == [Unauthenticated] * MAX_WAITING_CHECKS + [TooManyChecks] * 3
        assert str(received[-1]) == "too many keys are waiting to be checked; try again in a second"

    async def test_guesses_at_a_key_block_no_other(self, make: Make) -> None:
        keys = make(MASTER_KEY)
        guesses = [asyncio.ensure_future(keys.identify(guess(number))) for number in range(MAX_WAITING_CHECKS)]
        await asyncio.sleep(0)
        assert (await keys.identify(MASTER_KEY)).key_id == "master"
        assert (await keys.identify(WRITER.text)).key_id == "key_writer"
        await asyncio.gather(*guesses, return_exceptions=True)

    async def test_a_known_token_waits_for_no_guess(self, make: Make) -> None:
        keys = make()
        await keys.identify(READER.text)
        with busy(keys):
            guesses = [
                asyncio.ensure_future(keys.identify(guess(number))) for number in range(MAX_WAITING_CHECKS + 1)
            ]
            await asyncio.sleep(0)
            assert (await keys.identify(READER.text)).key_id == "key_reader"
            assert not guesses[0].done()
        await asyncio.gather(*guesses, return_exceptions=True)

    async def test_a_finished_check_allows_another(self, make: Make) -> None:
        keys = make()
        guesses = [keys.identify(guess(number)) for number in range(MAX_WAITING_CHECKS)]
        await asyncio.gather(*guesses, return_exceptions=True)
        assert (await keys.identify(READER.text)).key_id == "key_reader"

    async def test_a_cancelled_caller_cancels_no_other(self, make: Make) -> None:
        keys = make()
        with busy(keys):
            one, other = (asyncio.ensure_future(keys.identify(READER.text)) for _ in range(2))
            await asyncio.sleep(0)
            one.cancel()
        assert (await other).key_id == "key_reader"
        assert one.cancelled()

    async def test_cancelled_guesses_still_count(self, make: Make) -> None:
        keys = make()
        with busy(keys):
            guesses = [asyncio.ensure_future(keys.identify(guess(number))) for number in range(MAX_WAITING_CHECKS)]
            await asyncio.sleep(0)
            for each in guesses:
                each.cancel()
            with pytest.raises(TooManyChecks):
                await keys.identify(READER.text)
        await asyncio.gather(*guesses, return_exceptions=True)


class TestFirstUse:
    async def test_the_first_use_is_logged(self, make: Make) -> None:
        used: list[str] = []
        keys = make(MASTER_KEY, first_used=used.append)
        for token in (guess(1), "nonsense"):
            with pytest.raises(Unauthenticated):
                await keys.identify(token)
        await keys.identify(MASTER_KEY)
        assert used == []
        for token in (READER.text, READER.text, WRITER.text, READER.text):
            await keys.identify(token)
        assert used == ["key_reader", "key_writer"]


class KeysByName(dict[str, Key]):
    """Keys by name. A test can remove a key and put it back."""

    def __init__(self, *keys: Key) -> None:
        super().__init__({key.name: key for key in keys})


@pytest.fixture
def stored() -> KeysByName:
    """Return the reader's key, and the generated master key."""
    return KeysByName(KEYS[0], MASTER_OF_BOX)


OLD = KeyToken.make("master")
MASTER_OF_BOX = key_of(OLD, Role.ADMIN)


@pytest.fixture
def keys(stored: KeysByName) -> Iterator[Authenticator]:
    made = Authenticator(stored.get)
    yield made
    made.close()


class TestRevocation:
    async def test_a_known_token_of_a_deleted_key_is_rejected(self, stored: KeysByName, keys: Authenticator) -> None:
        principal = await keys.identify(READER.text)
        keys.recheck(principal)
        del stored["reader"]
        with pytest.raises(Unauthenticated, match=NO_TOKEN):
            await keys.identify(READER.text)
        with pytest.raises(Unauthenticated, match=NO_TOKEN):
            keys.recheck(principal)

    async def test_a_new_key_is_valid_at_once(self, stored: KeysByName, keys: Authenticator) -> None:
        with pytest.raises(Unauthenticated):
            await keys.identify(WRITER.text)
        stored["writer"] = KEYS[1]
        assert (await keys.identify(WRITER.text)).role is Role.WRITE

    async def test_a_key_revoked_during_its_check_is_invalid(self, stored: KeysByName, keys: Authenticator) -> None:
        with busy(keys):
            asking = asyncio.ensure_future(keys.identify(READER.text))
            await asyncio.sleep(0)
            del stored["reader"]
        with pytest.raises(Unauthenticated, match=NO_TOKEN):
            await asking

    async def test_a_check_does_not_apply_to_a_new_key(self, stored: KeysByName, keys: Authenticator) -> None:
        with busy(keys):
            before = asyncio.ensure_future(keys.identify(OLD.text))
            await asyncio.sleep(0)
            new = KeyToken.make("master")
            stored["master"] = key_of(new, Role.ADMIN)
        after = asyncio.ensure_future(keys.identify(OLD.text))
        received = await asyncio.gather(before, after, return_exceptions=True)
        assert [type(each) for each in received] == [Unauthenticated, Unauthenticated]
        assert who(await keys.identify(new.text)) == ("master", Role.ADMIN)

    async def test_a_replaced_master_key_is_rejected(self, stored: KeysByName, keys: Authenticator) -> None:
        await keys.identify(OLD.text)
        new = KeyToken.make("master")
        stored["master"] = key_of(new, Role.ADMIN)
        with pytest.raises(Unauthenticated):
            await keys.identify(OLD.text)
        assert (await keys.identify(new.text)).key is stored["master"]

    async def test_the_cache_is_as_large_as_the_number_of_keys(self, stored: KeysByName, keys: Authenticator) -> None:
        await keys.identify(OLD.text)
        for _ in range(5):
            stored["reader"] = replace(KEYS[0])
            await keys.identify(READER.text)
            with pytest.raises(Unauthenticated):
                await keys.identify(guess(1))
        assert len(keys._known) == 2
        assert not keys._checks and not keys._waiting

    async def test_a_key_with_an_unknown_role_is_invalid(self, stored: KeysByName, keys: Authenticator) -> None:
        stored["reader"] = replace(KEYS[0], role="emperor")
        with pytest.raises(Unauthenticated):
            await keys.identify(READER.text)
