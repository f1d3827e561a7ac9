"""Finds the route for a path and method."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import unquote

from msgspec import Struct
from sanic.exceptions import MethodNotAllowed, NotFound

from appliance.api.route import Route

MAX_KEPT_PATHS = 128
"""Maximum number of recently requested paths whose routes are cached. After requests for many paths, each cached path
keeps pages in use."""

_Segments = tuple[str, ...]


class _RestPattern(Struct, frozen=True):
    """A path with an id that consists of one or more segments. The name of such an id ends in `_path`."""

    before: _Segments
    name: str
    after: _Segments
    routes: Mapping[str, Route]

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
    routes: Mapping[str, Route]

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
        self._paths: dict[str, dict[str, Route]] = {}
        self._fixed: dict[_Segments, Mapping[str, Route]] = {}
        self._patterns: dict[int, list[_Pattern]] = {}
        self._rest_patterns: list[_RestPattern] = []
        self._match = lru_cache(MAX_KEPT_PATHS)(self._find_routes)

    def add(self, route: Route) -> None:
        """Add the route for its methods. `<name>` in its path is an id."""
        if route.path not in self._paths:
            self._paths[route.path] = {}
            self._add_path(tuple(route.path.split("/")), self._paths[route.path])
        self._paths[route.path].update(dict.fromkeys(route.methods, route))

    def _add_path(self, words: _Segments, routes: Mapping[str, Route]) -> None:
        ids = tuple((index, text[1:-1]) for index, text in enumerate(words) if text.startswith("<"))
        rest = next((index for index, name in ids if name.endswith("_path")), None)
        if rest is not None:
            pattern = _RestPattern(words[:rest], words[rest][1:-1], words[rest + 1 :], routes)
            self._rest_patterns = sorted([*self._rest_patterns, pattern], key=lambda each: -len(each.after))
        elif ids:
            fixed = tuple((index, text) for index, text in enumerate(words) if not text.startswith("<"))
            self._patterns.setdefault(len(words), []).append(_Pattern(fixed, ids, routes))
        else:
            self._fixed[words] = routes

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Return the route for the method, and the ids in the path. Each id is a non-empty segment.

        Raise `NotFound`, or `MethodNotAllowed` with the methods of the path.
        """
        routes, ids = self._match(path)
        if (route := routes.get(method)) is None:
            raise MethodNotAllowed(method=method, allowed_methods=sorted(routes))
        return route, ids

    def _find_routes(self, path: str) -> tuple[Mapping[str, Route], dict[str, str]]:
        """Decode each segment once, and match the decoded segments. An encoded slash does not separate segments."""
        segments = tuple(map(unquote, path.split("/")))
        if (routes := self._fixed.get(segments)) is not None:
            return routes, {}
        for pattern in self._patterns.get(len(segments), ()):
            if pattern.matches(segments):
                return pattern.routes, {name: segments[index] for index, name in pattern.ids}
        for rest in self._rest_patterns:
            if (ids := rest.match(segments)) is not None:
                return rest.routes, ids
        raise NotFound
