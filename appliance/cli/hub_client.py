"""Sends requests to the running hub over its control socket. If no hub runs, the module does the same work
directly."""

from __future__ import annotations

import argparse
import http.client
import os
import select
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
import orjson

from appliance.api.error_codes import status_of
from appliance.cli.exit_codes import exit_code_of
from appliance.cli.owner import become_owner
from appliance.cli.paths import HubPaths
from appliance.cli.process.control_socket import SOCKET, socket_path
from appliance.clock import Clock
from appliance.errors import LaresError, StartFailed
from appliance.store.disk import Disk, for_its_user
from appliance.store.document import Document, open_document
from appliance.store.lock import DirectoryLock, holder_of
from appliance.store.restore import finish_at_start, read_present
from appliance.store.storage import DocumentSnapshot

T = TypeVar("T")

HUB_TIMEOUT_SECS = 60.0

HUB_PATIENCE_SECS = 3.0
"""If an answer takes longer than this, a second request tests whether the hub responds. The second request has the
same time limit."""

HUB_START_SECS = 10.0
"""Time limit for waiting until a hub starts or stops, or another command ends."""

HUB_RETRY_SECS = 0.05


class HubRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the API. Query parameters with the value None are omitted."""

    path: str
    method: str = "GET"
    query: Mapping[str, Any] = {}
    body: Any = None

    @property
    def target(self) -> str:
        """Return path and query."""
        stated = {name: value for name, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(stated)}" if stated else self.path


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection to the hub that uses a data directory."""

    def __init__(self, folder: Path, timeout_secs: float) -> None:
        super().__init__("lares", timeout=timeout_secs)
        self._folder = folder

    def connect(self) -> None:
        """Connect to the socket. Raise `OSError` if no hub listens, and `StartFailed` if the hub does not accept the
        connection in time."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(HUB_PATIENCE_SECS)
        try:
            with socket_path(self._folder) as path:
                self.sock.connect(path)
        except (TimeoutError, BlockingIOError):
            raise _hangs(self._folder) from None
        self.sock.settimeout(self.timeout)

    def wait(self) -> None:
        """Wait until the answer begins, or until the hub has ended. If the wait is long, test the hub with a
        second request."""
        if select.select([self.sock], [], [], HUB_PATIENCE_SECS)[0]:
            return
        probe = _UnixConnection(self._folder, HUB_PATIENCE_SECS)
        try:
            probe.request("GET", "/health")
            probe.getresponse()
        except TimeoutError:
            raise _hangs(self._folder) from None
        except (OSError, http.client.HTTPException):
            return  # a stopping hub soon answers or closes the connection
        finally:
            probe.close()


def _hangs(folder: Path) -> StartFailed:
    return StartFailed(
        f"the hub of {folder} runs but does not answer, because it is suspended or "
        "overloaded; try again, or restart it",
        os.EX_UNAVAILABLE,
    )


def ask(data_dir: Path, request: HubRequest) -> Any:
    """Send the request to the hub that uses this data directory. Return the JSON answer, or None for an empty answer.

    Raise `OSError` if no hub listens and nothing was sent. Raise `StartFailed` if the hub rejects the request, ends,
    or does not respond.
    """
    connection = _UnixConnection(data_dir, HUB_TIMEOUT_SECS)
    try:
        connection.connect()
        try:
            body = None if request.body is None else orjson.dumps(request.body)
            connection.request(request.method, request.target, body)
            connection.wait()
            response = connection.getresponse()
            reply = orjson.loads(response.read() or b"null")
        except TimeoutError:
            raise StartFailed(
                f"no answer within {HUB_TIMEOUT_SECS:g} s; `lares status` shows the running work",
                os.EX_UNAVAILABLE,
            ) from None
        except (OSError, http.client.HTTPException, ValueError):
            more = "; `lares key list` shows the result" if request.path.startswith("/auth/") else ""
            raise StartFailed(f"the hub ended without an answer{more}", os.EX_UNAVAILABLE) from None
    finally:
        connection.close()
    if response.status >= 400:
        raise StartFailed(reply["error"], exit_code_of(response.status, reply.get("code")))
    return reply


def ask_hub(arguments: argparse.Namespace, request: HubRequest) -> Any:
    """Send the request to the hub that uses the command line's data directory.

    Raise `StartFailed` if no hub runs, if the hub rejects the request, or if a named configuration file is missing.
    """
    paths = HubPaths.of_process(arguments)
    paths.check_named_config()
    folder = paths.find_data_dir()
    become_owner(folder)
    try:
        return ask(folder, request)
    except PermissionError:
        raise for_its_user(folder / SOCKET) from None
    except OSError:
        if (holder := holder_of(folder)) is not None:
            what = f"process {holder} uses {folder}, but does not listen on control.sock in that folder"
            raise StartFailed(
                f"{what}; try again in ten seconds; if this error remains, see the hub's log, or restart the hub",
                os.EX_UNAVAILABLE,
            ) from None
        raise StartFailed(f"no hub runs on {folder}; start one with `lares run`", os.EX_UNAVAILABLE) from None


async def ask_or_act(data_dir: Path, request: Callable[[], T], act: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `request` if a hub uses the data directory, otherwise the result of `act`. `act` has
    exclusive access.

    Finish any interrupted restore before the call of `act`, because the restore would later undo the changes that
    `act` makes. Raise `StartFailed` if the hub rejects the request, or does not answer within `HUB_START_SECS`.
    """
    clock = Clock()
    deadline = clock.monotonic() + HUB_START_SECS
    while True:
        try:
            lock = DirectoryLock(data_dir, is_brief=True)
        except StartFailed as in_use:
            if in_use.exit_code != os.EX_TEMPFAIL:
                raise
            try:
                return request()
            except OSError:
                if clock.monotonic() > deadline:
                    raise StartFailed(f"{in_use}, but that hub does not answer; try again", os.EX_TEMPFAIL) from None
        else:
            try:
                finish_at_start(data_dir, clock.now())
                return await act()
            finally:
                lock.release()
        await clock.sleep(HUB_RETRY_SECS)


@asynccontextmanager
async def open_stored(data_dir: Path) -> AsyncIterator[tuple[Document, Clock]]:
    """Open the document without a running hub. An error has the same exit code as in the hub."""
    clock = Clock()
    async with open_document(Disk(data_dir), clock) as document:
        try:
            yield document, clock
        except LaresError as error:
            raise StartFailed(str(error), exit_code_of(status_of(error), error.code)) from None


def read_state(data_dir: Path) -> tuple[Mapping[str, bytes], bool]:
    """Return the values by document key from the running hub or, if no hub answers, from storage. Also return whether
    the hub answered."""
    try:
        reply = ask(data_dir, HubRequest(path="/diagnostics/state"))
        return {key: orjson.dumps(value) for key, value in reply["values"].items()}, True
    except (OSError, StartFailed):
        return read_present(data_dir).values, False


def read_snapshot(data_dir: Path) -> DocumentSnapshot | None:
    """Return the values that `read_state` returns. If there are no values and no hub answers, return None."""
    values, is_from_hub = read_state(data_dir)
    return DocumentSnapshot(values) if values or is_from_hub else None
