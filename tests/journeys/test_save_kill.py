"""If kill -9 interrupts saves, each file has either its old or its new text. All confirmed saves are kept, and the
hub starts."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.cli.commands import KEY, WITH_KEY, box, lares
from tests.fakes.lua import scene

PATH = "config/scenes/evening.lua"


def text_of(number: int) -> str:
    """Return a scene that is long enough for an incomplete write."""
    return scene("evening", f"local n = {number}") + f"-- {number}" * 4000


def put(url: str, number: int) -> int:
    """Save the text of this number, and return the status."""
    headers = {"Authorization": f"Bearer {KEY}"}
    data = json.dumps({"text": text_of(number)}).encode()
    request = urllib.request.Request(f"{url}/files/{PATH}", data=data, headers=headers, method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return int(answer.status)


@pytest.mark.parametrize("after", range(3))
@pytest.mark.slow
def test_a_killed_save_leaves_the_old_or_the_new_text(tmp_path: Path, after: int) -> None:
    box(tmp_path)
    saved: list[int] = []
    with lares(tmp_path, "run", variables=WITH_KEY) as running:
        url = running.url()
        assert put(url, 0) == 200
        saved.append(0)

        def save() -> None:
            with suppress(urllib.error.URLError, HTTPException, OSError):
                for number in range(1, 10_000):
                    put(url, number)
                    saved.append(number)

        person = threading.Thread(target=save)
        person.start()
        while len(saved) < 2 + 3 * after:
            person.join(0.01)
        running.process.kill()
        person.join()
    found = (tmp_path / PATH).read_text()
    assert found in (text_of(saved[-1]), text_of(saved[-1] + 1))
    versions = [file for file in (tmp_path / "data" / "versions").iterdir() if not file.name.endswith(".part")]
    assert {file.read_text() for file in versions} <= {text_of(number) for number in range(saved[-1] + 1)}
    with lares(tmp_path, "run", variables=WITH_KEY) as running:
        assert put(running.url(), 99_999) == 200
        assert (tmp_path / PATH).read_text() == text_of(99_999)
