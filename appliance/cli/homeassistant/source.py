"""Reads the configuration folder of Home Assistant: YAML files and the registries in `.storage`.

The formats follow Home Assistant's documentation of YAML and of its registries (`core.area_registry`,
`core.device_registry`, `core.entity_registry`), for releases since 2021.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct
from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from appliance.errors import StartFailed
from appliance.home.texts import clean_text
from appliance.tables.plain_files import read_plain

MAX_FILE_BYTES = 16 * 1024 * 1024

MAX_VALUES = 500_000
"""The maximum number of values in the configuration. Each use of an alias or an included file counts again, and a
long text counts once per `VALUE_CHARS`."""

VALUE_CHARS = 100

INCLUDE_COUNT = 20
"""Each use of an included file counts like this number of values."""

MAX_TITLE_CHARS = 200

MAX_DEPTH = 64
"""The maximum nesting depth of values, including aliases and included files."""

STORAGE = ".storage"

HELPERS = frozenset(
    {"input_boolean", "input_button", "input_datetime", "input_number", "input_select", "input_text", "counter"}
)
"""Domains whose entities become variables."""

SECTIONS = ("automation", "script", "scene")
"""Sections of the configuration that are translated to Lua."""

INTEGRATIONS = frozenset({"homeassistant", "zone", "person", "group", "timer", "schedule", *HELPERS})
"""Configuration keys that the import needs. If a file for another key is unreadable, the import continues."""

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Tagged(Struct, frozen=True):
    """A YAML value with a tag of Home Assistant, such as `!secret wifi`."""

    tag: str
    value: Any

    def __str__(self) -> str:
        return f"{self.tag} {self.value}"


class HaArea(Struct, frozen=True, kw_only=True):
    """A row of the area registry."""

    id: str
    name: str
    floor_id: str | None = None
    labels: tuple[str, ...] = ()


class HaDevice(Struct, frozen=True, kw_only=True):
    """A row of the device registry."""

    id: str
    identifiers: tuple[tuple[str, str], ...] = ()
    connections: tuple[str, ...] = ()
    serial: str | None = None
    name: str | None = None
    area_id: str | None = None
    labels: tuple[str, ...] = ()


class HaEntity(Struct, frozen=True, kw_only=True):
    """A row of the entity registry. Device automations refer to the entity by `id`."""

    entity_id: str
    id: str = ""
    unique_id: str = ""
    platform: str = ""
    device_id: str | None = None
    area_id: str | None = None
    name: str | None = None
    original_name: str | None = None
    device_class: str | None = None
    config_entry: str | None = None
    labels: tuple[str, ...] = ()

    @property
    def domain(self) -> str:
        return self.entity_id.partition(".")[0]


class Installation(Struct, frozen=True, kw_only=True):
    """The content of the folder.

    - `automations`, `scenes`: pairs of origin and definition.
    - `scripts`: triples of origin, object id, and definition.
    - `timers`: default durations by object id.
    - `zones`: names by id.
    - `persons`: trackers by entity id.
    - `groups`: members by entity id.
    - `schedules`: days with start and end, by entity id.
    - `helpers`: values by entity id.
    - `locale`: `timezone`, `latitude`, and `longitude`, if known.
    """

    areas: Mapping[str, HaArea]
    devices: Mapping[str, HaDevice]
    entities: Mapping[str, HaEntity]
    automations: tuple[tuple[str, Any], ...]
    scripts: tuple[tuple[str, str, Any], ...]
    scenes: tuple[tuple[str, Any], ...]
    timers: Mapping[str, Any]
    zones: Mapping[str, str]
    persons: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, tuple[str, ...]]
    schedules: Mapping[str, tuple[tuple[str, str, str], ...]]
    helpers: Mapping[str, Any]
    locale: Mapping[str, Any]
    is_metric: bool = True


def read_installation(path: Path) -> Installation:
    """Read the folder. Raise `StartFailed` if the folder is not a Home Assistant folder, or if a file cannot be
    read."""
    if not path.is_dir():
        raise StartFailed(f"{path} is not a folder; name Home Assistant's configuration folder", os.EX_NOINPUT)
    known = (
        "automations.yaml",
        "configuration.yaml",
        f"{STORAGE}/core.area_registry",
        f"{STORAGE}/core.device_registry",
    )
    if not any((path / each).is_file() for each in known):
        raise StartFailed(
            f"{path} contains neither automations.yaml nor .storage; name Home Assistant's configuration folder",
            os.EX_NOINPUT,
        )
    folder = _Folder(path)
    parts = _parts(folder)
    configuration = _configuration(folder, parts)
    entities = {
        each.entity_id: each for each in map(_entity, _rows(folder, "core.entity_registry", "entities")) if each
    }
    return Installation(
        areas={each.id: each for each in _areas(folder)},
        devices={each.id: each for each in map(_device, _rows(folder, "core.device_registry", "devices")) if each},
        entities=entities,
        automations=tuple(_listed(folder, parts, "automation")),
        scripts=tuple(_scripts(folder, parts)),
        scenes=tuple(_listed(folder, parts, "scene")),
        timers=_timers(folder, configuration),
        zones=_zones(folder, configuration),
        persons=dict(_persons(folder, configuration)),
        groups=dict(_groups(folder, configuration, entities)),
        schedules=dict(_schedules(folder, configuration, entities)),
        helpers=_helpers(folder, configuration, entities),
        locale=_locale(folder, configuration),
        is_metric=_is_metric(folder, configuration),
    )


def _areas(folder: _Folder) -> Iterator[HaArea]:
    for row in _rows(folder, "core.area_registry", "areas"):
        id_, name = _text(row.get("id")) or _text(row.get("area_id")), _text(row.get("name"))
        if id_ and name:
            yield HaArea(
                id=id_, name=name, floor_id=_text(row.get("floor_id")), labels=tuple(words(row.get("labels")))
            )


def _device(row: Mapping[str, Any]) -> HaDevice | None:
    id_ = _text(row.get("id"))
    if not id_:
        return None
    return HaDevice(
        id=id_,
        identifiers=tuple(_pairs(row.get("identifiers"))),
        connections=tuple(value for _, value in _pairs(row.get("connections"))),
        serial=_text(row.get("serial_number")),
        name=_text(row.get("name_by_user")) or _text(row.get("name")),
        area_id=_text(row.get("area_id")),
        labels=tuple(words(row.get("labels"))),
    )


def _entity(row: Mapping[str, Any]) -> HaEntity | None:
    entity_id = _text(row.get("entity_id"))
    if not entity_id or "." not in entity_id:
        return None
    return HaEntity(
        entity_id=entity_id,
        id=_text(row.get("id")) or "",
        unique_id=_text(row.get("unique_id")) or "",
        platform=_text(row.get("platform")) or "",
        device_id=_text(row.get("device_id")),
        area_id=_text(row.get("area_id")),
        name=_text(row.get("name")),
        original_name=_text(row.get("original_name")),
        device_class=_text(row.get("device_class")) or _text(row.get("original_device_class")),
        config_entry=_text(row.get("config_entry_id")),
        labels=tuple(words(row.get("labels"))),
    )


def _parts(folder: _Folder) -> list[tuple[str, Mapping[Any, Any]]]:
    """Return the path and content of configuration.yaml and of each package, without included files."""
    configuration = _mapping(folder.read_yaml("configuration.yaml"))
    core = _mapping(next(_files(folder, "configuration.yaml", configuration.get("homeassistant")), ("", None))[1])
    found = [("configuration.yaml", {**configuration, "homeassistant": core})]
    stated = core.get("packages")
    is_named = isinstance(stated, Tagged) and stated.tag == "!include_dir_named"
    for origin, value in _files(folder, "configuration.yaml", stated):
        packages = {origin: value} if is_named else _mapping(value)
        found += [each for value in packages.values() for each in _files(folder, origin, value)]
    return [(origin, _mapping(value)) for origin, value in found]


def _files(folder: _Folder, origin: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the path and content of each included file. Yield a value without a tag unchanged."""
    if not isinstance(value, Tagged) or not value.tag.startswith("!include"):
        yield origin, value
        return
    for file in folder.list_included(origin, value):
        yield file, folder.read_yaml(file)


