"""The master key of a box without a configured key. The hub generates the key, prints it once, and stores its
hash."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from appliance.api.authenticator import Authenticator
from appliance.api.roles import Principal, Role
from appliance.cli.keyring import open_keyring
from appliance.cli.named_files import write_private
from appliance.clock import Clock
from appliance.errors import StartFailed, Unauthenticated
from appliance.home.bus import Bus
from appliance.settings import Auth
from appliance.store.disk import Disk
from appliance.store.document import open_document
from appliance.store.file_format import generations_of
from appliance.store.stored_keys import Keys

NONE = Auth(master_key=None, source="home.toml")
OWNER = ("master", Role.ADMIN)


def who(principal: Principal) -> tuple[str, Role]:
    return principal.key_id, principal.role


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.StringIO())


class Box:
    """A data directory, and its latest authenticator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.first_key = folder / "first-key"
        self.keys: Keys
        self.stored: bytes | None = None
        self._stack = AsyncExitStack()

    async def start(self, auth: Auth = NONE, disk: Disk | None = None) -> Authenticator:
        await self.stop()
        document = await self._stack.enter_async_context(open_document(disk or Disk(self.folder), Clock()))
        self.keys = Keys(document, Bus())
        keyring = await open_keyring(auth, self.keys, self.folder, Clock())
        self._stack.callback(keyring.close)
        self.stored = document.get("key/master")
        return keyring.authenticator

    async def stop(self) -> None:
        await self._stack.aclose()

    def files(self) -> dict[str, int]:
        """Return all files with their modes, except the store's files."""
        return {
            file.name: stat.S_IMODE(file.stat().st_mode)
            for file in self.folder.iterdir()
            if not generations_of([file.name])
        }


@pytest_asyncio.fixture
async def box(tmp_path: Path) -> AsyncIterator[Box]:
    """Provide a box before its first start."""
    made = Box(tmp_path)
    yield made
    await made.stop()


async def test_only_a_hash_of_the_key_is_stored(box: Box, caplog: pytest.LogCaptureFixture) -> None:
    await box.start()
    key = box.first_key.read_text().strip()
    secret = key[-43:].encode()
    kept = [file.read_bytes() for file in box.folder.iterdir() if file != box.first_key]
    assert any(b"$argon2id$" in each for each in kept) and not any(secret in each for each in kept)
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", f"the master key was created; it is in {box.first_key} until its first use")
    ]


async def test_an_interrupted_first_start_makes_a_new_key(box: Box) -> None:
    box.first_key.write_text("lrs_master_old\n")
    authenticator = await box.start()
    assert box.files() == {"first-key": 0o600}
    assert who(await authenticator.identify(box.first_key.read_text().strip())) == OWNER


async def test_a_configured_key_changes_no_file(box: Box) -> None:
    authenticator = await box.start(Auth(master_key="configured-by-its-owner", source="home.toml"))
    assert box.files() == {} and box.stored is None
    assert who(await authenticator.identify("configured-by-its-owner")) == OWNER


async def test_a_configured_key_replaces_the_boxs_own_while_it_exists(box: Box) -> None:
    await box.start()
    key = box.first_key.read_text().strip()
    authenticator = await box.start(Auth(master_key="configured-by-its-owner", source="home.toml"))
    with pytest.raises(Unauthenticated):
        await authenticator.identify(key)
    assert who(await (await box.start()).identify(key)) == OWNER


async def test_a_first_key_that_cannot_be_removed_is_valid(box: Box, caplog: pytest.LogCaptureFixture) -> None:
    authenticator = await box.start()
    key = box.first_key.read_text().strip()
    box.first_key.unlink()
    (box.first_key / "in the way").mkdir(parents=True)
    assert who(await authenticator.identify(key)) == OWNER
    [warning] = [each for each in caplog.records if "cannot be removed" in each.message]
    assert warning.levelname == "WARNING"
    assert str(box.first_key) in warning.message


class TestPrivateFiles:
    def test_private_files_are_readable_by_their_owner_only_whatever_the_umask(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            write_private(tmp_path / "key", b"secret\n")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
        assert (tmp_path / "key").read_text() == "secret\n"
        assert [file.name for file in tmp_path.iterdir()] == ["key"]

    def test_an_existing_file_is_replaced_with_its_permissions(self, tmp_path: Path) -> None:
        (tmp_path / "key").write_text("old and longer\n")
        (tmp_path / "key").chmod(0o644)
        write_private(tmp_path / "key", b"new\n")
        assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
        assert (tmp_path / "key").read_text() == "new\n"

    def test_a_link_in_place_of_a_private_file_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "victim").write_text("precious")
        (tmp_path / "key.part").symlink_to(tmp_path / "victim")
        write_private(tmp_path / "key", b"secret\n")
        assert (tmp_path / "victim").read_text() == "precious"
        assert (tmp_path / "key").read_text() == "secret\n"

    def test_an_unwritable_private_file_ends_the_start(self, tmp_path: Path) -> None:
        with pytest.raises(StartFailed) as failed:
            write_private(tmp_path / "gone" / "key", b"secret\n")
        assert str(failed.value) == f"cannot write {tmp_path}/gone/key: No such file or directory"
        assert failed.value.exit_code == os.EX_IOERR
