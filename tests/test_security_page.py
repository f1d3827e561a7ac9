"""`docs/security.md` names a test for each claim, and each is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from appliance.api.app import ROUTES
from tests.api.caller import call, request
from tests.fakes.house import House

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "security.md"

PUBLIC = {"/health", "/ready"}
"""What is answered without a key, beside the dashboard's own files."""


@cache
def names_in(file: str) -> set[str]:
    """The names of the tests in this file."""
    tree = ast.parse((ROOT / file).read_text())
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in ast.walk(tree) if isinstance(node, functions) and node.name.startswith("test_")}


def test_each_claim_names_a_test_and_each_test_is_there() -> None:
    claims = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "| Test |" not in line]
    assert len(claims) > 20
    for claim in claims:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", claim)
        assert named, f"no test: {claim}"
        missing = [f"{file}::{name}" for file, name in named if name not in names_in(file)]
        assert not missing, f"there is no {missing}: {claim}"


async def test_a_page_that_points_its_own_name_at_the_hub_reads_nothing_that_asks_for_a_key(house: House) -> None:
    async with call(house.url) as caller:
        for path in sorted(PUBLIC):
            asked = request("GET", path, "Origin: http://evil.example").replace(b"Host: lares", b"Host: evil.example")
            reply = await caller.ask(asked)
            assert (reply.status, reply.json) == (200, {"status": "ok"})
            assert reply.header("access-control-allow-origin") is None
    for route in ROUTES:
        if route.role is None:
            assert route.path in PUBLIC or route.path == "/" or route.path.startswith("/dashboard")
            continue
        path = re.sub(r"<\w+>", "x", route.path)
        headers = {"Host": "evil.example", "Origin": "http://evil.example"}
        answer = await house.ask(route.method, path, token=None, headers=headers)
        assert (answer.status, answer.json["code"]) == (401, "authentication_required"), (route.method, path)
