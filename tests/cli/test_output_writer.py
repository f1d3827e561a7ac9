"""A log that cannot be written neither stops the hub nor changes its exit code."""

from __future__ import annotations

import fcntl
import os
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.cli.commands import KEY, LOOPBACK, PATIENCE, WITH_KEY, Running, box, lares, status_of, until
from tests.fakes.process import free_port

ROUNDS, LINES = 6, 100
LOUD = f"""return {{ id = "loud", name = "Loud", execute = function(ctx)
  for line = 1, {LINES} do ctx:log("info", "loud " .. line .. string.rep(" x", 500)) end
end }}"""
DROPPED = rb"the reader of standard error stalled; (\d+) lines were dropped; `lares log` shows the latest log lines"


@pytest.fixture
def pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "wb", 0) as writer:
        yield reader, writer


def start(folder: Path) -> str:
    """Configure a hub with a free port and a scene that logs 600 kB in six executions. Return the hub's address."""
    port = free_port()
    box(folder, f'[api]\nbind_address = "127.0.0.1:{port}"\n')
    (folder / "config" / "scenes").mkdir()
    (folder / "config" / "scenes" / "loud.lua").write_text(LOUD)
    return f"http://127.0.0.1:{port}"


def is_ready(url: str) -> bool:
    try:
        return status_of(url, None, path="/ready") == 200
    except urllib.error.URLError:
        return False


def execute(url: str) -> int:
    headers = {"Authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(f"{url}/scenes/loud/execute", b"{}", headers, method="POST")
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return int(answer.status)


def fill_pipe_and_queue(running: Running, url: str) -> None:
    until(lambda: is_ready(url) or running.process.poll() is not None, "the hub")
    assert [execute(url) for _ in range(ROUNDS)] == [200] * ROUNDS
    assert status_of(url, None, path="/health") == 200


def test_a_reader_that_stalls_stops_neither_the_hub_nor_its_stop(
    tmp_path: Path, pipe: tuple[BinaryIO, BinaryIO]
) -> None:
    url, (reader, writer) = start(tmp_path), pipe
    with lares(tmp_path, "run", variables=WITH_KEY, stderr=writer.fileno()) as running:
        fill_pipe_and_queue(running, url)
        running.stop()
        writer.close()
        assert b" hub: Lares " in reader.readline()


def test_a_reader_that_reads_again_gets_the_waiting_lines_and_the_number_of_the_others(
    tmp_path: Path, pipe: tuple[BinaryIO, BinaryIO]
) -> None:
    url, (reader, writer) = start(tmp_path), pipe
    with lares(tmp_path, "run", variables=WITH_KEY, stderr=writer.fileno()) as running:
        writer.close()
        fill_pipe_and_queue(running, url)
        lines: list[bytes] = []
        reading = threading.Thread(target=lambda: lines.extend(reader))
        reading.start()
        until(lambda: any(re.search(DROPPED, line) for line in lines), "the number of dropped lines")
        assert execute(url) == 200
        running.stop()
        reading.join(PATIENCE)
    loud = [b": loud " in line for line in lines]
    [gap] = [number for number, line in enumerate(lines) if re.search(DROPPED, line)]
    found = re.search(DROPPED, lines[gap])
    assert found is not None and 0 < sum(loud[:gap]) < ROUNDS * LINES <= sum(loud[:gap]) + int(found[1])
    assert all(b" x" * 500 in line for line in lines if b": loud " in line), "no line is cut"
    assert sum(loud[gap:]) == LINES
    assert [line.split(b" hub: ")[-1] for line in lines[-2:]] == [b"stopping\n", b"stopped\n"]


def test_a_start_that_fails_does_not_wait_for_a_reader_that_stalls(
    tmp_path: Path, pipe: tuple[BinaryIO, BinaryIO]
) -> None:
    box(tmp_path, LOOPBACK + "[unknown]\n")
    _, writer = pipe
    os.set_blocking(writer.fileno(), False)
    while writer.write(b"x" * 4096) is not None:
        pass
    os.set_blocking(writer.fileno(), True)
    with lares(tmp_path, "run", variables=WITH_KEY, stderr=writer.fileno()) as running:
        assert running.end().code == os.EX_CONFIG


@pytest.mark.parametrize("is_full_disk", [True, False], ids=["full disk", "no reader"])
def test_a_log_that_cannot_be_written_does_not_change_the_exit_code(
    tmp_path: Path, pipe: tuple[BinaryIO, BinaryIO], *, is_full_disk: bool
) -> None:
    url, (reader, writer) = start(tmp_path), pipe
    reader.close()
    with Path("/dev/full").open("wb", 0) as full:
        stderr = full if is_full_disk else writer
        with lares(tmp_path, "run", variables=WITH_KEY, stderr=stderr.fileno()) as running:
            until(lambda: is_ready(url) or running.process.poll() is not None, "the hub")
            running.stop()


@pytest.mark.slow
def test_a_reader_that_stalls_does_not_stop_the_demo(tmp_path: Path, pipe: tuple[BinaryIO, BinaryIO]) -> None:
    reader, writer = pipe
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    variables = {"TMPDIR": str(tmp_path)}
    with lares(tmp_path, "demo", "--port", "0", stdout=writer.fileno(), variables=variables) as running:
        greeting = b""
        while not greeting.endswith(b"Ctrl-C ends the demo.\n"):
            greeting += reader.readline()
        [url], [key] = (re.findall(rf"{name} +(\S+)\n", greeting.decode()) for name in ("REST", "key"))
        headers = {"Authorization": f"Bearer {key}"}
        for number in range(60):
            command = b'{"capability": "brightness", "action": "set", "value": %d}' % (number + 1)
            address = f"{url}/devices/elgato_lights:light:0/command"
            with urllib.request.urlopen(
                urllib.request.Request(address, command, headers), timeout=PATIENCE
            ) as answer:
                assert answer.status == 200
        running.stop()
