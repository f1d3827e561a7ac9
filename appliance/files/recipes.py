"""Recipes: Lua files for automations and scenes. Users fill in the fields of a recipe on a form."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from appliance.computing import compute_alone
from appliance.config import bundled_config
from appliance.errors import Fault, FileChanged, FileExists, Invalid, NotFound
from appliance.files.file_checks import FILES_THREAD, CheckedText
from appliance.files.home_files import HomeFiles, SavedFile
from appliance.files.recipe_fields import (
    FieldFault,
    RecipeField,
    RecipeRule,
    line_starts,
    read_fields,
    read_rules,
    value_of,
)
from appliance.lua.files.folder import Folder
from appliance.lua.text.source import Source
from appliance.lua.text.tokens import LuaToken, tokens_of
from appliance.tables.checks import format_value, nearest, suggest

_FILE = re.compile(r"[a-z0-9_]{1,40}")


log = logging.getLogger("files")


class Recipe(Struct, frozen=True, kw_only=True):
    """A recipe. `kind` is automation or scene."""

    id: str
    name: str
    description: str
    kind: str
    fields: tuple[RecipeField, ...]
    rules: tuple[RecipeRule, ...]
    text: str


def read_recipe(source: Source) -> Recipe:
    """Return the recipe in the file. Raise `FieldFault` with the line of an invalid field."""
    text = source.chunk.decode()
    tokens = [*tokens_of(source.chunk)]
    texts = _fields_of_result(tokens)
    kind = "automation" if {"trigger", "triggers"} & texts.keys() else "scene"
    id_ = Path(source.name).stem
    fields = read_fields(text, tokens)
    return Recipe(
        id=id_,
        name=texts.get("name") or id_,
        description=texts.get("description") or "",
        kind=kind,
        fields=tuple(fields),
        rules=tuple(read_rules(text, tokens, fields)),
        text=text,
    )


def fill(recipe: Recipe, id_: str, name: str, values: Mapping[str, Any]) -> str:
    """Return the recipe's text with these values, and with a new id and name. Raise `Invalid` for a wrong or
    contradictory value.

    The new id also replaces the recipe's id in the names of timers and variables. The names of these timers and
    variables equal the recipe's id, or begin with the id and a dot.
    """
    names = [field.name for field in recipe.fields]
    if unknown := [each for each in values if each not in names]:
        near = nearest(unknown[0], names)
        raise Invalid(f"{unknown[0]} is not a field of recipe '{recipe.id}'{suggest(near)}")
    checked = {field.name: value_of(field, values) for field in recipe.fields}
    for rule in recipe.rules:
        rule.check(checked)
    replaced = {(field.start, field.end): _literal(checked[field.name]) for field in recipe.fields}
    replaced |= _renamed(recipe, id_, name)
    text = recipe.text
    for (start, end), literal in sorted(replaced.items(), reverse=True):
        text = text[:start] + literal + text[end:]
    return text


class Recipes:
    """The bundled recipes, and the home's recipes in `config/recipes/`. A recipe of the home replaces a bundled
    recipe with the same name."""

    def __init__(self, files: HomeFiles, config: Path, scenes: str, automations: str) -> None:
        self._files = files
        self._own = own_recipes(config)
        self._folders = {"scene": scenes.rstrip("/"), "automation": automations.rstrip("/")}

    async def list_recipes(self) -> list[Recipe]:
        """Return all usable recipes, sorted by id."""
        recipes, faults = await compute_alone(FILES_THREAD, self._read)
        for fault in faults:
            log.warning("%s", fault)
        return [recipes[id_] for id_ in sorted(recipes)]

    async def get(self, id_: str) -> Recipe:
        """Return the usable recipe with this id. Raise `NotFound` for an unknown id."""
        recipes, _ = await compute_alone(FILES_THREAD, self._read)
        if id_ not in recipes:
            raise NotFound("recipe", id_)
        return recipes[id_]

    async def check(self, recipe: Recipe, file: str, name: str, values: Mapping[str, Any]) -> CheckedText:
        """Return the errors and warnings of a new automation or scene from the recipe, without writing it."""
        return await self._files.check(*await self._fill(recipe, file, name, values))

    async def use(self, recipe: Recipe, file: str, name: str, values: Mapping[str, Any]) -> SavedFile:
        """Check and save a new automation or scene from the recipe."""
        path, text = await self._fill(recipe, file, name, values)
        try:
            return await self._files.save(path, text, "")
        except FileChanged:  # another request has written the file since the check
            raise FileExists(path) from None

    async def _fill(self, recipe: Recipe, file: str, name: str, values: Mapping[str, Any]) -> tuple[str, str]:
        """Return the path and the text of a new file. Raise `FileExists` if there already is such a file, and
        `Invalid` for a wrong name or value."""
        folder = self._folders[recipe.kind]
        stem = file.removeprefix(f"{folder}/").removesuffix(".lua")
        if _FILE.fullmatch(stem) is None:
            raise Invalid(f"file must be a name of 1 to 40 characters from a-z, 0-9, and _, not {format_value(file)}")
        path = f"{folder}/{stem}.lua"
        if await self._files.exists(path):
            raise FileExists(path)
        return path, fill(recipe, stem, name, values)

    def _read(self) -> tuple[dict[str, Recipe], list[Fault]]:
        """Return all recipes by id, and the faults of the home's recipes."""
        bundled = {
            id_: recipe
            for name in ("scenes", "recipes")
            for id_, recipe in check_recipes(Folder(path=bundled_config() / name, name=name))[0].items()
            if recipe.fields
        }
        own, faults = check_recipes(self._own)
        return {**bundled, **own}, faults


