"""Loop lag, looked at every 5 ms: of a hub from a process beside it, of a loop of this process by a task.

`python -m benchmarks._lag PORT` asks the hub at the port until its standard input ends, then prints what it found.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator

from benchmarks._client import percentile
from benchmarks._frame import Row, Sample
from benchmarks._processes import ROOT

EVERY_SECS = 0.005
ASKED = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"

TURNS = (
    "a look is a request, which takes three turns of the loop, so that it waits longer than any turn took; beside a "
    "flood of connections a turn itself waits for the kernel to accept and to close (1 ms of processor time in 15)"
)
P99 = Row(label="loop lag, p99 of a look every 5 ms", unit="ms", at_most=20, why=TURNS)
MOST = Row(label="loop lag, most", unit="ms")


class Lags(list[float]):
    """How late the loop was each time, in milliseconds."""

    def samples(self, when: str = "") -> Iterator[Sample]:
        """Its two rows; `when` says, before their names, what the hub did meanwhile."""
        for row, value in ((P99, percentile(self, 99)), (MOST, max(self))):
            named = (
                Row(label=f"{when}: {row.label}", unit=row.unit, at_most=row.at_most, why=row.why) if when else row
            )
            yield named.sample(value)


@contextlib.contextmanager
def watched(port: int) -> Iterator[Lags]:
    """Look at a hub's loop within the context; the list is filled when it is left.

    A look is the cheapest request there is, so that its own work, some 30 µs, counts as lag.
    """
    command = [sys.executable, "-m", "benchmarks._lag", str(port)]
    lags = Lags()
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as looking:
        assert looking.stdout is not None
        looking.stdout.readline()
        yield lags
        lags += json.loads(looking.communicate()[0])


@contextlib.asynccontextmanager
async def watched_here() -> AsyncIterator[Lags]:
    """Look at the running loop within the context."""
    lags = Lags()
    watching = asyncio.ensure_future(_watch(lags))
    try:
        yield lags
    finally:
        watching.cancel()


async def _watch(lags: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(EVERY_SECS)
        lags.append(1000 * (time.perf_counter() - began - EVERY_SECS))


def look(port: int) -> list[float]:
    """Milliseconds that each look waited. One that was due while another waited counts from when it was due."""
    lags = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(ASKED)
        connection.recv(4096)
        print("looking", flush=True)
        due = answered = time.perf_counter()
        while not select.select([sys.stdin], [], [], max(0.0, due - time.perf_counter()))[0]:
            began = due if due < answered else time.perf_counter()
            connection.sendall(ASKED)
            if not connection.recv(4096):
                raise RuntimeError("the hub has closed the connection")
            answered = time.perf_counter()
            lags.append(1000 * (answered - began))
            due = began + EVERY_SECS
    return lags


if __name__ == "__main__":
    print(json.dumps(look(int(sys.argv[1]))))
