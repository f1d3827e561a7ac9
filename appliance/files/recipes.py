"""Recipes: Lua files of automations and scenes with fields that a form can fill in.

A comment before a `local` declares its field: `--- @field sensor device motion|occupancy: the motion sensor`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from appliance.adapters.lua_kinds.kind import duration
from appliance.config import bundled_config
from appliance.errors import Fault, FileExists, Invalid, NotFound
from appliance.files.home_files import HomeFiles, SavedFile
from appliance.home.texts import MAX_NAME_CHARS, identifier
from appliance.home.texts import text as text_check
from appliance.lua.folder import Folder
from appliance.lua.source import LuaToken, Source, tokens_of
from appliance.tables.checks import is_number, nearest, shown

MAX_TEXT_CHARS = 1000
MAX_LISTED_VALUES = 100

_FIELD = re.compile(r"---\s?@field\s+(\w+)\s+(\w+)(?:\s+([^:]+?))?\s*:\s*(\S.*?)\s*\Z")
_LOCAL = re.compile(r"local\s+(\w+)\s*=")
_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)(?:\s+\S+)?\Z")
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_FILE = re.compile(r"[a-z0-9_]{1,40}")

OF_HOME = ("device", "room", "group")
"""The types of fields whose defaults are only samples: the form must ask for things of the home."""

log = logging.getLogger("files")


class RecipeField(Struct, frozen=True, kw_only=True):
    """A field. `of` are the attributes of a device, the range of a number, or the words of a choice, as written in
    the comment."""

    name: str
    type: str
    of: str | None
    label: str
    default: Any
    start: int
    end: int

    @property
    def is_needed(self) -> bool:
        """Whether a form must fill in the field."""
        return self.type in OF_HOME and self.default != []


class Recipe(Struct, frozen=True, kw_only=True):
    """A recipe; `kind` is automation or scene."""

    id: str
    name: str
    description: str
    kind: str
    fields: tuple[RecipeField, ...]
    text: str


def read_recipe(source: Source) -> Recipe:
    """Return the recipe in the file; raise `Invalid` with the line of a wrong field."""
    text = source.chunk.decode()
    tokens = [*tokens_of(source.chunk)]
    texts = _fields_of_result(tokens)
    kind = "automation" if {"trigger", "triggers"} & texts.keys() else "scene"
    id_ = Path(source.name).stem
    return Recipe(
        id=id_,
        name=texts.get("name") or id_,
        description=texts.get("description") or "",
        kind=kind,
        fields=tuple(_read_fields(text, tokens)),
        text=text,
    )


def fill(recipe: Recipe, id_: str, name: str, values: Mapping[str, Any]) -> str:
    """Return the text of the recipe with these values, and with its own id and name; raise `Invalid` for a wrong
    value.

    Texts that are the recipe's id, or begin with it and a dot, are names of timers and variables: they get the new
    id.
    """
    names = [field.name for field in recipe.fields]
    if unknown := [each for each in values if each not in names]:
        near = nearest(unknown[0], names)
        hint = f"; did you mean {near}" if near else ""
        raise Invalid(f"{unknown[0]} is not a field of recipe '{recipe.id}'{hint}")
    replaced = {(field.start, field.end): _literal(_value_of(field, values)) for field in recipe.fields}
    replaced |= _renamed(recipe, id_, name)
    text = recipe.text
    for (start, end), literal in sorted(replaced.items(), reverse=True):
        text = text[:start] + literal + text[end:]
    return text


class Recipes:
    """The recipes that come with Lares, and those in `config/recipes/` of the home, which replace bundled ones of the
    same name."""

    def __init__(self, files: HomeFiles, config: Path, scenes: str, automations: str) -> None:
        self._files = files
        self._own = own_recipes(config)
        self._folders = {"scene": scenes.rstrip("/"), "automation": automations.rstrip("/")}

    async def list_recipes(self) -> list[Recipe]:
        """Return every usable recipe by id."""
        recipes, faults = await asyncio.to_thread(self._read)
        for fault in faults:
            log.warning("%s", fault)
        return [recipes[id_] for id_ in sorted(recipes)]

    async def get(self, id_: str) -> Recipe:
        """Return a recipe; raise `NotFound` if there is no usable one of this id."""
        recipes, _ = await asyncio.to_thread(self._read)
        if id_ not in recipes:
            raise NotFound("recipe", id_)
        return recipes[id_]

    async def use(self, recipe: Recipe, file: str, name: str, values: Mapping[str, Any]) -> SavedFile:
        """Save a new automation or scene made from the recipe, after the checks of a save."""
        folder = self._folders[recipe.kind]
        stem = file.removeprefix(f"{folder}/").removesuffix(".lua")
        if _FILE.fullmatch(stem) is None:
            raise Invalid(f"file must be a name of 1 to 40 characters a-z, 0-9 and _, not {shown(file)}")
        path = f"{folder}/{stem}.lua"
        if await self._files.exists(path):
            raise FileExists(path)
        return await self._files.save(path, fill(recipe, stem, name, values), "")

    def _read(self) -> tuple[dict[str, Recipe], list[Fault]]:
        """Return every recipe by id, and the faults of the home's own recipes."""
        bundled = {
            id_: recipe
            for name in ("scenes", "recipes")
            for id_, recipe in check_recipes(Folder(path=bundled_config() / name, name=name))[0].items()
            if recipe.fields
        }
        own, faults = check_recipes(self._own)
        return {**bundled, **own}, faults


