"""Bundled recipes, filled in for tests."""

from __future__ import annotations

from typing import Any

from appliance.config import bundled_config
from appliance.files.recipes import fill, read_recipe
from appliance.lua.text.source import load


def filled(recipe: str, **values: Any) -> str:
    """Return the text of an automation from a bundled recipe. If a field is not given, its default is used."""
    file = bundled_config() / "recipes" / f"{recipe}.lua"
    found = read_recipe(load(file, file.name))
    given = {field.name: field.default for field in found.fields} | values
    return fill(found, recipe, found.name, given)
