"""Warns about unknown names in files, with the nearest known name as a hint. An attribute or event is unknown if the
device has never reported it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any

from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from appliance.automations.conditions.base import Condition
from appliance.automations.conditions.combine import Combination
from appliance.automations.definition import AutomationDefinition
from appliance.automations.names.call_checks import SpecsOf, find_wrong_literals
from appliance.automations.names.given_names import GivenNames, find_given
from appliance.automations.names.named_things import NamedThing, Subject
from appliance.automations.triggers.device import ANY_DEVICE
from appliance.clock import from_millis, timestamp
from appliance.config import Config
from appliance.errors import Fault
from appliance.home.capabilities import is_custom
from appliance.home.layout import Layout, describe_id
from appliance.home.model import Device
from appliance.home.units import FAHRENHEIT, unusual_unit
from appliance.home.values import Value
from appliance.lua.files.catalog import LoadedFile
from appliance.lua.files.folder import Contents, folder_of, modules_of
from appliance.lua.text.called_names import called_names
from appliance.lua.text.source import FieldLines, Source
from appliance.shortening import join_first
from appliance.tables.checks import format_value, is_number, nearest, rounded, suggest
from appliance.tables.fields import Path, Problem, located

MAX_LISTED_NAMES = 10

MAX_NAME_FAULTS = 100
"""Maximum number of listed unknown names in a file's triggers and conditions. A trigger can list thousands."""

MAX_CALL_FAULTS = 50
"""Maximum number of listed faults in a file's calls, because a search for similar names is slow."""

MAX_NEAR_NAMES, MAX_NEAR_NAMES_PER_FILE = 100, 25
"""Maximum numbers of searches for similar names per check and per file, because one search among thousands of names
needs 10 ms."""


MAX_SEARCHED_CHARS = 6_000_000
"""Maximum number of characters of known names that the searches of a check compare: about a second of one thread."""


class NearNames(Struct):
    """The nearest known names that a check has found. `file` is the file that is being checked, and `searches` counts
    the searches for each file, so that a file with many errors leaves searches for other files."""

    file: str = ""
    searches: Counter[str] = field(default_factory=Counter)
    found: dict[tuple[str, str], str | None] = field(default_factory=dict)
    searched_chars: int = 0

    def find(self, kind: str, name: str, known: Iterable[str]) -> str | None:
        """Return the nearest known name. Return None if the searches for other names have reached a limit."""
        key = kind, name
        if key not in self.found:
            is_full = len(self.found) >= MAX_NEAR_NAMES or self.searched_chars >= MAX_SEARCHED_CHARS
            if is_full or self.searches[self.file] >= MAX_NEAR_NAMES_PER_FILE:
                return None
            names = list(known)
            self.searches[self.file] += 1
            self.searched_chars += sum(map(len, names))
            self.found[key] = nearest(name, names)
        return self.found[key]


class PastNames(Struct, frozen=True, kw_only=True):
    """The names of events that a device has sent, and of attributes whose values have expired."""

    events: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)


class RemovedDevice(Struct, frozen=True, kw_only=True):
    """A device that its adapter no longer lists. `at` is the time of the removal in milliseconds since 1970."""

    name: str
    at: int

    def __str__(self) -> str:
        return f"was removed at {timestamp(from_millis(self.at))}; its name was {format_value(self.name)}"


def describe_ambiguous(name: str, ids: Sequence[str]) -> str:
    """Return the error for a name of several objects with these ids."""
    return f"the name {name!r} is ambiguous; write one of these ids: {join_first(ids, MAX_LISTED_NAMES)}"


