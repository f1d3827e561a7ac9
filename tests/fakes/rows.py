"""Runs a table of cases in one test. A separate test for each row would cost more than most rows do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any


def each_row(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run one test for all rows, like `pytest.mark.parametrize`. All failing rows are reported with their values.

    Use `each_row` for tests without fixtures, because all rows would share a fixture.
    """
    words = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    table = [(row,) if isinstance(names, str) and len(words) == 1 else tuple(row) for row in rows]
    assert table, "a table without rows proves nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def run(*owner: object) -> None:
            wrong: dict[str, Exception] = {}
            for row in table:
                case = dict(zip(words, row, strict=True))
                try:
                    test(*owner, **case)
                except Exception as failure:
                    wrong[str(case)] = failure
            if wrong:
                raise ExceptionGroup("\n".join(["rows that fail:", *wrong]), [*wrong.values()])

        run.__dict__.update(test.__dict__)  # copy the marks of the test
        run.__name__, run.__qualname__ = test.__name__, test.__qualname__
        run.__module__, run.__doc__ = test.__module__, test.__doc__
        return run

    return decorate