def own_recipes(config: Path) -> Folder:
    """Return the folder of a home's own recipes, next to the file of the configuration."""
    folder = config.absolute().parent
    return Folder(path=folder / "recipes", name=f"{folder.name}/recipes")


def check_recipes(folder: Folder) -> tuple[dict[str, Recipe], list[Fault]]:
    """Return the recipes of the folder by id, and the faults of the other files; reads the disk."""
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


class FieldFault(Invalid):
    """A field of a recipe that cannot be read, with its line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def _read_fields(text: str, tokens: Sequence[LuaToken]) -> list[RecipeField]:
    lines, starts = text.split("\n"), [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    fields: list[RecipeField] = []
    for number, line in enumerate(lines, 1):
        if re.match(r"\s*---\s?@field\b", line) is None or not _is_comment(tokens, number):
            continue
        found = _FIELD.match(line.strip())
        if found is None:
            raise FieldFault(number, "a field is written `--- @field name type [of]: label`")
        name, kind, of, label = found.groups()
        at = next((each for each in range(number, len(lines)) if not lines[each].lstrip().startswith("--")), None)
        local = None if at is None else _LOCAL.match(lines[at].strip())
        if at is None or local is None or local[1] != name:
            raise FieldFault(number, f"`local {name} = …` must follow this line")
        if kind not in _CHECKS:
            near = nearest(kind, _CHECKS)
            hint = f"did you mean {near}" if near else f"there are {', '.join(_CHECKS)}"
            raise FieldFault(number, f"{kind} is not a type of field; {hint}")
        default, start, end = _read_literal(tokens, at + 1, starts)
        field = RecipeField(
            name=name, type=kind, of=of and of.strip(), label=label, default=default, start=start, end=end
        )
        try:
            _CHECKS[kind](field, default)
        except Invalid as fault:
            raise FieldFault(at + 1, f"{name} {fault}") from None
        fields.append(field)
    return fields


def _is_comment(tokens: Sequence[LuaToken], line: int) -> bool:
    """Return whether no token begins on this line, as on a comment line."""
    return all(token.line != line for token in tokens)


def _read_literal(tokens: Sequence[LuaToken], line: int, starts: Sequence[int]) -> tuple[Any, int, int]:
    """Return the value after `local name =` on this line, and its position in the text."""
    index = next(n for n, token in enumerate(tokens) if token.line == line and token.word == "=") + 1

    def place(token: LuaToken) -> int:
        return starts[token.line - 1] + token.column

    if index >= len(tokens):
        raise FieldFault(line, "has no value")
    first = tokens[index]
    if first.word != "{":
        last = tokens[index + 1] if first.word == "-" else first
        value = _plain(last, line)
        return (-value if first.word == "-" else value), place(first), place(last) + len(last.word)
    items, index = [], index + 1
    while index < len(tokens) and tokens[index].word != "}":
        if tokens[index].word != ",":
            items.append(_plain(tokens[index], line))
        index += 1
    if index == len(tokens):
        raise FieldFault(line, "its list has no end")
    return items, place(first), place(tokens[index]) + 1


def _plain(token: LuaToken, line: int) -> Any:
    if token.kind == "text" and token.word[0] in "\"'" and "\\" not in token.word:
        return token.word[1:-1]
    if token.kind == "number":
        try:
            return int(token.word)
        except ValueError:
            return float(token.word)
    raise FieldFault(line, "must be a text, a number, or a list of texts")


def _fields_of_result(tokens: Sequence[LuaToken]) -> dict[str, str | None]:
    """Return the fields of the returned table by name, with the value only if it is a plain text."""
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
    """Return where the recipe's id or name occurs in texts and comments, with the new words."""
    starts = [0]
    for line in recipe.text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
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


