"""Shapes of JSON. Each shape describes JSON to clients, and encodes or checks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from msgspec import Struct

from appliance.clock import timestamp

Schema = Mapping[str, Any]
"""A JSON Schema (2020-12). The API description contains a schema with a `title` only once, under that title."""

Encode = Callable[[Any], Any]


class Shape(dict[str, Any]):
    """A schema that also encodes the hub's objects. To encode an object, call the schema with the object."""

    def __init__(self, schema: Schema, encode: Encode) -> None:
        super().__init__(schema)
        self.encode = encode

    def __call__(self, value: Any) -> Any:
        return self.encode(value)


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
BOOLEAN: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
ANY: Schema = {}


def between(low: float, high: float, schema: Schema = INTEGER) -> Schema:
    """Return the schema of a number within the inclusive bounds."""
    return {**schema, "minimum": low, "maximum": high}


INSTANT = Shape({**TEXT, "format": "date-time", "description": "RFC 3339 in UTC, with milliseconds."}, timestamp)


class Check(Struct, frozen=True, kw_only=True):
    """A check of an external value. A call returns the value in its internal form, or raises `Invalid`. `schema`
    describes the value to clients."""

    schema: Schema
    run: Callable[[Any], Any]

    def __call__(self, value: Any) -> Any:
        return self.run(value)


class Part(Struct, frozen=True):
    """A field of a record: its schema and its source. The source is the dotted path of an attribute, or a function of
    the object. The default source is the attribute with the field's name."""

    schema: Schema
    source: str | Callable[[Any], Any]

    @property
    def read(self) -> Callable[[Any], Any]:
        """Return a function that reads the field's value from an object."""
        return attrgetter(self.source) if isinstance(self.source, str) else self.source


class Record(Shape):
    """A JSON object with exactly these fields. A call encodes a Python object, or a dictionary of field values.

    Optional fields are omitted if their value is None. A dictionary can lack optional fields, and fields with only
    one possible value.
    """

    def __init__(
        self,
        title: str,
        fields: Mapping[str, Schema | Part],
        optional: Mapping[str, Schema | Part] | None = None,
        description: str | None = None,
    ) -> None:
        needed, absent = _parts_of(fields), _parts_of(optional or {})
        self._needed = [(name, part.read, _encode_of(part.schema)) for name, part in needed.items()]
        self._optional = [(name, part.read, _encode_of(part.schema)) for name, part in absent.items()]
        schema = described(title, **{name: part.schema for name, part in needed.items()})
        more = {name: part.schema for name, part in absent.items()}
        said = {} if description is None else {"description": description}
        super().__init__({**schema, **said, "properties": {**schema["properties"], **more}}, self._of)

    def _of(self, thing: Any) -> dict[str, Any]:
        if isinstance(thing, dict):
            return self._of_values(thing)
        made: dict[str, Any] = {}
        for name, read, encode in self._needed:
            value = read(thing)
            made[name] = value if encode is None else encode(value)
        for name, read, encode in self._optional:
            if (value := read(thing)) is not None:
                made[name] = value if encode is None else encode(value)
        return made

    def _of_values(self, values: dict[str, Any]) -> dict[str, Any]:
        found = [
            *((name, values[name] if name in values else read(None), encode) for name, read, encode in self._needed),
            *((name, values[name], encode) for name, _, encode in self._optional if values.get(name) is not None),
        ]
        return {name: value if encode is None else encode(value) for name, value, encode in found}


def _parts_of(fields: Mapping[str, Schema | Part]) -> dict[str, Part]:
    return {name: each if isinstance(each, Part) else Part(each, name) for name, each in fields.items()}


def record(title: str, /, **fields: Schema | Part) -> Record:
    """Return a record with exactly these fields. A field's value comes from the attribute with the same name, or from
    its `Part`."""
    return Record(title, fields)


def described(title: str, /, **fields: Schema) -> Schema:
    """Return the schema of an object with exactly these fields, whose values are already JSON."""
    return {
        "title": title,
        "type": "object",
        "required": [*fields],
        "properties": fields,
        "additionalProperties": False,
    }


def array_of(items: Schema) -> Shape:
    encode = _encode_of(items)
    return Shape({"type": "array", "items": items}, list if encode is None else lambda values: [*map(encode, values)])


def maybe(schema: Schema) -> Shape:
    """Return the schema of a value that can be null."""
    encode = _encode_of(schema)
    nullable = _as_it_is if encode is None else lambda value: None if value is None else encode(value)
    return Shape({"anyOf": [schema, {"type": "null"}]}, nullable)


def one_of(*words: str) -> Schema:
    """Return the schema of an enum of strings."""
    return {"type": "string", "enum": [*words]}


def only(word: str) -> Part:
    """Return the schema of a constant string."""
    return Part({"const": word}, lambda _: word)


def _encode_of(schema: Schema) -> Encode | None:
    """Return the schema's encoder, or None if the values are already JSON."""
    return schema.encode if isinstance(schema, Shape) and schema.encode is not _as_it_is else None


def _as_it_is(value: Any) -> Any:
    return value
