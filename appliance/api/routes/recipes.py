"""Recipes: forms that write an automation or a scene."""

from __future__ import annotations

from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.routes.files import CHECKED_FILE
from appliance.api.schemas import SAVED_FILE
from appliance.api.validation import body_check, table, text
from appliance.home.texts import name
from appliance.tables.fields import Field
from appliance.tables.json_schema import ANY, TEXT, array_of, maybe, one_of, record

RECIPE_FIELD = record("RecipeField", name=TEXT, type=TEXT, of=maybe(TEXT), label=TEXT, default=ANY)
RECIPE = record(
    "Recipe",
    id=TEXT,
    name=TEXT,
    description=TEXT,
    kind=one_of("automation", "scene"),
    fields=array_of(RECIPE_FIELD),
)
RECIPES = record("Recipes", recipes=array_of(RECIPE))
RECIPE_BODY = body_check(
    "RecipeRequest", {"file": Field(text), "name": Field(name), "values": Field(table, default={})}
)


class RecipesApi(ApiResource):
    """Handlers of the routes under `/recipes`."""

    needs_files = True

    @route("GET", "/recipes", Role.ADMIN, RECIPES)
    async def list_all(self, call: Call) -> object:
        """Return every recipe by id, with the fields for a form."""
        return {"recipes": await self.hub.recipes.list_recipes()}

    @route("POST", "/recipes/<recipe_id>", Role.ADMIN, SAVED_FILE, statuses=(200, 409, 503), body=RECIPE_BODY)
    async def use(self, call: Call, recipe_id: str) -> object:
        """Write an automation or scene from the recipe, with the checks of a save. An existing file returns 409."""
        recipe = await self.hub.recipes.get(recipe_id)
        return await self.hub.recipes.use(recipe, **await call.read_body())

    @route("POST", "/recipes/<recipe_id>/check", Role.ADMIN, CHECKED_FILE, statuses=(200, 409), body=RECIPE_BODY)
    async def check(self, call: Call, recipe_id: str) -> object:
        """Check the automation or scene that the recipe would write, without writing it."""
        recipe = await self.hub.recipes.get(recipe_id)
        return await self.hub.recipes.check(recipe, **await call.read_body())
