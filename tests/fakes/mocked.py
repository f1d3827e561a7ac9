"""Adapts aioresponses to the version of aiohttp that Lares uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from aiohttp import ClientResponse
from aioresponses import aioresponses

_initialise: Any = ClientResponse.__init__


def _initialise_without_writer(self: ClientResponse, *args: Any, **more: Any) -> None:
    more.setdefault("stream_writer", SimpleNamespace(output_size=0))
    _initialise(self, *args, **more)


@contextmanager
def mocked_answers() -> Iterator[aioresponses]:
    """Provide responses for the requests of any session. aioresponses 0.7.9 does not set the writer that aiohttp
    3.14 needs."""
    with patch.object(ClientResponse, "__init__", _initialise_without_writer), aioresponses() as answers:
        yield answers
