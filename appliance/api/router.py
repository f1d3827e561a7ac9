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


class _RestPattern(Struct, frozen=True):
    """A path with an id that consists of one or more segments. The name of such an id ends in `_path`."""

    before: tuple[str, ...]
    name: str
    after: tuple[str, ...]
    handlers: Mapping[str, RouteHandler]

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """Return the ids in a path, or None if the path does not match."""
        first, last = len(self.before), len(segments) - len(self.after)
        if first >= last or tuple(segments[:first]) != self.before or not all(segments[first:]):
            return None
        ids = {self.name: "/".join(map(unquote, segments[first:last]))}
        for word, segment in zip(self.after, segments[last:], strict=True):
            if word.startswith("<"):
                ids[word[1:-1]] = unquote(segment)
            elif word != segment:
                return None
        return ids


class _Pattern(Struct, frozen=True):
    """A path whose ids are single segments. `fixed` contains each fixed segment with its position, and `ids` contains
    the name of each id with its position."""

    fixed: tuple[tuple[int, str], ...]
    ids: tuple[tuple[int, str], ...]
    handlers: Mapping[str, RouteHandler]

    def matches(self, segments: list[str]) -> bool:
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
        self._patterns: dict[int, list[_Pattern]] = {}
        self._rest_patterns: list[_RestPattern] = []
        self._match = lru_cache(MAX_KEPT_PATHS)(self._find_handlers)

    def add(self, path: str, methods: Iterable[str], handler: RouteHandler) -> None:
        """Add the handler for these methods of a path. `<name>` in the path is an id."""
        if path not in self._paths and "_path>" in path:
            words = path.split("/")
            at = next(index for index, word in enumerate(words) if word.endswith("_path>"))
            before, after = tuple(words[:at]), tuple(words[at + 1 :])
            rest = _RestPattern(before, words[at][1:-1], after, self._paths.setdefault(path, {}))
            self._rest_patterns = sorted([*self._rest_patterns, rest], key=lambda each: -len(each.after))
        elif path not in self._paths and "<" in path:
            parts = [*enumerate(path.split("/"))]
            fixed = tuple((index, text) for index, text in parts if not text.startswith("<"))
            ids = tuple((index, text[1:-1]) for index, text in parts if text.startswith("<"))
            pattern = _Pattern(fixed, ids, self._paths.setdefault(path, {}))
            self._patterns.setdefault(len(parts), []).append(pattern)
        self._paths.setdefault(path, {}).update(dict.fromkeys(methods, handler))

    def find(self, method: str, path: str) -> tuple[RouteHandler, dict[str, str]]:
        """Return the handler for the method, and the ids in the path. Each id is a non-empty segment, decoded from
        percent-encoding once.

        Raise `NotFound`, or `MethodNotAllowed` with the methods of the path.
        """
        handlers, ids = self._match(path)
        if (handler := handlers.get(method)) is None:
            raise MethodNotAllowed(method=method, allowed_methods=sorted(handlers))
        return handler, ids

    def _find_handlers(self, path: str) -> tuple[Mapping[str, RouteHandler], dict[str, str]]:
        if (handlers := self._paths.get(path)) is not None and "<" not in path:
            return handlers, {}
        segments = path.split("/")
        for pattern in self._patterns.get(len(segments), ()):
            if pattern.matches(segments):
                return pattern.handlers, {name: unquote(segments[index]) for index, name in pattern.ids}
        for rest in self._rest_patterns:
            if (ids := rest.match(segments)) is not None:
                return rest.handlers, ids
        raise NotFound
