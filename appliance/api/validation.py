"""Checks of requests. The checks also describe the requests in the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import orjson

from appliance.errors import Invalid, MalformedRequest
from appliance.home.values import MAX_JSON_DEPTH, is_within
from appliance.tables import checks
from appliance.tables.checks import Mismatch, format_value
from appliance.tables.fields import Field, Findings, Table
from appliance.tables.json_schema import (
    BOOLEAN,
    INTEGER,
    OBJECT,
    TEXT,
    Check,
    array_of,
    maybe,
    one_of,
)

RequestFields = Mapping[str, Field[Check]]
"""The fields of a request's object or query. Unknown fields are ignored."""


def body_check(title: str, fields: RequestFields) -> Check:
    """Return a check for a request's body: an object of these fields, checked by `parse`."""
    schema = {
        "title": title,
        "type": "object",
        "required": [name for name, field in fields.items() if field.is_needed],
        "properties": {name: field.check.schema for name, field in fields.items()},
    }
    return Check(schema=schema, run=lambda raw: parse(fields, raw))


def parse(fields: RequestFields, raw: Any) -> dict[str, Any]:
    """Return the checked fields of the object. Missing optional fields are None. Raise `Invalid` for the first wrong
    field."""
    table = Table(_require_object(raw), Findings())
    values = table.read(fields)
    for fault in table.findings.faults:
        raise MalformedRequest(str(fault)) if fault.is_missing else Invalid(str(fault))
    return values


def _require_object(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise MalformedRequest(f"the body must be a JSON object, not {format_value(raw)}")
    return raw


BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def parse_json(body: bytes) -> Any:
    """Return the JSON value of a body. Ignore the byte order mark that some programs send (RFC 8259, section 8.1).

    Raise `MalformedRequest` with the line and column of the fault.
    """
    try:
        return orjson.loads(body.removeprefix(BYTE_ORDER_MARK))
    except orjson.JSONDecodeError as error:
        where = f"{error.msg}, line {error.lineno} column {error.colno}" if body else "it is empty"
    try:
        body.decode()
    except UnicodeDecodeError as fault:
        where = f"byte {fault.start + 1} is not UTF-8"
    raise MalformedRequest(f"the body cannot be read as JSON: {where}")


def choice(*words: str, default: str | None = None, description: str | None = None) -> Check:
    """Return a check that accepts only these strings. `default` and `description` appear only in the schema."""
    stated = {"default": default, "description": description}
    return Check(
        schema={**one_of(*words), **{key: value for key, value in stated.items() if value is not None}},
        run=checks.one_of(*words),
    )


def member_of(choices: type[StrEnum]) -> Check:
    """Return a check that accepts only the enumeration's strings. The check returns the enumeration's member."""
    check = checks.one_of(*choices)
    return Check(schema=one_of(*choices), run=lambda value: choices(check(value)))


def whole_number(low: int, high: int, **stated: Any) -> Check:
    """Return a check for a query parameter that is a whole number. `stated` contains further keys of the schema."""

    def check(value: Any) -> int:
        if re.fullmatch("[0-9]{1,9}", value) is None or not low <= int(value) <= high:
            raise Invalid(f"must be a whole number from {low} to {high}, not {format_value(value)}")
        return int(value)

    return Check(schema={**INTEGER, "minimum": low, "maximum": high, **stated}, run=check)


def nullable(check: Check) -> Check:
    """Return a check that also accepts null."""
    return Check(schema=maybe(check.schema), run=lambda value: None if value is None else check(value))


def list_of(check: Check) -> Check:
    """Return a check for an array whose items all pass the given check."""

    def check_item(index: int, item: Any) -> Any:
        try:
            return check(item)
        except Invalid as fault:
            raise Invalid(f"at index {index} {fault}") from None

    def check_all(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Mismatch("an array", value)
        return tuple(check_item(index, item) for index, item in enumerate(value))

    return Check(schema=array_of(check.schema), run=check_all)


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Mismatch("an object", value)
    if not is_within(value, MAX_JSON_DEPTH):
        raise Invalid(f"must not be nested more than {MAX_JSON_DEPTH} levels deep")
    return value


boolean = Check(schema=BOOLEAN, run=checks.boolean)
text = Check(schema=TEXT, run=checks.string)
table = Check(schema=OBJECT, run=_table)
any_object_body = Check(schema=OBJECT, run=lambda raw: table(_require_object(raw)))
"""A request's body: an object with any fields."""

any_text = Check(schema=TEXT, run=lambda value: value)
"""Any value of a query parameter, which is always a string."""