def _included(folder: _Folder, origin: str, value: Any, depth: int = 1) -> Any:
    """In the value, replace each include with the content of the included files."""
    folder.count(origin, value, depth)
    if isinstance(value, Tagged) and value.tag.startswith("!include"):
        contents = [
            (file, _included(folder, file, content, depth + 1)) for file, content in _files(folder, origin, value)
        ]
        if value.tag == "!include_dir_named":
            return {Path(file).stem: content for file, content in contents}
        if value.tag == "!include_dir_list":
            return [content for _, content in contents]
        return _merged(content for _, content in contents)
    if isinstance(value, Mapping):
        return {key: _included(folder, origin, each, depth + 1) for key, each in value.items()}
    return [_included(folder, origin, each, depth + 1) for each in value] if isinstance(value, list) else value


def _merged(values: Iterable[Any]) -> Any:
    found: Any = None
    for each in values:
        if isinstance(found, Mapping) and isinstance(each, Mapping):
            found = {**found, **each}
        elif isinstance(found, list) and isinstance(each, list):
            found = [*found, *each]
        else:
            found = each if found is None else found
    return found


def _configuration(folder: _Folder, parts: Sequence[tuple[str, Mapping[Any, Any]]]) -> dict[str, Any]:
    """Return the sections that the import needs, from configuration.yaml and its packages."""
    found: dict[str, Any] = {}
    for origin, part in parts:
        for key, value in part.items():
            if (name := str(key).split(" ")[0]) in INTEGRATIONS:
                found[name] = _merged([found.get(name), _included(folder, origin, value)])
    return found