def _value_of(field: RecipeField, values: Mapping[str, Any]) -> Any:
    if values.get(field.name) is None:
        if field.is_needed:
            raise Invalid(f"values.{field.name} is missing: {field.label}")
        return field.default
    try:
        return _CHECKS[field.type](field, values[field.name])
    except Invalid as fault:
        raise Invalid(f"values.{field.name} {fault}") from None


def _literal(value: Any) -> str:
    """Return the value in the syntax of Lua."""
    if isinstance(value, list):
        return "{ " + ", ".join(map(_literal, value)) + " }" if value else "{}"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\{ord(found[0]):03d}", escaped) + '"'
    return repr(value)


def _check_ids(field: RecipeField, value: Any) -> Any:
    if isinstance(field.default, list):
        values = [value] if isinstance(value, str) else value
        if field.default and values == []:
            raise Invalid(f"must be a list with at least one id of a {field.type}: {field.label}")
        if not isinstance(values, list) or len(values) > MAX_LISTED_VALUES:
            raise Invalid(f"must be a list of ids of {field.type}s, not {shown(value)}")
        return [identifier(each) for each in values]
    return identifier(value)


def _check_number(field: RecipeField, value: Any) -> Any:
    bounds = _RANGE.match(field.of or "")
    if bounds is None:
        raise Invalid("needs a range, `number 1..100 %`")
    low, high = float(bounds[1]), float(bounds[2])
    if not is_number(value) or not math.isfinite(value) or not low <= value <= high:
        raise Invalid(f"must be a number from {bounds[1]} to {bounds[2]}, not {shown(value)}")
    return int(value) if float(value).is_integer() else value


def _check_duration(_: RecipeField, value: Any) -> Any:
    seconds = duration(value)
    return int(seconds) if seconds.is_integer() else seconds


def _check_time(_: RecipeField, value: Any) -> str:
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        raise Invalid(f'must be a time like "07:30", not {shown(value)}')
    return value


def _check_text(_: RecipeField, value: Any) -> str:
    return str(text_check(MAX_TEXT_CHARS)(value))


def _check_choice(field: RecipeField, value: Any) -> str:
    words = [each.strip() for each in (field.of or "").split("|")]
    if value not in words:
        raise Invalid(f"must be {' or '.join(words)}, not {shown(value)}")
    return str(value)


_CHECKS: Mapping[str, Callable[[RecipeField, Any], Any]] = {
    **dict.fromkeys(OF_HOME, _check_ids),
    "number": _check_number,
    "duration": _check_duration,
    "time": _check_time,
    "text": _check_text,
    "choice": _check_choice,
}
"""The check of a value, by the type of the field."""

check_name = text_check(MAX_NAME_CHARS)
