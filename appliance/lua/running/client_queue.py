"""The queue of the runs that clients started, until they begin. Clients and files share the memory of the worker."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection

from appliance.lua.running.lua_run import LuaRun
from appliance.lua_worker.protocol import FrameKind

MAX_SHARE = 0.5
"""A run begins if the computing runs of clients then use at most this share of the worker. Their share is computed as
if each of them reached its memory limit."""

MAX_SHARE_OF_NEW_FILE = 0.75
"""`MAX_SHARE` for a run whose file has no computing run, so that endless runs of a file do not delay other files."""

MAX_SHARE_OF_NEW_CLIENT = 0.875
"""`MAX_SHARE` for a run whose client has no computing run, so that the runs of one client do not delay others."""

Unsent = tuple[LuaRun, FrameKind, tuple[bytes, ...]]
"""A run, and the kind and parts of its next frame."""


class ClientQueue:
    """The frames that begin runs of clients. Clients with few computing runs come first, then files with few
    computing runs, and then the oldest run."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], deque[Unsent]] = {}
        """The frames by client and name of the run, oldest first."""

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def append(self, unsent: Unsent) -> None:
        run = unsent[0]
        self._groups.setdefault((run.client, run.name), deque()).append(unsent)

    def find_next(self, computing: Collection[LuaRun], share: float) -> deque[Unsent]:
        """Return a queue that begins with the next frame, or an empty queue if no run may begin now.

        `computing` contains the computing runs of clients. With a further run, they use this share of the worker.
        """
        if not all(self._groups.values()):
            self._groups = {group: waiting for group, waiting in self._groups.items() if waiting}
        if share > MAX_SHARE_OF_NEW_CLIENT:
            return deque()
        clients = Counter(run.client for run in computing)
        files = Counter(run.name for run in computing)

        def max_share(group: tuple[str, str]) -> float:
            if group[0] not in clients:
                return MAX_SHARE_OF_NEW_CLIENT
            return MAX_SHARE if group[1] in files else MAX_SHARE_OF_NEW_FILE

        def order(group: tuple[str, str]) -> tuple[float, int, int, int]:
            oldest, *_ = self._groups[group][0]
            return -max_share(group), clients[group[0]], files[group[1]], oldest.number

        allowed = [group for group in self._groups if share <= max_share(group)]
        return self._groups[min(allowed, key=order)] if allowed else deque()

    def take_all(self) -> list[Unsent]:
        taken = [each for waiting in self._groups.values() for each in waiting]
        self._groups = {}
        return taken
