"""The router: which handler a method and a path have.

Sanic's own writes Python source for its routes and compiles it at each start, which takes a tenth of the whole start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import unquote

from msgspec import Struct
from sanic.exceptions import MethodNotAllowed, NotFound

from appliance.api.request_metrics import Handle

MAX_KEPT_PATHS = 1024
"""The latest paths that were asked for, and have a route."""


class _Pattern(Struct, frozen=True):
    """A path with ids, in segments: what is fixed and where, and the names of the ids and where."""

    fixed: tuple[tuple[int, str], ...]
    ids: tuple[tuple[int, str], ...]
    handlers: Mapping[str, Handle]

    def matches(self, segments: list[str]) -> bool:
        """Whether a path of as many segments is one of these."""
        return all(segments[index] == text for index, text in self.fixed) and all(segments[i] for i, _ in self.ids)


class Router:
    """Routes by path and method. A path that is fixed comes before one with ids, whatever its methods are."""

    def __init__(self) -> None:
        self._paths: dict[str, dict[str, Handle]] = {}
        self._patterns: dict[int, list[_Pattern]] = {}
        self._match = lru_cache(MAX_KEPT_PATHS)(self._find_handlers)

    def add(self, path: str, methods: Iterable[str], handle: Handle) -> None:
        """Let `handle` be called for these methods of the path, in which `<name>` stands for an id."""
        if path not in self._paths and "<" in path:
            parts = [*enumerate(path.split("/"))]
            fixed = tuple((index, text) for index, text in parts if not text.startswith("<"))
            ids = tuple((index, text[1:-1]) for index, text in parts if text.startswith("<"))
            pattern = _Pattern(fixed, ids, self._paths.setdefault(path, {}))
            self._patterns.setdefault(len(parts), []).append(pattern)
        self._paths.setdefault(path, {}).update(dict.fromkeys(methods, handle))

    def find(self, method: str, path: str) -> tuple[Handle, dict[str, str]]:
        """The handler, and the ids of the path as it was sent: one segment each, not empty, percent-decoded once.

        Raises `NotFound`, or `MethodNotAllowed` with the methods that the path has.
        """
        handlers, ids = self._match(path)
        if (handle := handlers.get(method)) is None:
            raise MethodNotAllowed(method=method, allowed_methods=sorted(handlers))
        return handle, ids

    def _find_handlers(self, path: str) -> tuple[Mapping[str, Handle], dict[str, str]]:
        if (handlers := self._paths.get(path)) is not None and "<" not in path:
            return handlers, {}
        segments = path.split("/")
        for pattern in self._patterns.get(len(segments), ()):
            if pattern.matches(segments):
                return pattern.handlers, {name: unquote(segments[index]) for index, name in pattern.ids}
        raise NotFound
