"""Request metrics: how many requests each route had, how they were answered, and how long that took.

They are shown in Prometheus's text format, version 0.0.4.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from sanic import HTTPResponse, Request
from sanic.exceptions import MethodNotAllowed, NotFound, SanicException

from appliance.api.responses import status_of
from appliance.api.route import Route
from appliance.errors import LaresError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Sample = tuple[str, float]
"""What stands behind the family's name (a suffix, labels), and the value."""


class Family(Struct, frozen=True, kw_only=True):
    """The samples of one metric. `type` is `counter`, `gauge`, `histogram` or `summary`."""

    name: str
    type: str
    help: str
    samples: Iterable[Sample]


def gauge(name: str, help_: str, value: float | None, /) -> Family:
    """A gauge of one sample; none where the value is not known."""
    return Family(name=name, type="gauge", help=help_, samples=[] if value is None else [("", value)])


def counter(name: str, help_: str, value: float, /) -> Family:
    """A counter of one sample; its name ends in `_total`."""
    return Family(name=name, type="counter", help=help_, samples=[("", value)])


def by_label(name: str, type_: str, help_: str, label: str, values: Mapping[str, float], /) -> Family:
    """A metric with one label, and its value for each value of that."""
    samples = [(labels({label: key}), value) for key, value in values.items()]
    return Family(name=name, type=type_, help=help_, samples=samples)


def labels(pairs: Mapping[str, str]) -> str:
    """The labels as they stand behind a name."""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in pairs.items()) + "}"


def expose(families: Iterable[Family]) -> bytes:
    """The text of the families; those without samples are left out."""
    lines: list[str] = []
    for family in families:
        samples = [f"{family.name}{behind} {_number(value)}" for behind, value in family.samples]
        if samples:
            lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.type}", *samples]
    return "\n".join([*lines, ""]).encode()


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


BUCKETS_SECS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper ends of the histogram's buckets."""

UNMATCHED = "unmatched"
"""The route of requests whose path or method is no route's."""

Handle = Callable[..., Coroutine[Any, Any, HTTPResponse | None]]
HandleError = Callable[[Request, Exception], Coroutine[Any, Any, HTTPResponse]]

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class RequestMetrics:
    """Counts requests by method, route and status, and their times by method and route."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, int]] = Counter()
        self._times: dict[tuple[str, str], list[int]] = {}
        self._sums: Counter[tuple[str, str]] = Counter()

    def measure(self, route: Route, handle: Handle) -> Handle:
        """The same, counted and timed. A client that hangs up before its answer is counted as 499."""

        async def measured(request: Request, **ids: str) -> HTTPResponse | None:
            loop, status = asyncio.get_running_loop(), 500
            began = loop.time()
            try:
                response = await handle(request, **ids)
                status = 101 if response is None else response.status
                return response
            except asyncio.CancelledError:
                status = 499
                raise
            except (LaresError, SanicException) as error:
                status = status_of(error) if isinstance(error, LaresError) else error.status_code
                raise
            finally:
                self.count(request.method, route.path, status)
                if not route.is_websocket:
                    self.observe(request.method, route.path, loop.time() - began)

        return measured

    def count_unmatched(self, handle_error: HandleError) -> HandleError:
        """The same handler, which also counts requests that match no route."""

        async def counted(request: Request, error: Exception) -> HTTPResponse:
            response = await handle_error(request, error)
            if isinstance(error, NotFound | MethodNotAllowed):
                self.count(request.method, UNMATCHED, response.status)
            return response

        return counted

    def count(self, method: str, route: str, status: int) -> None:
        """Count a request that was answered so."""
        self._counts[method if method in _METHODS else "other", route, status] += 1

    def observe(self, method: str, route: str, seconds: float) -> None:
        """Note how long it took to answer a request of this route."""
        times = self._times.setdefault((method, route), [0] * (len(BUCKETS_SECS) + 1))
        times[bisect_left(BUCKETS_SECS, seconds)] += 1
        self._sums[method, route] += seconds  # type: ignore[assignment]

    def families(self) -> list[Family]:
        """Both as metrics."""
        counts = (
            (labels({"method": method, "route": route, "status": str(status)}), count)
            for (method, route, status), count in sorted(self._counts.items())
        )
        return [
            Family(
                name="lares_http_requests_total",
                type="counter",
                help="Requests by method, route and status.",
                samples=counts,
            ),
            Family(
                name="lares_http_request_duration_seconds",
                type="histogram",
                help="Time from the head of a request to its response, by method and route.",
                samples=self._buckets(),
            ),
        ]

    def _buckets(self) -> Iterator[Sample]:
        for (method, route), times in sorted(self._times.items()):
            which, below = {"method": method, "route": route}, 0
            for end, count in zip((*map(str, BUCKETS_SECS), "+Inf"), times, strict=True):
                below += count
                yield "_bucket" + labels({**which, "le": end}), below
            yield "_sum" + labels(which), self._sums[method, route]
            yield "_count" + labels(which), below