def _contents(
    folder: _Folder, parts: Sequence[tuple[str, Mapping[Any, Any]]], section: str
) -> Iterator[tuple[str, Any]]:
    """Yield the origin and content of each part of a section: first the file that Home Assistant's user interface
    writes, such as `automations.yaml`, then each key in the configuration."""
    read = {f"{section}s.yaml"}
    for file in read:
        yield file, _included(folder, file, folder.read_yaml(file))
    for origin, part in parts:
        for key, value in part.items():
            if str(key).split(" ")[0] != section:
                continue
            is_named = section == "script" and isinstance(value, Tagged) and value.tag == "!include_dir_named"
            for file, content in _files(folder, origin, value):
                if file not in read or not isinstance(value, Tagged):
                    made = _included(folder, file, content)
                    yield file, {Path(file).stem: made} if is_named else made
                    read |= {file} if isinstance(value, Tagged) else set()


def _listed(
    folder: _Folder, parts: Sequence[tuple[str, Mapping[Any, Any]]], section: str
) -> Iterator[tuple[str, Any]]:
    for file, content in _contents(folder, parts, section):
        for number, each in enumerate(as_list(content), 1):
            yield f"{file}, number {number}", _filled(folder, each, section)


def _scripts(folder: _Folder, parts: Sequence[tuple[str, Mapping[Any, Any]]]) -> Iterator[tuple[str, str, Any]]:
    for file, content in _contents(folder, parts, "script"):
        for id_, each in _mapping(content).items():
            yield f"{file}, {id_}", str(id_), _filled(folder, each, "script")


