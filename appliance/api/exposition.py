"""Exposition: metrics in Prometheus's text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
