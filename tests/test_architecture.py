"""The code follows ARCHITECTURE.md: its layers and its allowed imports. There are no import cycles, and no code of
the home waits.

Each rule reads all files, and reports all violations at once.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "appliance").rglob("*.py"))

LAYERS = {
    "shortening": 0,
    **dict.fromkeys(
        (
            "errors",
            "clock",
            "log_limit",
            "loop_lag",
            "version",
            "program_folder",
            "byte_budget",
            "shrinking",
        ),
        1,
    ),
    **dict.fromkeys(("computing", "event_loop", "allocator", "imports", "log_buffer", "tables", "tasks"), 2),
    **dict.fromkeys(("home", "home_locale"), 3),
    **dict.fromkeys(("settings", "store"), 4),
    **dict.fromkeys(("adapters", "health", "history", "watch"), 5),
    **dict.fromkeys(("config", "lua"), 6),
    **dict.fromkeys(("automations", "config_changes", "scenes"), 7),
    **dict.fromkeys(("adapter_sections", "files"), 8),
    "hub": 9,
    "api": 10,
    "cli": 11,
    "__main__": 12,
}
"""Maps each package to its layer."""

OUTSIDE_LAYERS = {"lua_worker": ("lua", -1)}
"""For each package outside of the layers: its only permitted importer, and the highest layer from which the package
may import."""

ALLOWED = {
    "sanic": {"api"},
    "websockets": {"api"},
    "aiohttp": {"adapters"},
    "aiosmtplib": {"adapters"},
    "aiomqtt": {"adapters"},
    "jinja2": {"adapters", "cli"},
    "ruamel": {"cli"},
    "tomli": {"config"},
    "argon2": {"api"},
    "defusedxml": {"adapters"},
    "lupa": {"lua_worker"},
    "watchfiles": {"watch"},
    "astral": {"automations"},
    "croniter": {"automations"},
    "asyncio.sleep": {"clock"},
    "create_task": {"tasks"},
    "ensure_future": {"tasks"},
    "datetime.now": {"clock"},
    "datetime.utcnow": {"clock"},
    "time.time": {"clock"},
    "time.monotonic": {"clock", "lua_worker"},
    "time.perf_counter": {"event_loop"},
}
"""Maps an import or a call to the only packages that may use it."""

WRITERS = {"store", "cli"}
"""Packages that change files: the store, and the cli for the files that ARCHITECTURE.md lists."""

WRITING_METHODS = frozenset(
    [
        "write_text",
        "write_bytes",
        "mkdir",
        "rmdir",
        "unlink",
        "touch",
        "rename",
        "symlink_to",
        "hardlink_to",
        "chmod",
        "lchmod",
    ]
)
"""Methods of `Path` that change files, whatever the arguments are. `is_writing` handles `replace`."""

WRITING_FUNCTIONS = {
    "os": """open write pwrite writev fdopen mkdir makedirs mkfifo mknod remove unlink rmdir removedirs rename renames
        replace link symlink truncate ftruncate utime chmod fchmod chown fchown lchown posix_fallocate sendfile""",
    "shutil": """copy copy2 copyfile copyfileobj copymode copystat copytree move rmtree chown make_archive
        unpack_archive""",
    "tempfile": "mkstemp mkdtemp NamedTemporaryFile TemporaryFile TemporaryDirectory",
}
"""Functions that change files, by module, however they are imported."""

WRITING_CALLS = {f"{module}.{name}" for module, names in WRITING_FUNCTIONS.items() for name in names.split()}


def package_of(file: Path) -> str:
    return file.relative_to(ROOT / "appliance").parts[0].removesuffix(".py")


@cache
def tree_of(file: Path) -> ast.Module:
    """Parse the file once."""
    return ast.parse(file.read_text())


@cache
def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of the tree, computed once for all tests."""
    return list(ast.walk(tree))


