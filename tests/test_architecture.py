"""The house stands as ARCHITECTURE.md draws it: floors, doors, no circles, no waiting where nothing may wait."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "appliance").rglob("*.py"))

FLOORS = {
    **dict.fromkeys(("errors", "clock", "sections", "tasks", "version"), 1),
    **dict.fromkeys(("home", "locale"), 2),
    "settings": 3,
    **dict.fromkeys(("config", "adapters", "health", "history", "store", "watch"), 4),
    "lua": 5,
    **dict.fromkeys(("automations", "scenes"), 6),
    "hub": 7,
    "api": 8,
    "cli": 9,
    "__main__": 10,
    "simulators": 0,
}
"""Room to floor. Simulators stand beside the house: they may use the clock, and only the cli knows of them."""

DOORS = {
    "sanic": {"api"},
    "websockets": {"api"},
    "aiohttp": {"adapters", "simulators"},
    "tomli": {"config"},
    "argon2": {"api"},
    "defusedxml": {"adapters"},
    "lupa": {"lua"},
    "watchfiles": {"watch"},
    "astral": {"automations"},
    "croniter": {"automations"},
    "asyncio.sleep": {"clock"},
    "create_task": {"tasks"},
    "ensure_future": {"tasks"},
    "datetime.now": {"clock"},
    "datetime.utcnow": {"clock"},
    "time.time": {"clock"},
    "time.monotonic": {"clock"},
}
"""What only some rooms may import or call."""

WRITERS = {"write_text", "write_bytes", "copyfile", "os.open", "os.write", "fdopen", "mkdir", "unlink", "touch"}
"""Calls that change files: for the store, and for the cli where it brings configuration and the first key."""


def room_of(file: Path) -> str:
    """The first name under `appliance`."""
    return file.relative_to(ROOT / "appliance").parts[0].removesuffix(".py")


def imports_of(file: Path) -> Iterator[str]:
    """The dotted names that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{file}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def calls_of(file: Path) -> Iterator[str]:
    """The last two parts of the name of everything that a file calls, and the last alone."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            yield ".".join(name.split(".")[-2:])
            yield name.split(".")[-1]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
class TestEachFile:
    """What holds of every file of the house."""

    def test_imports_point_down_or_stay_in_the_room(self, file: Path) -> None:
        room = room_of(file)
        for name in imports_of(file):
            if name.startswith("appliance.") and (other := name.split(".")[1]) != room and other in FLOORS:
                if other == "simulators":
                    assert room == "cli", f"{file} knows of simulators"
                elif room == "simulators":
                    assert FLOORS[other] == 1, f"{file} knows of the hub: {name}"
                else:
                    assert FLOORS[other] < FLOORS[room], f"{file} (floor {FLOORS[room]}) imports {name}"

    def test_doors_are_used_by_their_rooms_only(self, file: Path) -> None:
        room = room_of(file)
        used = {name.split(".")[0] for name in imports_of(file)} | set(calls_of(file))
        for door, rooms in DOORS.items():
            assert door not in used or room in rooms or room == "__init__", f"{file} uses {door}"

    def test_files_are_written_by_the_store_and_the_cli_only(self, file: Path) -> None:
        if room_of(file) not in ("store", "cli"):
            assert not WRITERS & set(calls_of(file)), f"{file} changes files"

    def test_the_home_never_waits(self, file: Path) -> None:
        waits = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
        if room_of(file) == "home":
            assert not any(isinstance(node, waits) for node in ast.walk(ast.parse(file.read_text())))

    def test_nothing_hides_from_the_floors(self, file: Path) -> None:
        text = file.read_text()
        assert "TYPE_CHECKING" not in text
        if file.name == "__init__.py":
            tree = ast.parse(text)
            assert len(tree.body) == 1 and ast.get_docstring(tree), f"{file} holds more than one sentence"

    def test_files_and_functions_stay_small(self, file: Path) -> None:
        text = file.read_text()
        assert len(text.splitlines()) <= 350, f"{file} is too long"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 40, f"{file}: {node.name} is too long"

    def test_what_is_public_says_what_it_promises(self, file: Path) -> None:
        tree = ast.parse(file.read_text())
        assert ast.get_docstring(tree), f"{file} does not say what it is"
        for node in public_parts(tree):
            assert ast.get_docstring(node), f"{file}: {node.name} does not say what it promises"


def public_parts(tree: ast.Module | ast.ClassDef) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """The public classes, functions and methods, private classes' own parts left out."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            if any(ast.unparse(each).endswith(".setter") for each in node.decorator_list):
                continue
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public_parts(node)


def test_no_module_imports_itself_by_way_of_others() -> None:
    names = {file: ".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES}
    modules = {name.removesuffix(".__init__"): file for file, name in names.items()}
    uses = {name: {each for each in imports_of(file) if each in modules} for name, file in modules.items()}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"circle: {' → '.join((*path[path.index(name) :], name))}"
        if name not in done:
            for other in uses[name] - {name}:
                visit(other, (*path, name))
            done.add(name)

    for name in modules:
        visit(name, ())


def test_every_room_has_a_floor() -> None:
    assert {room_of(file) for file in FILES} - {"__init__"} == set(FLOORS)


def test_third_party_imports_are_declared() -> None:
    declared = (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[0]
    for file in FILES:
        for name in imports_of(file):
            top = name.split(".")[0]
            if top not in sys.stdlib_module_names and top != "appliance":
                assert f'"{top}' in declared or top == "argon2", f"{file} imports {name}"
