"""The scripts of the page pass TypeScript and ESLint."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from appliance.api.routes.dashboard import FOLDER
from tests.dashboard.npm import installed

pytestmark = pytest.mark.slow

TOOLS = ("typescript@5.9.3", "eslint@9.39.1")

TYPES = {
    "compilerOptions": {
        **dict.fromkeys(("allowJs", "checkJs", "noEmit", "skipLibCheck"), True),
        "target": "es2023",
        "module": "esnext",
        "moduleResolution": "bundler",
        "lib": ["es2024", "dom", "dom.iterable"],
    },
    "files": ["dashboard/app.js"],
}

BROWSER = (
    "AbortController AbortSignal Blob IntersectionObserver Intl Response URL URLSearchParams WebSocket "
    "addEventListener caches clearInterval clearTimeout clients document fetch getComputedStyle history localStorage "
    "location navigator performance registration removeEventListener reportError requestAnimationFrame scrollTo "
    "scrollY setInterval setTimeout skipWaiting"
)

RULES = f"""import js from "@eslint/js";
const globals = Object.fromEntries("{BROWSER}".split(" ").map((each) => [each, "readonly"]));
const unused = {{ varsIgnorePattern: "^_", destructuredArrayIgnorePattern: "^_", ignoreRestSiblings: true }};
export default [{{ ignores: ["dashboard/vendor/**"] }}, js.configs.recommended, {{
    languageOptions: {{ ecmaVersion: 2024, sourceType: "module", globals }},
    rules: {{ eqeqeq: "error", "no-var": "error", "prefer-const": "error", "no-unused-vars": ["error", unused] }},
}}];
"""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the scripts and the tools."""
    folder = tmp_path_factory.mktemp("scripts")
    shutil.copytree(FOLDER, folder / "dashboard")
    (folder / "node_modules").symlink_to(installed(*TOOLS) / "node_modules")
    (folder / "tsconfig.json").write_text(json.dumps(TYPES))
    (folder / "eslint.config.mjs").write_text(RULES)
    (folder / "package.json").write_text("{}")
    return folder


@pytest.mark.parametrize("command", [["tsc"], ["eslint", "dashboard"]], ids=["types", "rules"])
def test_typescript_and_eslint_find_nothing(workshop: Path, command: list[str]) -> None:
    program = workshop / "node_modules" / ".bin" / command[0]
    done = subprocess.run([program, *command[1:]], cwd=workshop, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
