"""Request metrics: how many requests each route had, how they were answered, and how long that took.

They are shown in Prometheus's text format, version 0.0.4.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

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

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class RequestMetrics:
    """Counts requests by method, route and status, and their times by method and route."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, int]] = Counter()
        self._times: dict[tuple[str, str], list[int]] = {}
        self._sums: Counter[tuple[str, str]] = Counter()

    def count(self, method: str, route: str, status: int, seconds: float | None = None) -> None:
        """Count a request of this route that was answered so; `seconds` is how long that took, None for a stream."""
        self._counts[method if method in _METHODS else "other", route, status] += 1
        if seconds is not None:
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