def _filled(folder: _Folder, definition: Any, section: str) -> Any:
    """Add the blueprint's parts to an automation or script. If the blueprint's file is missing, return the definition
    unchanged."""
    use = _mapping(_mapping(definition).get("use_blueprint"))
    file = f"blueprints/{section}/{use.get('path')}"
    if not use or not folder.contains(file):
        return definition
    blueprint = dict(_mapping(folder.read_yaml(file)))
    if not blueprint:
        return definition
    inputs = {
        **dict(_defaults(_mapping(blueprint.pop("blueprint", None)).get("input"))),
        **_mapping(use.get("input")),
    }
    own = {key: each for key, each in definition.items() if key != "use_blueprint"}
    return {**_replaced(folder, file, blueprint, inputs), **own}


def _defaults(inputs: Any) -> Iterator[tuple[str, Any]]:
    """Yield the default of each blueprint input, including inputs in sections."""
    for name, row in _mapping(inputs).items():
        yield from _defaults(_mapping(row).get("input"))
        if "default" in _mapping(row):
            yield str(name), row["default"]


def _replaced(folder: _Folder, file: str, value: Any, inputs: Mapping[str, Any]) -> Any:
    if isinstance(value, Tagged) and value.tag == "!input":
        return _included(folder, file, inputs.get(str(value.value), value))
    folder.count(file, value)
    if isinstance(value, Mapping):
        return {key: _replaced(folder, file, each, inputs) for key, each in value.items()}
    return [_replaced(folder, file, each, inputs) for each in value] if isinstance(value, list) else value


def _timers(folder: _Folder, configuration: Mapping[str, Any]) -> dict[str, Any]:
    found = {str(name): _mapping(row).get("duration") for name, row in _mapping(configuration.get("timer")).items()}
    for row in _rows(folder, "timer", "items"):
        if id_ := _text(row.get("id")):
            found[id_] = row.get("duration")
    return found


def _zones(folder: _Folder, configuration: Mapping[str, Any]) -> dict[str, str]:
    """Return zone names by object id."""
    configured = configuration.get("zone")
    rows = [*_rows(folder, "zone", "items"), *(configured if isinstance(configured, list) else [configured])]
    names = [name for row in rows if (name := _text(_mapping(row).get("name")))]
    return {object_id(name): name for name in names}


