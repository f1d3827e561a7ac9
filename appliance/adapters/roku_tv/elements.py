"""An XML text with named elements that can be read and set, and stays as it was written everywhere else."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, unescape


class Elements:
    """The leaf elements of one XML text that has no attributes and uses each name once."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get(self, name: str) -> str | None:
        """The content of the element, unescaped; None where there is no such element."""
        found = self._find(name)
        return None if found is None else unescape(found["content"] or "")

    def put(self, name: str, content: str | None) -> None:
        """Give the element this content, escaped; add it if it is missing, take it out for None."""
        if content == self.get(name):
            return
        found = self._find(name)
        if found is None:
            start = end = self.text.rindex("</")
        else:
            start, end = found.span() if content is None else found.span("element")
        written = "" if content is None else f"<{name}>{escape(content)}</{name}>"
        self.text = self.text[:start] + written + self.text[end:]

    def _find(self, name: str) -> re.Match[str] | None:
        tag = re.escape(name)
        return re.search(rf"\s*(?P<element><{tag}\s*/>|<{tag}>(?P<content>[^<]*)</{tag}>)", self.text)
