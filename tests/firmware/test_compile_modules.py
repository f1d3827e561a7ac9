"""The single file contains bytecode without docstrings, except the docstrings that clients can read."""

from __future__ import annotations

import ast

from appliance.api.app import ROUTES
from appliance.api.frames import BY_EVENT
from firmware.compile_modules import DOCUMENTED, remove_docstrings

SOURCE = '''"""A module."""

from __future__ import annotations


class Home:
    """A home."""

    async def light(self):
        """Light."""
        assert self


def text():
    "Return a text."
    return "text"
'''

STRIPPED = """from __future__ import annotations

class Home:

    async def light(self):
        assert self

def text():
    return 'text'"""


def test_only_docstrings_are_removed() -> None:
    tree = ast.parse(SOURCE)
    remove_docstrings(tree)
    assert ast.unparse(tree) == STRIPPED
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)] == [11]
    empty = ast.parse('class Empty:\n    """Empty."""')
    remove_docstrings(empty)
    assert compile(empty, "empty", "exec") and ast.unparse(empty) == "class Empty:\n    pass"


def test_docstrings_that_clients_can_read_are_kept() -> None:
    shown = [*(route.handler for route in ROUTES), *(event for event, frame in BY_EVENT.items() if frame)]
    for each in shown:
        module = each.__module__.replace(".", "/") + ".py"
        assert each.__doc__ and module.startswith(DOCUMENTED), module