def _persons(folder: _Folder, configuration: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each person's entity id, and the entity ids of the person's trackers."""
    configured = configuration.get("person")
    for row in [*_rows(folder, "person", "items"), *(configured if isinstance(configured, list) else ())]:
        name, trackers = _text(_mapping(row).get("name")), _mapping(row).get("device_trackers")
        if name and isinstance(trackers, list):
            yield f"person.{object_id(name)}", tuple(map(str, trackers))


def _groups(
    folder: _Folder, configuration: Mapping[str, Any], entities: Mapping[str, HaEntity]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each group's members, from the configuration or from Home Assistant's user interface."""
    for name, row in _mapping(configuration.get("group")).items():
        yield f"group.{name}", tuple(words(_mapping(row).get("entities", row)))
    entries = {str(row.get("entry_id")): row for row in _rows(folder, "core.config_entries", "entries")}
    for entity_id, each in entities.items():
        options = _mapping(_mapping(entries.get(each.config_entry or "")).get("options"))
        if each.platform == "group" and options:
            yield entity_id, tuple(words(options.get("entities")))


def _named_rows(
    folder: _Folder, domain: str, configuration: Mapping[str, Any], entities: Mapping[str, HaEntity]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the entity id and the row of each helper in a domain, from the configuration or from Home Assistant's
    user interface."""
    for name, row in _mapping(configuration.get(domain)).items():
        yield f"{domain}.{name}", _mapping(row)
    renamed = {each.unique_id: each.entity_id for each in entities.values() if each.platform == domain}
    for row in _rows(folder, domain, "items"):
        id_ = str(row.get("id"))
        yield renamed.get(id_, f"{domain}.{id_}"), row


def _schedules(
    folder: _Folder, configuration: Mapping[str, Any], entities: Mapping[str, HaEntity]
) -> Iterator[tuple[str, tuple[tuple[str, str, str], ...]]]:
    """Yield day, start, and end of each schedule block."""
    for entity_id, row in _named_rows(folder, "schedule", configuration, entities):
        blocks = [
            (day[:3], str(_mapping(block).get("from")), str(_mapping(block).get("to")))
            for day in DAYS
            for block in as_list(row.get(day))
        ]
        yield entity_id, tuple(blocks)


def _helpers(folder: _Folder, configuration: Mapping[str, Any], entities: Mapping[str, HaEntity]) -> dict[str, Any]:
    """Return the last state of each helper or, if no last state is stored, the initial state."""
    found: dict[str, Any] = {}
    for domain in sorted(HELPERS):
        for entity_id, row in _named_rows(folder, domain, configuration, entities):
            found[entity_id] = _first_state(domain, row)
    stored = _mapping(folder.read_json("core.restore_state")).get("data")
    for row in stored if isinstance(stored, list) else ():
        state = _mapping(_mapping(row).get("state"))
        entity_id, value = str(state.get("entity_id")), state.get("state")
        domain = entity_id.split(".", maxsplit=1)[0]
        if domain in HELPERS - {"input_button"} and value not in (None, "unknown", "unavailable"):
            found[entity_id] = helper_value(domain, value)
    return found


def _first_state(domain: str, row: Mapping[str, Any]) -> Any:
    if (initial := row.get("initial")) is not None:
        return helper_value(domain, initial)
    options = row.get("options")
    if domain == "input_select" and isinstance(options, list) and options:
        return helper_value(domain, options[0])
    if domain == "input_datetime" and row.get("has_time") is True and row.get("has_date") is not True:
        return "00:00:00"
    return {"input_boolean": False, "input_number": number(row.get("min", 0)), "counter": 0}.get(domain, "")


def helper_value(domain: str, state: Any) -> Any:
    """Convert a helper's state to the value of its variable. Words and times remain texts."""
    if domain == "input_boolean":
        return state in ("on", True)
    if isinstance(state, bool) and domain in ("input_select", "input_text"):
        return "on" if state else "off"  # YAML reads these words as booleans
    return number(state) if domain in ("input_number", "counter") else str(state)


def _locale(folder: _Folder, configuration: Mapping[str, Any]) -> dict[str, Any]:
    stored = _mapping(_mapping(folder.read_json("core.config")).get("data"))
    both = {**stored, **_mapping(configuration.get("homeassistant"))}
    found: dict[str, Any] = {}
    if zone := _text(both.get("time_zone")):
        found["timezone"] = zone
    coordinates = both.get("latitude"), both.get("longitude")
    if all(isinstance(each, int | float) and not isinstance(each, bool) for each in coordinates):
        found |= dict(zip(("latitude", "longitude"), coordinates, strict=True))
    return found


def number(word: Any) -> Any:
    """Convert a numeric text to a number. Return other values unchanged."""
    if not isinstance(word, str):
        return word
    try:
        value = float(word)
    except ValueError:
        return word
    return int(value) if value.is_integer() else value


def as_list(value: Any) -> list[Any]:
    """Convert a single or missing value to a list."""
    return [] if value is None else list(value) if isinstance(value, list) else [value]


def words(value: Any) -> list[str]:
    """Split a list or a comma-separated text (for example, of entity ids)."""
    found = [each for row in as_list(value) for each in (row.split(",") if isinstance(row, str) else [row])]
    return [str(each).strip() for each in found if str(each).strip()]


def mentions(value: Any, part: str) -> bool:
    """Return whether a key or text in the value contains the part."""
    if isinstance(value, str):
        return part in value
    if isinstance(value, Mapping):
        return any(part in str(key) or mentions(each, part) for key, each in value.items())
    if isinstance(value, Tagged):
        return mentions(value.value, part)
    return isinstance(value, list) and any(mentions(each, part) for each in value)


def title_of(*texts: Any) -> str:
    """Return the first text from which a valid name in Lares can be made, as such a name."""
    names = (clean_text(str(each or ""), MAX_TITLE_CHARS) for each in texts)
    return next(filter(None, names), "")


def is_template(value: Any) -> bool:
    return isinstance(value, str) and contains_template(value)


def contains_template(value: Any) -> bool:
    return mentions(value, "{{") or mentions(value, "{%")


def _is_metric(folder: _Folder, configuration: Mapping[str, Any]) -> bool:
    stored = _mapping(_mapping(folder.read_json("core.config")).get("data"))
    system = _mapping(configuration.get("homeassistant")).get("unit_system", stored.get("unit_system_v2"))
    return system not in ("imperial", "us_customary")


def object_id(name: str) -> str:
    """Return the object id that Home Assistant creates for a name."""
    return "_".join("".join(char if char.isalnum() and char.isascii() else " " for char in name.lower()).split())


# --- files ---------------------------------------------------------------------------------------------------------


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
        return Tagged(str(node.tag), value)

    def construct_yaml_int(self, node: Any) -> Any:
        """Return a number, or the text of a time such as 22:30:00. YAML 1.1 would read such a time as a number in
        base 60."""
        return node.value if ":" in node.value else super().construct_yaml_int(node)


_Constructor.add_constructor(None, _Constructor._tagged)  # noqa: SLF001
_Constructor.add_constructor("tag:yaml.org,2002:int", _Constructor.construct_yaml_int)
_Constructor.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


class _LimitExceeded(YAMLError):
    """Raised for valid YAML that exceeds a limit of the import."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem)
        self.problem = problem
        self.problem_mark = mark


class _Composer(Composer):
    """Composes YAML nodes. Raises `_LimitExceeded` before aliases or merge keys expand to too many values."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self._count = 0
        self._deepest = 0
        self._sizes: dict[int, tuple[int, int]] = {}
        """The number of values and the nesting depth of each finished node with an anchor."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event, level = self.parser.peek_event(), self.depth + 1
        before, deepest, self._deepest = self._count, self._deepest, level
        self._check(event.start_mark)
        node = super().compose_node(parent, index)
        if not isinstance(event, AliasEvent):
            self._count += _count_of(node.value)
            if event.anchor is not None:
                self._sizes[id(node)] = self._count - before, self._deepest - level
        elif (size := self._sizes.get(id(node))) is not None:
            self._count += size[0]
            self._deepest += size[1]
        else:
            raise _LimitExceeded(
                f"the alias *{event.anchor} contains itself; write the values instead", event.start_mark
            )
        self._check(event.start_mark)
        self._deepest = max(deepest, self._deepest)
        return node

    def _check(self, mark: Any) -> None:
        if self._count > MAX_VALUES:
            raise _LimitExceeded(TOO_MANY, mark)
        if self._deepest > MAX_DEPTH:
            raise _LimitExceeded(TOO_DEEP, mark)


TOO_MANY = (
    f"with aliases and included files, the configuration has more than {MAX_VALUES} values; "
    "remove files and values that the import does not need"
)
TOO_DEEP = (
    f"with aliases and included files, values are nested more than {MAX_DEPTH} levels deep; "
    "check that no file includes itself"
)


def _count_of(value: Any) -> int:
    return 1 + (len(value) // VALUE_CHARS if isinstance(value, str) else 0)


def _yaml() -> YAML:
    yaml = YAML(typ="safe", pure=True, plug_ins=[])
    yaml.version = (1, 1)
    yaml.allow_duplicate_keys = True
    yaml.Composer = _Composer
    yaml.Constructor = _Constructor
    return yaml


class _Folder:
    """Reads the files of the configuration folder. The names of files are relative to the folder.

    Raises `StartFailed` if a file is outside the folder, also through a link, or if the files exceed a limit.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._root = path.resolve()
        self._count = 0
        self._contents: dict[str, Any] = {}
        self._lists: dict[tuple[str, str, str], list[str]] = {}

    def contains(self, name: str) -> bool:
        return self._is_inside(self._path / name)

    def count(self, origin: str, value: Any, depth: int = 1) -> None:
        """Count a value of the expanded configuration."""
        self._count += _count_of(value)
        if self._count > MAX_VALUES or depth > MAX_DEPTH:
            fault = TOO_DEEP if depth > MAX_DEPTH else TOO_MANY
            raise StartFailed(f"{self._path / origin}: {fault}", os.EX_DATAERR)

    def list_included(self, origin: str, include: Tagged) -> list[str]:
        """Return the names of the included files. Like Home Assistant, ignore hidden files and `secrets.yaml` in
        an included folder."""
        place = os.path.dirname(origin), include.tag, str(include.value)  # noqa: PTH120 - it is a text
        found = self._lists.get(place)
        if found is None:
            found = self._lists[place] = self._list_included(origin, include)
        self._count += INCLUDE_COUNT * len(found)
        return found

    def _list_included(self, origin: str, include: Tagged) -> list[str]:
        name = os.path.normpath(Path(origin).parent / str(include.value))
        if not self.contains(name):
            raise StartFailed(
                f"{self._path / origin}: {include} is outside the configuration folder; "
                "copy it into the folder and change the path",
                os.EX_DATAERR,
            )
        if not include.tag.startswith("!include_dir"):
            return [name]
        found = (each.relative_to(self._path) for each in (self._path / name).rglob("*.yaml"))
        return sorted(
            str(each)
            for each in found
            if each.name != "secrets.yaml" and not any(part.startswith(".") for part in each.parts)
        )

    def read_yaml(self, name: str) -> Any:
        """Return the content of a YAML file, or None if it is missing."""
        if name not in self._contents:
            self._contents[name] = self._parse_yaml(self._path / name)
        return self._contents[name]

    def _parse_yaml(self, file: Path) -> Any:
        if not file.is_file():
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _yaml().load(self._read(file).decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise StartFailed(f"{file} is not UTF-8 text", os.EX_DATAERR) from None
        except (YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f"{file}:{mark.line + 1}" if mark is not None else str(file)
            problem = str(getattr(error, "problem", None) or "cannot be read").split("\n")[0]
            prefix = "" if isinstance(error, _LimitExceeded) else "not valid YAML: "
            raise StartFailed(f"{where}: {prefix}{problem}", os.EX_DATAERR) from None

    def read_json(self, registry: str) -> Any:
        """Return the content of a registry, or None if it is missing."""
        file = self._path / STORAGE / registry
        if not file.is_file():
            return None
        try:
            return orjson.loads(self._read(file))
        except orjson.JSONDecodeError as error:
            raise StartFailed(f"{file}: not valid JSON: {error}", os.EX_DATAERR) from None

    def _is_inside(self, file: Path) -> bool:
        try:
            return file.resolve().is_relative_to(self._root)
        except (RuntimeError, ValueError):  # a loop of links, or a name with a NUL character
            return False

    def _read(self, file: Path) -> bytes:
        if not self._is_inside(file):
            raise StartFailed(
                f"{file} is a link to a file outside the configuration folder; copy the file into the folder",
                os.EX_DATAERR,
            )
        try:
            return read_plain(file, MAX_FILE_BYTES)
        except OSError as error:
            raise StartFailed(f"{file}: {error.strerror}", os.EX_NOINPUT) from None


def _rows(folder: _Folder, registry: str, key: str) -> list[Mapping[str, Any]]:
    rows = _mapping(_mapping(folder.read_json(registry)).get("data")).get(key)
    return [each for each in rows if isinstance(each, Mapping)] if isinstance(rows, list) else []


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    for each in value if isinstance(value, list) else ():
        if isinstance(each, list) and len(each) >= 2:
            yield str(each[0]), str(each[1])
