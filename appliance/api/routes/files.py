"""The files of the home, for the editor of the page and for programs that write automations."""

from __future__ import annotations

from typing import Any

from appliance.api.auth import Role
from appliance.api.responses import error_body, json_response
from appliance.api.route import ApiResource, Call, route
from appliance.api.routes.reports import SIMULATED_PREFIXES
from appliance.api.simulation import SimulationRequest
from appliance.api.validation import body, boolean, nullable, table
from appliance.errors import Invalid, InvalidFile, NotFound
from appliance.files.completions import list_methods
from appliance.files.kind_forms import list_kinds
from appliance.home.json_shapes import DEVICE, DEVICE_COMMANDS
from appliance.home.texts import name
from appliance.simulated_clock import MAX_SIMULATED_HOURS
from appliance.tables import checks
from appliance.tables.fields import Field
from appliance.tables.json_schema import (
    ANY,
    BOOLEAN,
    COUNT,
    INSTANT,
    NUMBER,
    OBJECT,
    TEXT,
    Check,
    Schema,
    array_of,
    maybe,
    one_of,
    record,
)

_KINDS = ("scene", "automation", "script", "adapter", "config")

FILE = record("File", path=TEXT, kind=one_of(*_KINDS), size=COUNT, modified_at=INSTANT, version=TEXT)
FILES = record("Files", files=array_of(FILE))
FILE_TEXT = record("FileText", path=TEXT, text=TEXT, version=TEXT)
FILE_FAULT = record("FileFault", line=COUNT, message=TEXT)
SAVED_FILE = record("SavedFile", path=TEXT, version=TEXT, warnings=array_of(FILE_FAULT))
FILE_VERSION = record("FileVersion", n=COUNT, saved_at=INSTANT, size=COUNT)
FILE_VERSIONS = record("FileVersions", versions=array_of(FILE_VERSION))
FILE_VERSION_TEXT = record("FileVersionText", path=TEXT, n=COUNT, text=TEXT)
CHECKED_FILE = record("CheckedFile", errors=array_of(FILE_FAULT), warnings=array_of(FILE_FAULT))

text = Check(schema=TEXT, run=checks.string)

SAVE_BODY = body("SaveRequest", {"text": Field(text), "version": Field(nullable(text), required=False)})
CHECK_BODY = body("FileCheckRequest", {"path": Field(text), "text": Field(text)})

_NAMED = record("NamedPlace", id=TEXT, name=TEXT)
_COMPLETED_DEVICE: Schema = record(
    "CompletedDevice",
    id=TEXT,
    alias=maybe(TEXT),
    name=TEXT,
    room=maybe(TEXT),
    attributes=array_of(TEXT),
    commands=DEVICE_COMMANDS,
    events=array_of(TEXT),
)
COMPLETIONS = record(
    "Completions",
    devices=array_of(_COMPLETED_DEVICE),
    rooms=array_of(_NAMED),
    groups=array_of(_NAMED),
    scenes=array_of(_NAMED),
    variables=array_of(TEXT),
    timers=array_of(TEXT),
    operations=array_of(TEXT),
    ctx=array_of(record("CtxMethod", name=TEXT, arguments=array_of(TEXT), description=TEXT)),
)
SIMULATION = record("Simulation", lines=array_of(OBJECT), until=INSTANT, is_complete=BOOLEAN)

MAX_FILE_BODY_BYTES = 1 << 20
"""Bytes of a body that contains the text of a file, whose characters may be escaped, or a recording."""

MAX_EVENTS_CHARS = 256 << 10


def _hours(value: Any) -> float:
    if not checks.is_number(value) or not 0 < value <= MAX_SIMULATED_HOURS:
        raise Invalid(f"must be a number of hours above 0, at most {MAX_SIMULATED_HOURS}, not {checks.shown(value)}")
    return float(value)


def _events(value: Any) -> str:
    lines = value if isinstance(value, list) else [value]
    if not all(isinstance(line, str) for line in lines):
        raise checks.Mismatch("a text or an array of lines", value)
    if sum(map(len, lines)) > MAX_EVENTS_CHARS:
        raise Invalid(f"must not have more than {MAX_EVENTS_CHARS} characters")
    return "\n".join(lines)


SIMULATE_BODY = body(
    "SimulateRequest",
    {
        "path": Field(nullable(text), required=False),
        "text": Field(nullable(text), required=False),
        "from": Field(nullable(text), required=False),
        "hours": Field(Check(schema=NUMBER, run=_hours), default=24.0),
        "events": Field(Check(schema={"anyOf": [TEXT, array_of(TEXT)]}, run=_events), default=""),
        "run": Field(boolean, default=False),
    },
)

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
RECIPE_BODY = body("RecipeRequest", {"file": Field(text), "name": Field(name), "values": Field(table, default={})})

