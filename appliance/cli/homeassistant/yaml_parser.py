"""Parses YAML with Home Assistant's tags, within limits."""

from __future__ import annotations

import math
import os
import warnings
from functools import partial, reduce
from pathlib import Path
from typing import Any

from msgspec import Struct
from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from appliance.errors import StartFailed

MAX_VALUES = 200_000
"""The maximum number of values in the configuration, because parsing takes some 60 µs per value. Each use of an alias
or an included file counts again. A long text and each file also count once per `VALUE_CHARS`."""

VALUE_CHARS = 50

MAX_DEPTH = 64
"""The maximum nesting depth of values, including aliases and included files."""

TOO_MANY = (
    f"with aliases and included files, the configuration has more than {MAX_VALUES} values; "
    "remove files and values that the import does not need"
)

TOO_DEEP = (
    f"with aliases and included files, values are nested more than {MAX_DEPTH} levels deep; "
    "check that no file includes itself"
)


class Tagged(Struct, frozen=True):
    """A YAML value with a tag of Home Assistant, such as `!secret wifi`. `line` is the line in its file."""

    tag: str
    value: Any
    line: int = 0

    def __str__(self) -> str:
        return f"{self.tag} {self.value}"


class Base60(str):
    """A number in base 60 without quotes, such as 1:30. Home Assistant reads 1:30 as 90."""

    __slots__ = ()

    @property
    def number(self) -> int:
        number = reduce(lambda total, part: total * 60 + int(part), self.lstrip("+-").split(":"), 0)
        return -number if self.startswith("-") else number


class YamlParser:
    """Parses the files of one configuration. The limit of values applies to all files together."""

    def __init__(self) -> None:
        self._count = 0

    def parse(self, content: bytes, file: Path) -> Any:
        """Return the content as plain values. Raise `StartFailed` with the file and line."""
        yaml = YAML(typ="safe", pure=True, plug_ins=[])
        yaml.version = (1, 1)
        yaml.allow_duplicate_keys = True
        count = self._count + len(content) // VALUE_CHARS
        yaml.Composer = partial(_Composer, count)  # type: ignore[assignment] # the library only calls it
        yaml.Constructor = _Constructor
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                parsed = yaml.load(content.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise StartFailed(f"{file} is not UTF-8 text", os.EX_DATAERR) from None
        except (YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f"{file}:{mark.line + 1}" if mark is not None else str(file)
            problem = str(getattr(error, "problem", None) or "cannot be read").split("\n")[0]
            prefix = "" if isinstance(error, _LimitExceeded) else "not valid YAML: "
            raise StartFailed(f"{where}: {prefix}{problem}", os.EX_DATAERR) from None
        self._count = yaml.composer.count
        return parsed


class _Constructor(SafeConstructor):
    """Constructs YAML values, but keeps tags and times as texts. For a repeated key, the last value wins, as in Home
    Assistant."""

    def check_mapping_key(self, *_: Any) -> bool:
        return True

    def _tagged(self, node: Any) -> Tagged:
        if isinstance(node, ScalarNode):
            value: Any = node.value
        elif isinstance(node, SequenceNode):
            value = self.construct_sequence(node, deep=True)
        elif isinstance(node, MappingNode):
            value = self.construct_mapping(node, deep=True)
        return Tagged(str(node.tag), value, node.start_mark.line + 1)

    def construct_yaml_int(self, node: Any) -> Any:
        """Return a number of at most 64 bits. Return any other scalar as text, such as a time: YAML 1.1 reads
        22:30:00 as a number in base 60."""
        text = self.construct_scalar(node)
        if ":" in text:
            return Base60(text)
        try:
            value = super().construct_yaml_int(node)
        except (IndexError, ValueError):  # no digits, or more digits than Python converts
            return text
        return value if -(2**63) <= value < 2**63 else text

    def construct_yaml_float(self, node: Any) -> Any:
        """Return a number of at most 64 bits. Return any other scalar as text, such as 1e999."""
        text = self.construct_scalar(node)
        try:
            value = super().construct_yaml_float(node)
        except (IndexError, OverflowError, ValueError):
            return text
        return text if math.isinf(value) and text.lower().lstrip("+-") != ".inf" else value

    def construct_yaml_bool(self, node: Any) -> Any:
        """Return a boolean, or the text `y` or `n`. Home Assistant's parser reads these letters as texts."""
        text = self.construct_scalar(node)
        return text if len(text) == 1 else self.bool_values.get(text.lower(), text)


_Constructor.add_constructor(None, _Constructor._tagged)  # noqa: SLF001
_Constructor.add_constructor("tag:yaml.org,2002:int", _Constructor.construct_yaml_int)
_Constructor.add_constructor("tag:yaml.org,2002:float", _Constructor.construct_yaml_float)
_Constructor.add_constructor("tag:yaml.org,2002:bool", _Constructor.construct_yaml_bool)
_Constructor.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


class _LimitExceeded(YAMLError):
    """Raised for valid YAML that exceeds a limit of the import."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem)
        self.problem = problem
        self.problem_mark = mark


class _Composer(Composer):
    """Composes YAML nodes. Raises `_LimitExceeded` at the first value beyond the limits, before aliases or merge keys
    expand. `count` is the number of values in this file and earlier files."""

    def __init__(self, count: int, loader: Any = None) -> None:
        super().__init__(loader)
        self.count = count
        self._deepest = 0
        self._sizes: dict[int, tuple[int, int]] = {}
        """The number of values and the nesting depth of each finished node with an anchor."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event, level = self.parser.peek_event(), self.depth + 1
        before, deepest, self._deepest = self.count, self._deepest, level
        self._check(event.start_mark)
        node = super().compose_node(parent, index)
        if not isinstance(event, AliasEvent):
            self.count += value_count(node.value)
            if event.anchor is not None:
                self._sizes[id(node)] = self.count - before, self._deepest - level
        elif (size := self._sizes.get(id(node))) is not None:
            self.count += size[0]
            self._deepest += size[1]
        else:
            raise _LimitExceeded(
                f"the alias *{event.anchor} contains itself; write the values instead", event.start_mark
            )
        self._check(event.start_mark)
        self._deepest = max(deepest, self._deepest)
        return node

    def _check(self, mark: Any) -> None:
        if self.count > MAX_VALUES:
            raise _LimitExceeded(TOO_MANY, mark)
        if self._deepest > MAX_DEPTH:
            raise _LimitExceeded(TOO_DEEP, mark)


def value_count(value: Any) -> int:
    return 1 + (len(value) // VALUE_CHARS if isinstance(value, str) else 0)
