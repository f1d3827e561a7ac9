"""The adapter sections of the configuration, and the adapter kinds."""

from __future__ import annotations

import orjson

from appliance.api.limits import MAX_FILE_BODY_BYTES
from appliance.api.responses import encode_limited
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.schemas import SAVED_FILE
from appliance.api.validation import body_check, boolean, nullable, table, text
from appliance.files.kind_forms import list_kind_forms
from appliance.home.json_shapes import DEVICE
from appliance.tables.fields import Field
from appliance.tables.json_schema import ANY, BOOLEAN, NUMBER, OBJECT, TEXT, array_of, maybe, one_of, record

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
SECTION_BODY = body_check(
    "SectionRequest",
    {
        "kind": Field(text),
        "values": Field(table, default={}),
        "version": Field(nullable(text), required=False),
        "is_new": Field(boolean, default=False),
    },
)
TRIAL_BODY = body_check(
    "TrialRequest",
    {
        "kind": Field(text),
        "values": Field(table, default={}),
        "text": Field(nullable(text), required=False),
        "replay": Field(nullable(table), required=False),
    },
)


class KindsApi(ApiResource):
    """The handler of `/kinds`."""

    needs_files = True

    @route("GET", "/kinds", Role.READ, KINDS)
    async def list_all(self, call: Call) -> object:
        """Return every adapter kind by name, with the settings of its sections."""
        return {"kinds": await list_kind_forms(self.hub.kinds.files)}


class SectionsApi(ApiResource):
    """Handlers of the routes under `/files/sections`."""

    needs_files = True

    @route("GET", "/files/sections", Role.ADMIN, SECTIONS, statuses=(200, 400))
    async def list_all(self, call: Call) -> object:
        """Return all adapter sections of the configuration by name, even disabled ones. Secrets are `***`."""
        version, sections = await self.hub.sections.list_sections()
        return {"version": version, "sections": sections}

    @route("PUT", "/files/sections/<name>", Role.ADMIN, SAVED_FILE, statuses=(200, 409, 503), body=SECTION_BODY)
    async def put(self, call: Call, name: str) -> object:
        """Set keys of a section, after the checks of a save. null removes a key, and `***` keeps a secret."""
        stated = await call.read_body()
        kind, values, version = stated["kind"], stated["values"], stated["version"]
        return await self.hub.sections.save(name, kind, values, version, is_new=stated["is_new"])

    @route("DELETE", "/files/sections/<name>", Role.ADMIN, statuses=(204, 400, 503))
    async def remove(self, call: Call, name: str) -> object:
        """Remove a section from the configuration, and stop its adapter."""
        await self.hub.sections.remove(name)
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
        """Start a section for at most 10 seconds without saving it. Return its devices, or its error."""
        stated = await call.read_body()
        kind, values = stated["kind"], stated["values"]
        replay = stated["replay"]
        with call.cancellable():
            trial = await self.hub.sections.try_section(name, kind, values, text=stated["text"], replay=replay)
        devices = await encode_limited(self.hub.clock, DEVICE, trial.devices)
        others = {key: getattr(trial, key) for key in TRIAL["required"] if key != "devices"}
        return b'{"devices":%b,%b' % (devices, orjson.dumps(others)[1:])
