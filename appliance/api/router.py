"""Finds the handler for a path and method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import unquote

from msgspec import Struct
from sanic.exceptions import MethodNotAllowed, NotFound

from appliance.api.route import Handler, Route

RouteHandler = tuple[Route, Handler]


MAX_KEPT_PATHS = 1024
"""Maximum number of recently requested paths whose routes are cached."""

_Segments = tuple[str, ...]


class _RestPattern(Struct, frozen=True):
    """A path with an id that consists of one or more segments. The name of such an id ends in `_path`."""

    before: _Segments
    name: str
    after: _Segments
    handlers: Mapping[str, RouteHandler]

    def match(self, segments: _Segments) -> dict[str, str] | None:
        """Return the ids in a path, or None if the path does not match."""
        first, last = len(self.before), len(segments) - len(self.after)
        if first >= last or segments[:first] != self.before or not all(segments[first:]):
            return None
        ids = {self.name: "/".join(segments[first:last])}
        for word, segment in zip(self.after, segments[last:], strict=True):
            if word.startswith("<"):
                ids[word[1:-1]] = segment
            elif word != segment:
                return None
        return ids


class _Pattern(Struct, frozen=True):
    """A path whose ids are single segments. `fixed` contains each fixed segment with its position, and `ids` contains
    the name of each id with its position."""

    fixed: tuple[tuple[int, str], ...]
    ids: tuple[tuple[int, str], ...]
    handlers: Mapping[str, RouteHandler]

    def matches(self, segments: _Segments) -> bool:
        """Return whether a path with the same number of segments matches."""
        return all(segments[index] == text for index, text in self.fixed) and all(segments[i] for i, _ in self.ids)


class Router:
    """Routes by path and method. A fixed path takes precedence over a path with ids, even for methods that only the
    path with ids supports.

    Sanic's router is not used, because its generation and compilation of Python code at each start take a tenth of
    the start time.
    """

    def __init__(self) -> None:
        self._paths: dict[str, dict[str, RouteHandler]] = {}
        self._fixed: dict[_Segments, Mapping[str, RouteHandler]] = {}
        self._patterns: dict[int, list[_Pattern]] = {}
        self._rest_patterns: list[_RestPattern] = []
        self._match = lru_cache(MAX_KEPT_PATHS)(self._find_handlers)

    def add(self, path: str, methods: Iterable[str], handler: RouteHandler) -> None:
        """Add the handler for these methods of a path. `<name>` in the path is an id."""
        if path not in self._paths:
            self._paths[path] = {}
            self._add_path(tuple(path.split("/")), self._paths[path])
        self._paths[path].update(dict.fromkeys(methods, handler))

    def _add_path(self, words: _Segments, handlers: Mapping[str, RouteHandler]) -> None:
        ids = tuple((index, text[1:-1]) for index, text in enumerate(words) if text.startswith("<"))
        rest = next((index for index, name in ids if name.endswith("_path")), None)
        if rest is not None:
            pattern = _RestPattern(words[:rest], words[rest][1:-1], words[rest + 1 :], handlers)
            self._rest_patterns = sorted([*self._rest_patterns, pattern], key=lambda each: -len(each.after))
        elif ids:
            fixed = tuple((index, text) for index, text in enumerate(words) if not text.startswith("<"))
            self._patterns.setdefault(len(words), []).append(_Pattern(fixed, ids, handlers))
        else:
            self._fixed[words] = handlers

    def find(self, method: str, path: str) -> tuple[RouteHandler, dict[str, str]]:
        """Return the handler for the method, and the ids in the path. Each id is a non-empty segment.

        Raise `NotFound`, or `MethodNotAllowed` with the methods of the path.
        """
        handlers, ids = self._match(path)
        if (handler := handlers.get(method)) is None:
            raise MethodNotAllowed(method=method, allowed_methods=sorted(handlers))
        return handler, ids

    def _find_handlers(self, path: str) -> tuple[Mapping[str, RouteHandler], dict[str, str]]:
        """Decode each segment once, and match the decoded segments. An encoded slash does not separate segments."""
        segments = tuple(map(unquote, path.split("/")))
        if (handlers := self._fixed.get(segments)) is not None:
            return handlers, {}
        for pattern in self._patterns.get(len(segments), ()):
            if pattern.matches(segments):
                return pattern.handlers, {name: segments[index] for index, name in pattern.ids}
        for rest in self._rest_patterns:
            if (ids := rest.match(segments)) is not None:
                return rest.handlers, ids
        raise NotFound
