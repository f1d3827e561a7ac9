"""The data directory of a running hub is moved, replaced, or unmounted. The hub then writes nothing to the old
path."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.store.document_files import DocumentFiles
from appliance.store.lock import DirectoryLock
from tests.fakes.app import open_app
from tests.fakes.patience import until
from tests.fakes.process import configure, running
from tests.fakes.programs import need

pytestmark = pytest.mark.slow

ROOM = {"id": "den", "name": "Den"}


def move(folder: Path) -> Path:
    return folder.rename(folder.with_name("data.old"))


def replace(folder: Path) -> Path:
    """Replace the folder with an empty one."""
    old = move(folder)
    folder.mkdir()
    return old


def restore_copy(folder: Path) -> Path:
    """Replace the folder with a copy of itself, as if a backup was restored."""
    old = move(folder)
    shutil.copytree(old, folder)
    return old


def replace_by_link(folder: Path) -> Path:
    """Replace the folder with a link to a copy."""
    old = move(folder)
    shutil.copytree(old, folder.with_name("other"))
    folder.symlink_to("other")
    return old


def list_contents(folder: Path) -> dict[str, bytes]:
    """Return all files of the folder, except the lock."""
    files = (each for each in folder.rglob("*") if each.is_file() and each.name != "lock")
    return {str(each.relative_to(folder)): each.read_bytes() for each in files}


@pytest.mark.parametrize("take_away", [move, replace, restore_copy, replace_by_link])
@pytest.mark.parametrize("compacts", [False, True], ids=["append", "compaction"])
async def test_a_missing_data_directory_is_503_and_one_line_and_never_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, take_away: Callable[[Path], Path], *, compacts: bool
) -> None:
    caplog.set_level(logging.INFO)
    folder = tmp_path / "Data"
    folder.mkdir()
    async with open_app(data_dir=folder, adapters={}) as app:
        assert (await app.post("/rooms", ROOM)).status == 200
        if compacts:
            files: DocumentFiles = app.hub.store.document._files
            files._compact_at = 0
        old = take_away(folder)
        before = list_contents(old), list_contents(folder)
        for _ in range(3):
            answer = await app.post("/rooms", {"id": "attic", "name": "Attic"})
            assert (answer.status, answer.json["code"]) == (503, "store_unavailable")
            assert f"the data directory {folder} was moved, replaced, or unmounted" in answer.json["error"]
            assert (await app.get("/rooms/attic")).status == 404 and (await app.get("/rooms/den")).status == 200
        await app.hub.store.recorder.flush()
        assert (list_contents(old), list_contents(folder)) == before
        assert caplog.text.count("was moved, replaced, or unmounted") == 1
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            with_other_hub = DirectoryLock(folder)
            with_other_hub.release()
            shutil.rmtree(folder)
        old.rename(folder)
        assert (await app.post("/rooms", {"id": "attic", "name": "Attic"})).status == 200
        assert "changes can be stored again" in caplog.text
    async with open_app(data_dir=folder, adapters={}) as app:
        assert [each["id"] for each in (await app.get("/rooms")).json] == ["attic", "den"]


async def test_the_data_directory_can_be_missing_at_the_stop(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    async with open_app(data_dir=folder, adapters={}) as app:
        assert (await app.post("/rooms", ROOM)).status == 200
        old = replace(folder)
        assert (await app.ask("PUT", "/variables/a", json={"value": 1})).status == 503
    assert list_contents(folder) == {}
    async with open_app(data_dir=old, adapters={}) as app:
        assert [each["id"] for each in (await app.get("/rooms")).json] == ["den"]


MOUNTED = 'mount -t tmpfs none data || exit 99; exec "$@"'
TAKEN_AWAY = {
    "a file system over it": ("mount -t tmpfs none data", "umount data"),
    "another folder bound over it": ("mount --bind other data", "umount data"),
    "unmounted": ("umount --lazy data", None),
}


@pytest.mark.slow
@pytest.mark.parametrize(("take", "put_back"), TAKEN_AWAY.values(), ids=TAKEN_AWAY)
async def test_an_unmounted_folder_is_503_until_it_returns(tmp_path: Path, take: str, put_back: str | None) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    configure(tmp_path)
    for name in ("data", "other"):
        (tmp_path / name).mkdir()
    own = [need("unshare"), "--mount", "sh", "-c", MOUNTED, "sh"]
    if (await asyncio.to_thread(subprocess.run, [*own, "true"], cwd=tmp_path, capture_output=True)).returncode:
        pytest.skip("no filesystem can be mounted here")
    async with running(tmp_path, arguments=["--data-dir", "data"], prefix=own) as hub:

        async def run(command: str) -> str:
            there = ["nsenter", f"--mount=/proc/{hub.popen.pid}/ns/mnt", "sh", "-c", f"cd {tmp_path} && {command}"]
            return await asyncio.to_thread(subprocess.check_output, there, text=True)

        assert await hub.post("/rooms", **ROOM) == 200
        await run(take)
        for _ in range(3):
            assert await hub.post("/rooms", id="attic", name="Attic") == 503
        assert await run("ls -A data other") == "data:\n\nother:\n"
        await until(lambda: hub.log.read_text().count("was moved, replaced, or unmounted") == 1)
        if put_back is not None:
            await run(put_back)
            assert await hub.post("/rooms", id="attic", name="Attic") == 200
            await until(lambda: "changes can be stored again" in hub.log.read_text())
        assert await hub.stop() == 0
    assert list_contents(tmp_path / "other") == list_contents(tmp_path / "data") == {}
