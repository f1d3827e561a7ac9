"""The OpenAPI document is valid and complete, and describes exactly the checks of requests."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.api import routes
from appliance.api.app import ROUTES
from appliance.api.error_codes import CODES
from appliance.api.openapi import describe, statuses_of
from appliance.api.roles import REACH, Role
from appliance.api.route import Route
from appliance.api.routes import devices, groups, rooms
from appliance.errors import Invalid
from appliance.home.capabilities import CAPABILITIES
from appliance.home.json_shapes import COMMAND
from appliance.home.values import CHECKS
from appliance.tables.json_schema import Check, Schema, array_of, record
from tests.fakes import contract_recorder
from tests.fakes.app import READER, App

DOCUMENT: Any = json.loads(json.dumps(describe(ROUTES)))


def operation(route: Route) -> Any:
    return DOCUMENT["paths"][re.sub(r"<(\w+)>", r"{\1}", route.path)][route.method.lower()]


class TestTheDocument:
    @pytest.mark.slow
    def test_it_is_valid(self) -> None:
        from openapi_spec_validator import OpenAPIV31SpecValidator

        assert not [str(fault) for fault in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()]

    def test_every_reference_resolves_and_every_component_is_used(self) -> None:
        used = set(re.findall(r'"#/components/(\w+/\w+)"', json.dumps(DOCUMENT)))
        kept = {f"{kind}/{name}" for kind in ("schemas", "responses") for name in DOCUMENT["components"][kind]}
        assert used == kept

    def test_the_document_has_exactly_the_routes(self) -> None:
        stated = {(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item}
        assert stated == {(route.method, re.sub(r"<(\w+)>", r"{\1}", route.path)) for route in ROUTES}

    def test_operations_have_unique_names(self) -> None:
        names = [operation(route)["operationId"] for route in ROUTES]
        assert len(names) == len(set(names))

    def test_two_schemas_of_one_title_are_refused(self) -> None:
        rows = [
            replace(ROUTES[0], response_schema=record("Thing", **{name: {}}), path=f"/{name}")
            for name in ("id", "name")
        ]
        assert describe([rows[0], rows[0]])
        with pytest.raises(ValueError, match="two schemas have the title Thing"):
            describe(rows)

    async def test_the_document_is_served_unchanged_to_readers(self, app: App) -> None:
        answer = await app.get("/openapi.json", token=READER.text)
        assert (answer.status, answer.json) == (200, DOCUMENT)


class TestEachOperation:
    def test_it_names_every_status(self) -> None:
        for route in ROUTES:
            stated = {int(status) for status in operation(route)["responses"]}
            received = contract_recorder.answers_of(route) | contract_recorder.EVERYWHERE - {401, 403}
            assert stated == statuses_of(route) >= received
            assert (429 in stated) == (route.role is not None)

    def test_it_names_the_role(self) -> None:
        for route in ROUTES:
            stated = operation(route)["security"]
            ways = ["bearer", "token"] if route.path == "/events" or route.role is Role.HOOK else ["bearer"]
            assert stated == ([] if route.role is None else [{way: [route.role]} for way in ways])

    def test_it_lists_the_roles_of_each_route(self) -> None:
        for route in ROUTES:
            stated = operation(route)["description"]
            if route.role is None:
                assert stated == "Requires no key."
            for role in Role if route.role is not None else ():
                assert (route.role in REACH[role]) == (re.search(rf"\b{role}\b", stated) is not None)

    def test_it_names_every_parameter_of_the_path(self) -> None:
        for route in ROUTES:
            stated = [each["name"] for each in operation(route)["parameters"] if each["in"] == "path"]
            assert stated == re.findall(r"<(\w+)>", route.path)


def test_errors_have_an_error_and_their_headers() -> None:
    used = {(status, json.dumps(each)) for route in ROUTES for status, each in operation(route)["responses"].items()}
    for status, answer in used:
        if int(status) >= 400:
            assert json.loads(answer) == {"$ref": f"#/components/responses/{status}"}
            stated = DOCUMENT["components"]["responses"][status]
            base, narrower = stated["content"]["application/json"]["schema"]["allOf"]
            assert base == {"$ref": "#/components/schemas/Error"}
            assert narrower["properties"]["code"]["enum"] == [
                name for name, code in CODES.items() if code.status == int(status)
            ]


def test_headers_are_listed_with_their_statuses() -> None:
    stated = {status: set(each.get("headers", ())) for status, each in DOCUMENT["components"]["responses"].items()}
    assert {status: names for status, names in stated.items() if names} == {
        "401": {"WWW-Authenticate"},
        "405": {"Allow"},
        "426": {"Upgrade", "Sec-WebSocket-Version"},
        "429": {"Retry-After"},
        "503": {"Retry-After"},
    }


def test_ids_of_the_query_may_be_repeated() -> None:
    stated, _ = DOCUMENT["paths"]["/devices"]["get"]["parameters"]
    assert stated == {"name": "ids", "in": "query", "required": False, "schema": array_of({"type": "string"})}


@pytest.mark.parametrize(
    ("title", "required"),
    [("SimulateRequest", []), ("SectionRequest", ["kind"]), ("TrialRequest", ["kind"])],
)
def test_a_field_with_a_default_can_be_omitted(title: str, required: list[str]) -> None:
    assert DOCUMENT["components"]["schemas"][title]["required"] == required


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-600, 8000) | st.floats(-2, 300) | st.sampled_from(["#aa00FF", "x", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("rgbxy"), inner, max_size=4),
    max_leaves=5,
)
FIELDS = {
    "value": st.integers(100, 7100) | st.floats(0, 10),
    "unit": st.sampled_from(["kelvin", "mireds", "°C"]),
    "period": st.just("day"),
    "hue": st.integers(-1, 361),
    "saturation": st.integers(-1, 101),
    **{each: st.integers(-1, 256) | st.floats(-0.1, 1.1) for each in "rgbxy"},
}
VALUES = JSON | st.fixed_dictionaries({}, optional=FIELDS)
BODIES = VALUES | st.fixed_dictionaries(
    {},
    optional={
        "id": JSON | st.text(max_size=3),
        "name": JSON | st.just("Hall"),
        "room_id": JSON | st.just("hall"),
        "members": JSON | st.lists(st.just("tv:tv") | JSON),
    },
)


def takes(check: Any, value: Any) -> bool:
    try:
        check(value)
    except Invalid:
        return False
    return True


def fits(value: Any, schema: Schema) -> bool:
    return jsonschema_rs.is_valid(dict(schema), value)


class TestOneSource:
    """A value is accepted if and only if its schema describes it."""

    @pytest.mark.parametrize("kind", CHECKS)
    @given(value=VALUES)
    def test_values(self, kind: str, value: Any) -> None:
        described = fits(value, CHECKS[kind].schema)
        assert described == takes(CHECKS[kind], value), (kind, value)

    @pytest.mark.parametrize(
        "check", [rooms.ROOM_BODY, groups.GROUP_BODY, groups.MEMBERS_BODY, devices.ASSIGNMENT_BODY]
    )
    @given(value=BODIES)
    def test_bodies(self, check: Check, value: Any) -> None:
        if takes(check, value):
            assert fits(value, check.schema)
        elif fits(value, check.schema):
            with pytest.raises(Invalid, match=r"control characters|1 to|must not contain"):
                check(value)

    def test_commands_have_the_names_of_the_catalog(self) -> None:
        properties = COMMAND.schema["properties"]
        assert CAPABILITIES.keys() <= set(properties["capability"]["enum"])
        for capability in CAPABILITIES.values():
            assert set(capability.actions) <= set(properties["action"]["enum"])

    def test_the_examples_of_a_command_are_commands(self) -> None:
        for example in COMMAND.schema["examples"]:
            assert takes(COMMAND, example)
            assert fits(example, COMMAND.schema)


GOOD = {"content-type": "application/json"}
REFUSED = {**GOOD, "WWW-Authenticate": "Bearer"}

Answer = tuple[str, str, int, dict[str, str], bytes]

WRONG: list[Answer] = [
    ("GET", "/health", 201, GOOD, b'{"status":"ok"}'),
    ("GET", "/health", 200, GOOD, b'{"status":"ok","more":1}'),
    ("GET", "/health", 200, {"content-type": "text/plain"}, b'{"status":"ok"}'),
    ("GET", "/health", 200, {}, b'{"status":"ok"}'),
    ("GET", "/rooms", 200, GOOD, b'[{"id":"hall"}]'),
    ("GET", "/rooms/hall", 404, GOOD, b'{"error":"","code":"room_not_found"}'),
    ("GET", "/rooms/hall", 404, GOOD, b'{"error":"no"}'),
    ("GET", "/rooms/hall", 404, GOOD, b'{"error":"no","code":"invalid_value"}'),
    ("GET", "/rooms", 401, GOOD, b'{"error":"no","code":"authentication_required"}'),
    ("GET", "/rooms", 500, GOOD, b'{"error":"the hub failed"}'),
    ("PUT", "/rooms", 405, GOOD, b'{"error":"no","code":"method_not_allowed"}'),
    ("GET", "/nothing", 200, GOOD, b"{}"),
    ("DELETE", "/rooms/hall", 204, GOOD, b"{}"),
]
RIGHT: list[Answer] = [
    ("HEAD", "/health", 200, GOOD, b""),
    ("GET", "/rooms?x=y", 200, GOOD, b'[{"id":"hall","name":"Hall"}]'),
    ("GET", "/rooms/hall", 404, GOOD, b'{"error":"no","code":"room_not_found","more":[1]}'),
    ("GET", "/rooms", 401, REFUSED, b'{"error":"no","code":"authentication_required"}'),
    ("PUT", "/rooms", 405, {**GOOD, "Allow": "GET"}, b'{"error":"no","code":"method_not_allowed"}'),
    ("DELETE", "/rooms/hall", 204, {}, b""),
]


def test_an_answer_that_the_document_does_not_describe_fails_the_test_that_received_it() -> None:
    for answer in WRONG:
        with pytest.raises(AssertionError):
            contract_recorder.judge(*answer)
    for answer in RIGHT:
        contract_recorder.judge(*answer)


def test_the_package_lists_every_path_in_a_file_with_another_name() -> None:
    lines = re.findall(r"^- `(\w+)`: (.*)$", routes.__doc__ or "", re.MULTILINE)
    listed = {(file, path) for file, paths in lines for path in re.findall(r"`(.+?)`", paths)}
    found = set()
    for row in ROUTES:
        file = row.handler.__module__.rpartition(".")[2]
        prefixes = {(name, path) for name, path in listed if name == file and f"{row.path}/".startswith(f"{path}/")}
        assert prefixes or row.path.split("/")[1] == file, f"{row.path} is in {file}.py"
        found |= prefixes
    assert found == listed
