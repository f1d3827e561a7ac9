"""Limits the processor time for the messages of one broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from appliance.adapters.mqtt.inbox import MAX_WAITING_BYTES
from appliance.clock import Clock

TOPIC_SHARE = 0.1
"""Maximum share of processor time for one topic, averaged over time."""

HEAVY_SHARE = 0.4
"""Maximum share of processor time for all expensive topics together. On an expensive topic, a message takes more than
`LIGHT_SECS`."""

BURST_SECS = 0.1
"""Processor seconds that a topic, or all expensive topics together, may use before the shares apply."""

LIGHT_SECS = 0.001
"""Maximum processor seconds of a cheap message."""

MAX_PARKED = 60_000
"""Maximum number of topics with parked work. Any client can publish to any number of topics."""


class _Parked(NamedTuple):
    """The remaining steps of a message, and the memory of the message in bytes."""

    work: Iterator[None]
    size: int


class Budget:
    """Processes each message in steps. Expensive work is parked until its topic may use more time.

    A newer message of a topic replaces the topic's parked work. Beyond `MAX_PARKED` topics or `MAX_WAITING_BYTES`,
    the oldest parked work is discarded. `dropped` counts these messages. Messages of cheap topics never wait for
    expensive ones. `on_costly` is called with each expensive topic that must wait, but not with a topic that waits
    only for others. Only topics that `is_known` accepts are remembered as cheap, because any client can publish to
    any number of topics.
    """

    def __init__(self, clock: Clock, on_costly: Callable[[str], None], is_known: Callable[[str], bool]) -> None:
        self.parked: dict[str, _Parked] = {}
        self._parked_bytes = 0
        self.dropped = 0
        self._clock = clock
        self._on_costly = on_costly
        self._is_known = is_known
        self._spent: dict[str, tuple[float, float]] = {}
        self._heavy = (0.0, clock.monotonic())
        self._cheap: set[str] = set()

    def run(self, topic: str, work: Iterator[None], size: int) -> Iterator[None]:
        """Process a message of this size step by step, or park the remaining steps."""
        if topic in self.parked:
            self._park(topic, work, size)
            self.dropped += 1
            return
        cost = 0.0
        while not self._must_wait(topic):
            began = time.thread_time()
            is_over = next(work, self) is self
            secs = time.thread_time() - began
            cost += secs
            self.spend(topic, secs, cost)
            if is_over:
                return
            yield
        self._park(topic, work, size)
        if topic in self._spent:
            self._on_costly(topic)

    def _park(self, topic: str, work: Iterator[None], size: int) -> None:
        """Park work in the place of the topic's earlier work, and apply the limits."""
        earlier = self.parked.get(topic)
        self._parked_bytes += size - (0 if earlier is None else earlier.size)
        self.parked[topic] = _Parked(work, size)
        while len(self.parked) > MAX_PARKED or self._parked_bytes > MAX_WAITING_BYTES:
            self._take_parked(next(iter(self.parked)))
            self.dropped += 1

    def _take_parked(self, topic: str) -> _Parked:
        parked = self.parked.pop(topic)
        self._parked_bytes -= parked.size
        return parked

    @property
    def is_idle(self) -> bool:
        """Whether `resume` has no work."""
        return not (self.parked or self._spent)

    def clear(self) -> None:
        """Discard the parked work without counting it, because the connection is lost."""
        self.parked.clear()
        self._parked_bytes = 0

    def resume(self) -> Iterator[None]:
        """Continue parked work once its topic may use processor time again."""
        for topic in list(self.parked):
            if topic in self.parked and not self._must_wait(topic):
                parked = self._take_parked(topic)
                yield from self.run(topic, parked.work, parked.size)
            yield
        self._spent = {topic: spent for topic, spent in self._spent.items() if self._level(spent, TOPIC_SHARE) > 0}

    def forget(self, topic: str) -> None:
        """Forget that this topic is cheap."""
        self._cheap.discard(topic)

    def forget_unknown(self) -> Iterator[None]:
        """Forget the cheap topics that are no longer known, one per step."""
        for topic in [*self._cheap]:
            if not self._is_known(topic):
                self.forget(topic)
            yield

    def spend(self, topic: str, secs: float, cost: float) -> None:
        """Charge seconds to a topic. `cost` is the total for the topic's current message."""
        now = self._clock.monotonic()
        if cost <= LIGHT_SECS:
            if self._is_known(topic):
                self._cheap.add(topic)
        else:
            self._cheap.discard(topic)
            self._spent[topic] = (self._level(self._spent.get(topic), TOPIC_SHARE) + secs, now)
            self._heavy = (self._level(self._heavy, HEAVY_SHARE) + secs, now)

    def _must_wait(self, topic: str) -> bool:
        if self._level(self._spent.get(topic), TOPIC_SHARE) > BURST_SECS:
            return True
        return topic not in self._cheap and self._level(self._heavy, HEAVY_SHARE) > BURST_SECS

    def _level(self, spent: tuple[float, float] | None, share: float) -> float:
        """`spent` contains spent seconds and their time. Subtract `share` of the time since then from the seconds.
        Return at least 0."""
        if spent is None:
            return 0.0
        secs, at = spent
        return max(secs - share * (self._clock.monotonic() - at), 0.0)
