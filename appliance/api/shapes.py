"""Shapes: what JSON holds. One declaration both describes it in the documents and makes it of the hub's objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from appliance.clock import timestamp

Schema = Mapping[str, Any]
"""A JSON Schema (2020-12). One with a `title` stands under that name in the document, once, whoever uses it."""

Encode = Callable[[Any], Any]
"""Makes JSON of a value."""


class Shape(dict[str, Any]):
    """A schema that also says how such JSON is made of what the hub has: by calling it with that."""

    def __init__(self, schema: Schema, encode: Encode) -> None:
        super().__init__(schema)
        self.encode = encode

    def __call__(self, value: Any) -> Any:
        """The value as JSON."""
        return self.encode(value)

    def each(self, values: Iterable[Any]) -> list[Any]:
        """The values as an array of JSON."""
        return [*map(self.encode, values)]


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
BOOLEAN: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
ANY: Schema = {}
INSTANT = Shape({**TEXT, "format": "date-time", "description": "RFC 3339 in UTC, with milliseconds."}, timestamp)


@dataclass(frozen=True, slots=True)
class Part:
    """A field of a record: what it holds, and where in the object that stands, if not under the field's own name."""

    schema: Schema
    read: Callable[[Any], Any]


class Record(Shape):
    """An object of exactly these fields. Calling it makes one of an object, `of` of values that are at hand."""

    def __init__(self, title: str, fields: Mapping[str, Schema | Part]) -> None:
        parts = {
            name: each if isinstance(each, Part) else Part(each, attrgetter(name)) for name, each in fields.items()
        }
        self._parts = [(name, part.read, _encode_of(part.schema)) for name, part in parts.items()]
        super().__init__(described(title, **{name: part.schema for name, part in parts.items()}), self._of_object)

    def _of_object(self, thing: Any) -> dict[str, Any]:
        return {name: read(thing) if encode is None else encode(read(thing)) for name, read, encode in self._parts}

    def of(self, **values: Any) -> dict[str, Any]:
        """The object with these values; fields that can be only one value need not be given."""
        return {
            name: encode(values[name]) if encode is not None else values[name] if name in values else read(None)
            for name, read, encode in self._parts
        }


def record(title: str, /, **fields: Schema | Part) -> Record:
    """An object of exactly these fields, each read from the attribute of its name unless it is a `Part`."""
    return Record(title, fields)


def described(title: str, /, **fields: Schema) -> Schema:
    """The schema of an object of exactly these fields, for what is JSON already."""
    return {
        "title": title,
        "type": "object",
        "required": [*fields],
        "properties": fields,
        "additionalProperties": False,
    }


def array_of(items: Schema) -> Shape:
    """An array of such items."""
    encode = _encode_of(items)
    return Shape({"type": "array", "items": items}, list if encode is None else lambda values: [*map(encode, values)])


def maybe(schema: Schema) -> Shape:
    """Such a value, or null."""
    encode = _encode_of(schema) or (lambda value: value)
    return Shape({"anyOf": [schema, {"type": "null"}]}, lambda value: None if value is None else encode(value))


def one_of(*words: str) -> Schema:
    """One of these strings."""
    return {"type": "string", "enum": [*words]}


def only(word: str) -> Part:
    """A field that always holds this string."""
    return Part({"const": word}, lambda _: word)


def _encode_of(schema: Schema) -> Encode | None:
    """How such JSON is made; None where it is JSON already."""
    return schema.encode if isinstance(schema, Shape) else None