KIND_SETTING = record(
    "KindSetting",
    name=TEXT,
    type=one_of("string", "integer", "number", "boolean", "duration", "list", "table"),
    is_required=BOOLEAN,
    is_secret=BOOLEAN,
    is_rare=BOOLEAN,
    default=ANY,
    example=ANY,
    min=maybe(NUMBER),
    max=maybe(NUMBER),
    values=maybe(array_of(ANY)),
    description=maybe(TEXT),
)
KIND = record("Kind", name=TEXT, title=TEXT, is_lua=BOOLEAN, settings=array_of(KIND_SETTING), fault=maybe(TEXT))
KINDS = record("Kinds", kinds=array_of(KIND))
SECTION = record("Section", name=TEXT, kind=TEXT, is_enabled=BOOLEAN, values=OBJECT)
SECTIONS = record("Sections", version=TEXT, sections=array_of(SECTION))
TRIAL = record(
    "Trial",
    error=maybe(TEXT),
    devices=array_of(DEVICE),
    dropped=array_of(TEXT),
    lines=array_of(TEXT),
    recording=maybe(OBJECT),
)
SECTION_BODY = body(
    "SectionRequest",
    {
        "kind": Field(text),
        "values": Field(table, default={}),
        "version": Field(nullable(text), required=False),
        "is_new": Field(boolean, default=False),
    },
)
TRIAL_BODY = body(
    "TrialRequest",
    {
        "kind": Field(text),
        "values": Field(table, default={}),
        "text": Field(nullable(text), required=False),
        "replay": Field(nullable(table), required=False),
    },
)
NOT_DELETED = "DELETE is not a method of this path: the configuration cannot be deleted"


def refuse(error: InvalidFile) -> Any:
    """Return the response to a text with faults."""
    return json_response(error_body(str(error), error.code, errors=[FILE_FAULT(each) for each in error.faults]), 400)


class FilesApi(ApiResource):
    """Handlers of the routes under `/files`."""

    @route("GET", "/files", Role.ADMIN, FILES)
    async def list_all(self, call: Call) -> object:
        """Return the Lua files of scenes, automations, scripts, and adapters, and the configuration, by path."""
        return {"files": await self.hub.files.list_files()}

    @route("POST", "/files/check", Role.ADMIN, CHECKED_FILE, body=CHECK_BODY, max_body_bytes=MAX_FILE_BODY_BYTES)
    async def check(self, call: Call) -> object:
        """Check a text in place of a file's text, in the home as it is now; write nothing."""
        stated = await call.body()
        return await self.hub.files.check(stated["path"], stated["text"])

    @route("GET", "/files/<file_path>", Role.ADMIN, FILE_TEXT, statuses=(200, 400, 404))
    async def get(self, call: Call, file_path: str) -> object:
        """Return the text of a file. Secrets of the configuration are `***`."""
        return await self.hub.files.read(file_path)

    @route(
        "PUT",
        "/files/<file_path>",
        Role.ADMIN,
        SAVED_FILE,
        statuses=(200, 409, 503),
        body=SAVE_BODY,
        max_body_bytes=MAX_FILE_BODY_BYTES,
    )
    async def put(self, call: Call, file_path: str) -> object:
        """Check and save the text; keep the previous one. An empty `version` means that the file must be new."""
        stated = await call.body()
        try:
            return await self.hub.files.save(file_path, stated["text"], stated["version"])
        except InvalidFile as error:
            return refuse(error)

    @route("DELETE", "/files/<file_path>", Role.ADMIN, statuses=(204, 405, 503))
    async def remove(self, call: Call, file_path: str) -> object:
        """Delete the file; its versions stay, and its last text becomes a version. 405 for the configuration."""
        if file_path == self.hub.files.places.config_path:
            return json_response(error_body(NOT_DELETED, "method_not_allowed"), 405, {"Allow": "GET, HEAD, PUT"})
        try:
            await self.hub.files.delete(file_path)
        except Invalid:
            raise NotFound("file", file_path) from None
        return None

    @route("GET", "/files/<file_path>/versions", Role.ADMIN, FILE_VERSIONS)
    async def list_versions(self, call: Call, file_path: str) -> object:
        """Return the previous texts of a file, newest first, also of a deleted one."""
        return {"versions": await self.hub.files.list_versions(file_path)}

    @route("GET", "/files/<file_path>/versions/<n>", Role.ADMIN, FILE_VERSION_TEXT)
    async def get_version(self, call: Call, file_path: str, n: str) -> object:
        """Return one previous text of a file."""
        if not (n.isascii() and n.isdecimal() and len(n) < 10):
            raise NotFound("version", f"{file_path} {n}")
        return {"path": file_path, "n": int(n), "text": await self.hub.files.read_version(file_path, int(n))}


class KindsApi(ApiResource):
    """The handler of `/kinds`."""

    @route("GET", "/kinds", Role.READ, KINDS)
    async def list_all(self, call: Call) -> object:
        """Return every kind of adapter by name, with the settings of its sections."""
        return {"kinds": await list_kinds(self.hub.kinds)}