class HomeNames(Struct, frozen=True, kw_only=True, dict=True):
    """The known names in the home. If a field is None, names of its kind are not checked.

    - `adapters`, `operations`: the names of sections, and the operations of each section.
    - `members`: the devices of each room and group.
    - `devices`: the attributes that each device reports or accepts.
    - `events`: the events that each device announces or has sent.
    - `commands`: the commands of each device by id and alias.
    - `aliases`, `named`: device ids by alias, and by lower-case name.
    - `removed`: the removed devices.
    - `sources`: all files. If one of these files contains the literal name of a variable or timer, that name is
      known.
    - `called`: the files that can run.
    - `modules`: the scripts by module name.
    - `near`: the nearest known names; see `NearNames`.
    """

    adapters: Collection[str]
    operations: Mapping[str, Collection[str] | None] = {}
    rooms: Collection[str] | None = None
    groups: Collection[str] | None = None
    members: Mapping[Subject, Collection[str]] = {}
    devices: Mapping[str, Collection[str]] | None = None
    events: Mapping[str, Collection[str]] = {}
    commands: SpecsOf = {}
    aliases: Mapping[str, str] | None = None
    named: Mapping[str, Collection[str]] = {}
    removed: Mapping[str, RemovedDevice] = {}
    values: Mapping[str, Mapping[str, Value]] = {}
    variables: Collection[str] | None = None
    timers: Collection[str] | None = None
    scenes: Collection[str] | None = None
    sources: Collection[Source] = ()
    called: Collection[Source] = ()
    modules: Mapping[str, Source] | None = None
    are_scripts_enabled: bool = True
    notify_targets: Collection[str] = ()
    near: NearNames = field(default_factory=NearNames)

    @classmethod
    def of_files(
        cls,
        settings: Config,
        operations: Mapping[str, Collection[str] | None],
        scenes: Sequence[LoadedFile[Any]],
        automations: Sequence[LoadedFile[AutomationDefinition]],
        enabled: Sequence[LoadedFile[AutomationDefinition]],
        scripts: Contents,
    ) -> HomeNames:
        """Return the names in the configuration and in these files. `enabled` are the automations that can run."""
        others = [*(each.source for each in scenes), *scripts.sources]
        return cls(
            adapters=settings.adapter_names,
            operations=operations,
            scenes=[each.definition.id for each in scenes],
            sources=[*others, *(each.source for each in automations)],
            called=[*others, *(each.source for each in enabled)],
            modules=modules_of(folder_of(settings.scripts, settings.root), scripts),
            are_scripts_enabled=settings.scripts.enabled,
            notify_targets=settings.notify.targets,
        )

    def with_devices(
        self,
        devices: Collection[Device],
        layout: Layout,
        past: Mapping[str, PastNames] | None = None,
        removed: Mapping[str, RemovedDevice] | None = None,
    ) -> HomeNames:
        """Return a copy with these devices, rooms, groups, and past events and attributes.

        A device's attributes include the capabilities that it accepts and the attributes that it announces, because a
        lamp that is off reports few attributes. A device's events include the events that it announces.
        """
        rooms = {("room", id_): layout.devices_in(id_) for id_ in layout.rooms}
        groups = {("group", id_): group.members for id_, group in layout.groups.items()}
        was = {each.id: (past or {}).get(each.id, PastNames()) for each in devices}
        takes = {each.id: {spec.capability for spec in each.commands or ()} for each in devices}
        named: defaultdict[str, list[str]] = defaultdict(list)
        for device in devices:
            named[device.name.casefold()].append(describe_id(device))
        return replace(
            self,
            commands={
                word: each.commands
                for each in devices
                if each.commands is not None
                for word in (each.id, each.alias)
                if word
            },
            aliases=layout.ids_by_alias,
            named=named,
            removed={**(removed or {})},
            rooms=layout.rooms,
            groups=layout.groups,
            members={**rooms, **groups},
            devices={
                each.id: takes[each.id].union(each.attributes, each.announced, was[each.id].attributes)
                for each in devices
            },
            events={each.id: was[each.id].events.union(each.events) for each in devices},
            values={each.id: each.attributes for each in devices},
        )

    def with_source(self, source: Source) -> HomeNames:
        """Return a copy in which this file replaces the file with the same name. The file is treated as a file that
        can run."""
        others = ([each for each in files if each.name != source.name] for files in (self.sources, self.called))
        sources, called = ([*each, source] for each in others)
        return replace(self, sources=sources, called=called)

    def list_faults(self, automations: Iterable[LoadedFile[AutomationDefinition]]) -> list[Fault]:
        """Return a fault for every unknown name in three places: these automations, the calls of files that can
        run, and `[notify] targets`. The faults are sorted by file.

        The faults of each file are sorted separately, because one sort of all faults would block other threads.
        """
        found = defaultdict[str, dict[Fault, None]](dict)
        of_files = (fault for file in automations for fault in self.faults_of(file))
        for fault in chain(of_files, (fault for source in self.called for fault in self.inspect(source))):
            found[fault.file][fault] = None
        place = self.near.file = "[notify] targets"
        for target in self.notify_targets:
            if (message := self._missing("operation", target)) is not None:
                found[place][Fault(place, 0, message)] = None
        return [fault for name in sorted(found) for fault in sorted(found[name])]

    def faults_of(self, file: LoadedFile[AutomationDefinition]) -> list[Fault]:
        """Return a fault for every unknown name in the automation's triggers and conditions."""
        source, definition = file.source, file.definition
        self.near.file = source.name
        lines = FieldLines(source)
        found = located(self.warnings_of(definition), source.name, lambda path: lines.find(*map(str, path)))
        return [Fault(each.file, each.line or lines.of_return, each.message) for each in found]

    def warnings_of(self, definition: AutomationDefinition) -> Iterator[Problem]:
        """Yield a problem for each unknown name; see `faults_of`. After `MAX_NAME_FAULTS` problems, yield one problem
        for all further names."""
        problems = self._in_definition(definition)
        yield from islice(problems, MAX_NAME_FAULTS)
        if next(problems, None) is not None:
            yield Problem((), "has further unknown names; correct the listed ones first")

    def _in_definition(self, definition: AutomationDefinition) -> Iterator[Problem]:
        triggers = definition.triggers
        for number, trigger in enumerate(triggers, 1):
            path: Path = ("trigger",) if len(triggers) == 1 else ("triggers", number)
            yield from self._problems(path, trigger.names())
        yield from self._in_conditions(("conditions",), definition.conditions)

    def _in_conditions(self, path: Path, conditions: Iterable[Condition]) -> Iterator[Problem]:
        for number, condition in enumerate(conditions, 1):
            place = (*path, number)
            yield from self._problems(place, condition.names())
            if isinstance(condition, Combination):
                yield from self._in_conditions((*place, "conditions"), condition.conditions)

    def _problems(self, path: Path, names: Iterable[NamedThing]) -> Iterator[Problem]:
        for each in names:
            if each.owner is None:
                message = self._missing(each.kind, each.name)
            else:
                message = self._never_reported(each.kind, each.name, each.owner)
            if message is not None:
                yield Problem((*path, each.field), message)
            elif (message := self._other_type(each)) is not None:
                yield Problem((*path, "equals"), message)
            elif (found := self._other_unit(each)) is not None:
                name, message = found
                yield Problem((*path, name), message)

    def _other_type(self, thing: NamedThing) -> str | None:
        """Return a sentence if the compared value and the device's value have different types."""
        equals = UNSET if thing.requirement is None else thing.requirement.equals
        if thing.owner is None or not is_custom(thing.name) or equals is UNSET:
            return None
        value = self._value_of(thing.owner, thing.name)
        if (
            value is None
            or _type_of(value) == _type_of(equals)
            or _type_of(equals) is None
            or _type_of(value) is None
        ):
            return None
        now, given = format_value(value), format_value(equals)
        is_same = now == (equals if isinstance(equals, str) else given) or value == given
        hint = f"; write equals = {now}" if is_same else ""
        return (
            f"is {given}, a {_type_of(equals)}, which never equals {thing.name}: "
            f"device {thing.owner[1]!r} reports {now}, a {_type_of(value)}{hint}"
        )

    def _other_unit(self, thing: NamedThing) -> tuple[str, str] | None:
        """Return the compared field and a sentence if a number is compared with a value whose unit is not the usual
        unit of the attribute. If all devices in the home report °F, there is no warning."""
        if thing.owner is None or thing.requirement is None:
            return None
        given = [(name, each) for name, each in thing.requirement.fields().items() if is_number(each)]
        unit = unusual_unit(thing.name, self._value_of(thing.owner, thing.name))
        if not given or unit is None or (unit in FAHRENHEIT and self._is_always_fahrenheit(thing.name)):
            return None
        name, number = given[0][0], rounded(given[0][1])
        reports = f"{thing.owner[1]} reports {thing.name} in {unit}"
        return name, f"is {number}, but {reports}, so {number} means {number} {unit}"

    def _value_of(self, owner: Subject, attribute: str) -> Value:
        """Return the attribute's value if the owner is a device, or None."""
        of, name = owner
        return self.values.get(self._id_of(name), {}).get(attribute) if of == "device" else None

    def _id_of(self, name: str) -> str:
        """Replace an alias with the id of its device."""
        return (self.aliases or {}).get(name, name)

    def _is_always_fahrenheit(self, attribute: str) -> bool:
        found = (each.get(attribute) for each in self.values.values())
        return all(each["unit"] in FAHRENHEIT for each in found if isinstance(each, dict))

    def inspect(self, source: Source) -> Iterator[Fault]:
        """Yield a fault for each unknown name and each wrong literal in calls of `ctx` and `require`. After
        `MAX_CALL_FAULTS`, only state that the calls have further faults."""
        self.near.file = source.name
        faults = self._faults_in_calls(source)
        yield from islice(faults, MAX_CALL_FAULTS)
        if next(faults, None) is not None:
            yield Fault(source.name, 0, "has further faults in calls of ctx; correct the listed ones first")

    def _faults_in_calls(self, source: Source) -> Iterator[Fault]:
        for called in called_names(source):
            if (message := self._missing(called.kind, called.name)) is not None:
                yield Fault(source.name, called.line, f"{called.call} {message}")
        yield from find_wrong_literals(source, self.commands)

    def _missing(self, kind: str, name: str) -> str | None:
        """Return a sentence if the name is unknown. Return None if the name is known, or if names of this kind are
        not checked."""
        if kind == "device":
            return self._missing_device(name)
        if kind == "operation" and (message := self._missing_section(name)) is not None:
            return message
        if kind == "module" and not self.are_scripts_enabled:
            return f"names {name!r}, but scripts are disabled; set scripts.enabled = true"
        there = self._there(kind, name)
        if there is None or name in there:
            return None
        if kind == "module" and (folder := self._find_unreadable_folder(name)) is not None:
            return f"names {name!r}, but the folder {folder} cannot be read; give the hub's user access to it"
        remedy = {
            "module": f"add {name.replace('.', '/')}.lua to the folder of [scripts]",
            "variable": f"if you set it yourself, declare it with the comment --- @variable {name}",
        }.get(kind, "")
        return f"names {name!r}, but there is no such {kind}{suggest(self.near.find(kind, name, there), remedy)}"

    def _find_unreadable_folder(self, module: str) -> str | None:
        """Return the unreadable folder that may contain the module."""
        words, modules = module.split("."), self.modules or {}
        folders = (modules.get(".".join(words[:length])) for length in range(len(words)))
        return next((each.name for each in folders if each is not None and not each.name.endswith(".lua")), None)

    def _missing_section(self, name: str) -> str | None:
        section, _, rest = name.partition(":")
        if section in self.adapters:
            return None
        near = self.near.find("section", section, self.adapters)
        hint = suggest(near and f"{near}:{rest}")
        return f"names {name!r}, but there is no section [adapters.{section}]{hint}"

    def _missing_device(self, name: str) -> str | None:
        """Return a sentence if no device has this id or alias. Return None if there is such a device, or if
        devices are not checked."""
        id_ = self._id_of(name)
        if id_ in (self.devices or {}):
            return None
        if named := self.named.get(name.casefold()):
            ids = " or ".join([*named][:MAX_LISTED_NAMES])
            return f"uses the device name {name!r}; instead, write the id {ids}"
        if id_ in self.removed:
            return f"names {name!r}, which {self.removed[id_]}"
        if ":" in id_ and (message := self._missing_section(id_)) is not None:
            return message
        if (self.aliases if ":" not in id_ else self.devices) is None:
            return None
        near = self.near.find("device", name, chain(self.devices or (), self.aliases or (), self.named))
        hint = suggest(near and " or ".join(map(str, self.named.get(near, [near]))))
        return f"names {name!r}, but there is no such device{'' if ':' in name else ' or alias'}{hint}"

    @cached_property
    def all_variables(self) -> set[str]:
        """The existing variables, the literal names that files set, and the declared names."""
        return {*(self.variables or ()), *self._given["set"].names}

    @cached_property
    def all_timers(self) -> set[str]:
        """The running timers, and the literal names of timers that files start."""
        return {*(self.timers or ()), *self._given["start_timer"].names}

    @cached_property
    def _given(self) -> Mapping[str, GivenNames]:
        return find_given(self.sources, self.called, self.modules or {})

    def _there(self, kind: str, name: str) -> Collection[str] | None:
        if kind == "operation":
            section = name.partition(":")[0]
            known = self.operations.get(section)
            return None if known is None else [f"{section}:{each}" for each in known]
        if kind in ("variable", "timer"):
            is_timer = kind == "timer"
            call, there = ("start_timer", self.timers) if is_timer else ("set", self.variables)
            if there is None or name in there:
                return there
            if any(map(name.startswith, self._given[call].prefixes)):
                return None
            return self.all_timers if is_timer else self.all_variables
        known = {"module": self.modules, "room": self.rooms, "group": self.groups, "scene": self.scenes}
        return {**known, "adapter": self.adapters}[kind]

    def _never_reported(self, kind: str, name: str, owner: Subject) -> str | None:
        """Return a warning if the owner has never reported this attribute or event. A room or group has the
        attributes and events of all its devices."""
        of, id_ = owner
        devices = self.devices or {}
        if of == "device":
            ids: Collection[str] = [self._id_of(id_)]
        else:
            ids = devices if owner == ANY_DEVICE else self.members.get(owner, ())
        there = [each for each in ids if each in devices]
        # another check warns about a missing device; if a room is empty, its name may still be correct
        if not there:
            return None
        attributes = {each for device_id in there for each in devices[device_id]}
        events = {each for device_id in there for each in self.events.get(device_id, ())}
        known = attributes if kind == "attribute" else events
        if name in known or (not name and known):
            return None
        named = f"names {name!r}" if name else "waits for events"
        group = "" if owner == ANY_DEVICE else f" of {of} {id_!r}"
        whose = f"device {id_!r} has never" if of == "device" else f"no device{group} has"
        verb = "reported" if kind == "attribute" else "sent"
        attributes -= {"state"}
        near: str | None = None
        if known:  # a search of nothing would count for the limits of `NearNames`
            near_kind = f"{kind} of {of} {id_}"
            near = self.near.find(near_kind, name, known)
            near = near or self.near.find(near_kind, name.rpartition(".")[2], known)
        hint = _hint(kind, near, attributes, events, is_one=of == "device")
        return f"{named}, which {whose} {verb}{hint}"


def _hint(kind: str, near: str | None, attributes: Collection[str], events: Collection[str], *, is_one: bool) -> str:
    """Return a hint with the nearest known name. If `near` is None, list all names of this kind. If there are
    none, list the names of the other kind."""
    has, sends = ("it has", "it sends") if is_one else ("they have", "they send")
    reports, sends = f"{has} reported {_list(attributes)}", f"{sends} {_list(events)}"
    known = attributes if kind == "attribute" else events
    if known:
        return suggest(near, reports if kind == "attribute" else sends)
    if kind == "attribute":
        other = f", but {sends}; for events, use device_event" if events else ""
        return f"; {has} reported nothing yet{other}"
    other = f", but {reports}; for attributes, use device_state_change" if attributes else ""
    return f"; {has} sent nothing yet{other}"


def _type_of(value: Value) -> str | None:
    return {bool: "boolean", int: "number", float: "number", str: "text"}.get(type(value))


def _list(names: Collection[str]) -> str:
    return ", ".join(sorted(names)[:MAX_LISTED_NAMES])