def own_recipes(config: Path) -> Folder:
    """Return the folder of the home's recipes, which is next to the configuration file."""
    folder = config.absolute().parent
    return Folder(path=folder / "recipes", name=f"{folder.name}/recipes")


def check_recipes(folder: Folder) -> tuple[dict[str, Recipe], list[Fault]]:
    """Read the folder. Return the recipes by id, and the faults of invalid files."""
    contents = folder.read()
    recipes, faults = {}, list(contents.faults)
    for source in contents.sources:
        try:
            recipe = read_recipe(source)
        except FieldFault as fault:
            faults.append(Fault(source.name, fault.line, str(fault)))
        else:
            recipes[recipe.id] = recipe
    return recipes, faults


def _fields_of_result(tokens: Sequence[LuaToken]) -> dict[str, str | None]:
    """Return the fields of the file's returned Lua table. If a field's value is not a literal text, return None in
    place of the value."""
    start = max((n for n, token in enumerate(tokens) if token.word == "return" and token.column == 0), default=0)
    found: dict[str, str | None] = {}
    depth = 0
    for index in range(start, len(tokens) - 2):
        word = tokens[index].word
        depth += (word in ("{", "(", "function", "do", "then")) - (word in ("}", ")", "end", "elseif"))
        if depth == 1 and tokens[index].kind == "name" and tokens[index + 1].word == "=":
            value = tokens[index + 2]
            found.setdefault(word, value.word[1:-1] if value.kind == "text" else None)
    return found


def _renamed(recipe: Recipe, id_: str, name: str) -> dict[tuple[int, int], str]:
    """Return the positions of the recipe's id and name in strings and comments, each with its replacement."""
    starts = line_starts(recipe.text)
    found: dict[tuple[int, int], str] = {}
    before = ("", "")
    word = re.compile(rf"(?<![\w.]){re.escape(recipe.id)}(?!\w)")
    for line, start in zip(recipe.text.split("\n"), starts, strict=False):
        if line.lstrip().startswith("--"):
            found |= {(start + each.start(), start + each.end()): id_ for each in word.finditer(line)}
    for token in tokens_of(recipe.text.encode()):
        if token.kind == "text":
            start = starts[token.line - 1] + token.column
            inner = token.word[1:-1]
            if inner == recipe.id or inner.startswith(f"{recipe.id}."):
                found[start, start + len(token.word)] = _literal(id_ + inner[len(recipe.id) :])
            elif before == ("name", "=") and inner == recipe.name:
                found[start, start + len(token.word)] = _literal(name)
        before = (before[1], token.word)
    return found


def _literal(value: Any) -> str:
    """Return the value in Lua syntax."""
    if isinstance(value, list):
        return "{ " + ", ".join(map(_literal, value)) + " }" if value else "{}"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\{ord(found[0]):03d}", escaped) + '"'
    return repr(value)