class SectionsApi(ApiResource):
    """Handlers of the routes under `/files/sections`."""

    @route("GET", "/files/sections", Role.ADMIN, SECTIONS, statuses=(200, 400))
    async def list_all(self, call: Call) -> object:
        """Return the adapter sections of the configuration by name, also disabled ones. Secrets are `***`."""
        version, sections = await self.hub.sections.list_sections()
        return {"version": version, "sections": sections}

    @route("PUT", "/files/sections/<name>", Role.ADMIN, SAVED_FILE, statuses=(200, 409, 503), body=SECTION_BODY)
    async def put(self, call: Call, name: str) -> object:
        """Set keys of a section, after the checks of a save; null removes a key, and `***` keeps a secret."""
        stated = await call.body()
        kind, values, version = stated["kind"], stated["values"], stated["version"]
        try:
            return await self.hub.sections.save(name, kind, values, version, is_new=stated["is_new"])
        except InvalidFile as error:
            return refuse(error)

    @route("DELETE", "/files/sections/<name>", Role.ADMIN, statuses=(204, 400, 503))
    async def remove(self, call: Call, name: str) -> object:
        """Remove a section from the configuration, and stop its adapter."""
        try:
            await self.hub.sections.remove(name)
        except InvalidFile as error:
            return refuse(error)
        return None

    @route(
        "POST",
        "/files/sections/<name>/try",
        Role.ADMIN,
        TRIAL,
        body=TRIAL_BODY,
        max_body_bytes=MAX_FILE_BODY_BYTES,
        statuses=(200, 400),
    )
    async def try_out(self, call: Call, name: str) -> object:
        """Start a section before it is saved, for at most 10 seconds; return its devices, or its error."""
        stated = await call.body()
        kind, values = stated["kind"], stated["values"]
        try:
            return await self.hub.sections.try_section(
                name, kind, values, text=stated["text"], replay=stated["replay"]
            )
        except InvalidFile as error:
            return refuse(error)


class RecipesApi(ApiResource):
    """Handlers of the routes under `/recipes`."""

    @route("GET", "/recipes", Role.ADMIN, RECIPES)
    async def list_all(self, call: Call) -> object:
        """Return every recipe by id, with the fields that a form fills in."""
        return {"recipes": await self.hub.recipes.list_recipes()}

    @route("POST", "/recipes/<recipe_id>", Role.ADMIN, SAVED_FILE, statuses=(200, 409, 503), body=RECIPE_BODY)
    async def use(self, call: Call, recipe_id: str) -> object:
        """Write an automation or scene from the recipe, after the same checks as a save; 409 if the file exists."""
        recipe = await self.hub.recipes.get(recipe_id)
        stated = await call.body()
        try:
            return await self.hub.recipes.use(recipe, stated["file"], stated["name"], stated["values"])
        except InvalidFile as error:
            return refuse(error)


class SimulationApi(ApiResource):
    """The handler of `/simulate`."""

    @route(
        "POST",
        "/simulate",
        Role.ADMIN,
        SIMULATION,
        body=SIMULATE_BODY,
        body_optional=True,
        max_body_bytes=MAX_FILE_BODY_BYTES,
    )
    async def simulate(self, call: Call) -> object:
        """Return the lines of `lares simulate --json` for the automations, for at most 5 seconds of computing."""
        stated = await call.body()
        path, given = stated["path"], stated["text"]
        if (path is None) != (given is None):
            raise Invalid("path and text belong together: state both or neither")
        if path is not None:
            checked = await self.hub.files.check(path, given)
            if checked.errors:
                return refuse(InvalidFile(path, checked.errors))
            given = await self.hub.files.with_secrets(path, given)
        asked = SimulationRequest(
            path=path,
            text=given,
            start=stated["from"],
            hours=stated["hours"],
            events=stated["events"],
            runs_lua=stated["run"],
        )
        try:
            return await self.parts.simulate(asked, self.hub.recorder.list_present(SIMULATED_PREFIXES))
        except InvalidFile as error:
            return refuse(error)


class CompletionsApi(ApiResource):
    """The handler of `/completions`."""

    @route("GET", "/completions", Role.ADMIN, COMPLETIONS)
    async def list_all(self, call: Call) -> object:
        """Return the names that Lua files can use now, for editors."""
        hub = self.hub
        names = await hub.names.find_known()
        attributes, events = names.devices or {}, names.events
        devices = [
            {
                "id": device.id,
                "alias": device.alias,
                "name": device.name,
                "room": device.room_id,
                "attributes": sorted(attributes.get(device.id, ())),
                "commands": device.commands or (),
                "events": sorted(events.get(device.id, ())),
            }
            for device in hub.registry.list_devices()
        ]
        layout = hub.registry.layout
        return {
            "devices": devices,
            "rooms": [layout.rooms[id_] for id_ in sorted(layout.rooms)],
            "groups": [layout.groups[id_] for id_ in sorted(layout.groups)],
            "scenes": hub.scenes.list_scenes(),
            "variables": sorted(names.list_variables()),
            "timers": sorted(names.list_timers()),
            "operations": sorted(
                f"{section}:{each}" for section, operations in names.operations.items() for each in operations or ()
            ),
            "ctx": list_methods(),
        }