@cache
def imports_of(tree: ast.AST) -> tuple[str, ...]:
    names: list[str] = []
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names += (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
    return tuple(names)


def calls_of(tree: ast.AST) -> Iterator[str]:
    """Yield the last two parts, and the last part, of each called name."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            yield ".".join(name.split(".")[-2:])
            yield name.split(".")[-1]


def full_names(tree: ast.AST) -> dict[str, str]:
    """Return the full name of each imported name. For example, `from os import open as o` maps `o` to `os.open`."""
    names = {}
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            names.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom):
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def writing_calls(tree: ast.AST) -> Iterator[str]:
    """Yield the calls that change files."""
    names = full_names(tree)
    for node in nodes_of(tree):
        if isinstance(node, ast.Call | ast.Attribute | ast.Name) and is_writing(node, names):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def is_writing(node: ast.Call | ast.Attribute | ast.Name, names: dict[str, str]) -> bool:
    """Return whether the node calls, or passes on, a function that changes files."""
    if not isinstance(node, ast.Call):
        first, dot, rest = ast.unparse(node).partition(".")
        return names.get(first, first) + dot + rest in WRITING_CALLS
    function = node.func
    last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if last == "open":
        return opens_to_write(node, at=1 if isinstance(function, ast.Name) or is_module(function, names) else 0)
    if not isinstance(function, ast.Attribute):
        return False
    # `Path.replace` has one argument, `str.replace` has two, and `date.replace` has only named arguments.
    return last in WRITING_METHODS or (last == "replace" and len(node.args) == 1 and not node.keywords)


def is_module(function: ast.expr, names: dict[str, str]) -> bool:
    """Return whether the method is called on an imported module, as in `io.open` or `gzip.open`."""
    return isinstance(function, ast.Attribute) and ast.unparse(function.value) in names


def opens_to_write(call: ast.Call, *, at: int) -> bool:
    """Return whether a call of `open` can write. `at` is the index of the mode argument. If the mode is not a
    literal, the call is treated as a write."""
    modes = [*call.args[at : at + 1], *(each.value for each in call.keywords if each.arg == "mode")]
    return any(not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+") for mode in modes)


def offenders(*findings: str) -> str:
    return "\n".join(["", *findings])


def test_imports_point_down_or_stay_in_the_package() -> None:
    wrong = []
    for file in FILES:
        package = package_of(file)
        for name in imports_of(tree_of(file)):
            other = name.split(".")[1] if name.startswith("appliance.") else package
            if other != package and other in {*LAYERS, *OUTSIDE_LAYERS}:
                if other in OUTSIDE_LAYERS:
                    is_allowed = package == OUTSIDE_LAYERS[other][0]
                elif package in OUTSIDE_LAYERS:
                    is_allowed = LAYERS[other] <= OUTSIDE_LAYERS[package][1]
                else:
                    is_allowed = LAYERS[other] < LAYERS[package]
                wrong += [] if is_allowed else [f"{file} imports {name}"]
    assert not wrong, offenders(*wrong)


def test_a_class_name_and_a_public_constant_have_one_meaning_in_a_package() -> None:
    found: defaultdict[tuple[Path, str], dict[str, str]] = defaultdict(dict)
    for file in FILES:
        for name, meaning, line in names_of(tree_of(file)):
            found[file.parent, name].setdefault(meaning or f"{file}:{line}", f"{file}:{line}")
    wrong = [f"{name}: {', '.join(places.values())}" for (_, name), places in found.items() if len(places) > 1]
    assert not wrong, offenders(*wrong)


def names_of(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """Yield all classes, and all public constants and aliases with their values. Omit names that consist of one
    letter."""
    yield from ((node.name, "", node.lineno) for node in nodes_of(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            for each, value in pairs:
                if isinstance(each, ast.Name) and re.match(r"[A-Z]\w", each.id):
                    yield each.id, ast.dump(value), node.lineno


def test_no_import_is_relative() -> None:
    froms = [(file, node) for file in FILES for node in nodes_of(tree_of(file)) if isinstance(node, ast.ImportFrom)]
    wrong = [f"{file}:{node.lineno}: relative import" for file, node in froms if node.level]
    assert not wrong, offenders(*wrong)


def test_some_imports_and_calls_are_limited_to_packages() -> None:
    wrong = []
    for file in FILES:
        package, tree = package_of(file), tree_of(file)
        used = {name.split(".")[0] for name in imports_of(tree)} | set(calls_of(tree))
        wrong += [f"{file} uses {name}" for name in ALLOWED.keys() & used if package not in ALLOWED[name]]
    assert not wrong, offenders(*wrong)


def test_only_the_store_and_the_cli_write_files() -> None:
    others_that_open = (
        "appliance/tables/plain_files.py",  # opens for reading, with flags that only `os.open` accepts
        "appliance/lua_worker/worker_main.py",  # opens a file in memory, for the time zone of the C library
    )
    others = [file for file in FILES if package_of(file) not in WRITERS and not str(file).endswith(others_that_open)]
    wrong = [f"{file}, {call}" for file in others for call in writing_calls(tree_of(file))]
    assert not wrong, offenders(*wrong)


def test_the_rule_of_the_writers_finds_exactly_the_ways_to_write() -> None:
    writes = [
        *("open('x', 'w')", "open('x', mode='a')", "open('x', 'rb+')", "open('x', how)", "Path('x').open('w')"),
        *("file.open(mode='x')", "import io; io.open('x', 'w')", "import gzip; gzip.open('x', 'wb')"),
        *("Path('x').rename('y')", "file.replace(target)", "file.symlink_to(target)", "file.hardlink_to(target)"),
        *("file.write_text('')", "file.write_bytes(b'')", "file.mkdir()", "file.rmdir()", "file.unlink()"),
        *("file.touch()", "file.chmod(0o600)", "import os; os.replace('x', 'y')", "import os; os.symlink('x', 'y')"),
        *(
            "from os import rename; rename('x', 'y')",
            "import os as o; o.open('x', 1)",
            "import os; f(os.truncate, 1)",
        ),
        *("import shutil; shutil.rmtree('x')", "from shutil import rmtree as gone; gone('x')"),
        *("import tempfile; tempfile.mkstemp()", "from tempfile import NamedTemporaryFile as n; n()"),
    ]
    reads = [
        *("open('x')", "open('x', 'rb')", "Path('x').open()", "file.open('rb')", "import gzip; gzip.open('x')"),
        *("file.read_text()", "'x'.replace('y', 'z')", "from dataclasses import replace; replace(x, y=1)"),
        *(
            "now.replace(microsecond=0)",
            "rows.remove(1)",
            "import os; os.stat('x')",
            "runner.open()",
            "self._open(1)",
        ),
    ]
    assert not [each for each in writes if not list(writing_calls(ast.parse(each)))]
    assert not [each for each in reads if list(writing_calls(ast.parse(each)))]


RAISED = """
def wrong(self, error):
    raise error
def kept(self):
    raise self.error
def caught():
    try: pass
    except OSError as error: raise error
def deleted(found):
    try: raise found.error
    finally: del found
raise asyncio.CancelledError
"""


def test_raised_exceptions_form_no_cycles() -> None:
    """A frame refers to its variables, and the traceback of a raised exception refers to the frame. An exception that
    is kept and raised again collects the tracebacks of all its raises."""
    assert [*raised_variables(ast.parse(RAISED), frozenset())] == [3, 5]
    files = [file for file in FILES if package_of(file) != "cli"]
    wrong = [f"{file}:{line}" for file in files for line in raised_variables(tree_of(file), frozenset())]
    assert not wrong, offenders(*wrong)


def raised_variables(node: ast.AST, deleted: frozenset[str]) -> Iterator[int]:
    """Yield the lines that raise a variable, or a variable's attribute, that still exists after the raise."""
    if isinstance(node, ast.Try | ast.ExceptHandler):
        deleted |= {
            each.id
            for last in getattr(node, "finalbody", ())
            for each in ast.walk(last)
            if isinstance(each, ast.Name)
        } | {str(getattr(node, "name", ""))}
    if isinstance(node, ast.Raise) and node.exc is not None:
        words = ast.unparse(node.exc).split(".")
        if all(map(str.isidentifier, words)) and words[-1].islower() and words[0] not in deleted:
            yield node.lineno
    for each in ast.iter_child_nodes(node):
        yield from raised_variables(each, deleted)


def test_the_home_never_waits() -> None:
    waits = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    home = [file for file in FILES if package_of(file) == "home"]
    wrong = [str(file) for file in home if any(isinstance(node, waits) for node in nodes_of(tree_of(file)))]
    assert home and not wrong, offenders(*wrong)


def test_no_file_is_outside_of_the_layers() -> None:
    hidden = [f"{file} mentions TYPE_CHECKING" for file in FILES if "TYPE_CHECKING" in file.read_text()]
    packages = [(file, tree_of(file)) for file in FILES if file.name == "__init__.py"]
    more = [f"{file} holds more than its docstring" for file, tree in packages if len(tree.body) > 1]
    assert not hidden + more, offenders(*hidden, *more)


def test_no_import_cycles() -> None:
    names = {file: ".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES}
    modules = {name.removesuffix(".__init__"): file for file, name in names.items()}
    uses = {name: {each for each in imports_of(tree_of(file)) if each in modules} for name, file in modules.items()}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"circle: {' → '.join((*path[path.index(name) :], name))}"
        if name not in done:
            for other in uses[name] - {name}:
                visit(other, (*path, name))
            done.add(name)

    for name in modules:
        visit(name, ())


def test_every_package_has_a_layer() -> None:
    assert {package_of(file) for file in FILES} - {"__init__"} == {*LAYERS, *OUTSIDE_LAYERS}


def test_third_party_imports_are_declared() -> None:
    declared = (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[0]
    wrong = []
    for file in FILES:
        for name in imports_of(tree_of(file)):
            top = name.split(".")[0]
            if (
                top not in sys.stdlib_module_names
                and top not in ("appliance", "argon2")
                and f'"{top}' not in declared
            ):
                wrong.append(f"{file} imports {name}")
    assert not wrong, offenders(*wrong)


def test_the_table_of_lines_names_files_and_functions_that_exist() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text().partition("## Find a line")[2].partition("\n## ")[0]
    wrong, count = [], 0
    for cell in re.findall(r"^\| .+ \| (.+) \|$", table, re.MULTILINE):
        text = ""
        for name in re.findall(r"`([^` ]+)`", cell):
            if "/" in name or name.endswith(".py"):
                path = ROOT / ("" if name.startswith("firmware/") else "appliance") / name
                text = path.read_text() if path.is_file() else ""
                wrong += [] if path.exists() else [name]
            else:
                count += 1
                parts = re.escape(name).replace("…", r"\w+").split(r"\.")
                wrong += [f"{name}: {cell}" for part in parts if not re.search(rf"\b{part}\b", text)]
    assert not wrong, offenders(*wrong)
    assert count > 80


def test_the_page_lists_each_of_its_modules() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("## The page")[2].partition("\n## ")[0]
    modules = {path.name for path in (ROOT / "appliance" / "api" / "dashboard").glob("*.js")}
    translations = {name for name in modules if name.startswith("words_")}
    assert set(re.findall(r"`(\w+\.js)`", text)) == modules - translations | {"words_de.js", "codemirror.js"}
