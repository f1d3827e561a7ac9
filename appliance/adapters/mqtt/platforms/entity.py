"""Base of all entities: topics, the parsing of messages, and commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from appliance.adapters.mqtt.announcements.announcement import Announcement
from appliance.adapters.mqtt.fields import AnnouncedFields, is_unreadable
from appliance.adapters.mqtt.messages import Message, Outgoing
from appliance.adapters.mqtt.platforms.availability import announced_availability
from appliance.adapters.mqtt.platforms.intent import Intent, Offer
from appliance.adapters.mqtt.platforms.payloads import UnknownWord, Update
from appliance.adapters.mqtt.templates.template import Template
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed, ValueMissing
from appliance.adapters.mqtt.topic_filters import is_filter
from appliance.errors import Invalid, Unsupported
from appliance.home.commands import Command, without_toggle
from appliance.home.values import Value
from appliance.home_locale import ANYWHERE, Locale


class EntityEvent(Struct, frozen=True):
    """A device event, such as a press, that leaves the device's state unchanged."""

    name: str
    data: Mapping[str, Value]


Change = Update | EntityEvent | Exception | None
"""New values, an event, or the fault of an unreadable part of a message. None means that the availability changed."""

PayloadParser = Callable[[Any, str], Update | EntityEvent | None]
"""Parses the text of a message for an entity. Returns an empty update or None to ignore the text. Raises `Invalid`.

A parser must not refer to its entity. Otherwise, the entity would never be freed, because the garbage collector does
not track `TopicReader`.
"""


class TopicReader(Struct, frozen=True, gc=False):
    """A filter, the template for its payloads, and the parser of the rendered text."""

    filter: str
    template: Template | None
    parse: PayloadParser


SWITCHED = ("on", "off", "toggle")


class Entity:
    """One announced entity.

    `attributes` contains the known values by capability or `custom.mqtt.<field>`. `claims` contains the capabilities
    that the entity represents, unless another entity claims them. `offers` contains the attributes that accept
    commands. An entity that `reports_events` has no state, so retained messages of its topics are ignored. If
    `expire_after` is set, the entity is expired until its first value arrives, and again after this number of seconds
    without a value. `unconfirmed` contains attributes whose values were restored after a restart, and that no message
    has confirmed yet.
    """

    device_class: str | None = None
    """The class of a device with this main entity. None selects the component, and an empty string selects the
    announced class."""
    reports_events = False
    is_renamed = False
    """Whether `use_custom` can rename the attribute. If false, the entity keeps the names of its capabilities."""
    event_names: tuple[str, ...] = ()
    """The announced events. The tuple is empty if the events are unknown."""
    more_attributes: tuple[str, ...] = ()
    """Attributes that the entity can have in addition to its claims, offers, and custom attribute."""

    def __init__(self, announcement: Announcement, locale: Locale = ANYWHERE) -> None:
        self.announcement = announcement
        self.locale = locale
        self.config = AnnouncedFields(announcement.config)
        self.readers: tuple[TopicReader, ...] = ()
        self.offers: dict[str, Offer] = {}
        self.attributes: dict[str, Value] = {}
        self.claims: tuple[str, ...] = ()
        self.custom_key = f"custom.mqtt.{announcement.object_id}"
        self.availability = announced_availability(self.config, announcement.availability)
        self.expire_after = self.config.number("expire_after", 0)
        self.is_expired = False
        self.has_old_unit = False
        self.off_delay = 0.0
        self._written_at = datetime.fromtimestamp(0, UTC)
        self.qos = min(max(int(self.config.number("qos", 0)), 0), 2)
        self.retains = self.config.flag("retain")
        self.unconfirmed: tuple[str, ...] = ()
        self._reported: tuple[str, ...] = ()
        for key in announcement.config:
            if "command" in key and key.endswith("_template"):
                self.config.template(key)  # commands read these fields later, but faults must be reported now
        try:
            self.setup()
            if not self.readers and not self.offers:
                raise Invalid("the entity has no usable topic")
        except Invalid as fault:
            raise Invalid(": ".join(filter(None, (str(fault), "; ".join(self.config.problems))))) from None
        self.is_expired = self.expire_after > 0 and bool(self.readers) and not self.reports_events

    def setup(self) -> None:
        """Add readers, offers, and claims from the configuration. Raise `Invalid` if a required key is missing."""

    @property
    def is_available(self) -> bool:
        """Whether the entity is reported available, and its value has not expired."""
        return self.availability.is_available and not self.is_expired

    @property
    def filters(self) -> list[str]:
        """The filters to subscribe to, without duplicates."""
        availability = sorted(each.filter for each in self.availability.sources)
        return list(dict.fromkeys([*(each.filter for each in self.readers), *availability]))

    @property
    def is_controlling(self) -> bool:
        """Whether the entity accepts commands to a capability that it claims."""
        return any(claim in self.offers for claim in self.claims)

    @property
    def main_attribute(self) -> str:
        """The attribute that represents the entity in error messages."""
        return self.claims[0] if self.claims else self.custom_key

    @property
    def possible_attributes(self) -> set[str]:
        """All attributes that the entity can have."""
        named = {*self.claims} or {self.custom_key}
        return named | self.offers.keys() | {*self.more_attributes} | {*self._reported} - {""}

    @property
    def units(self) -> Mapping[str, str]:
        """The units of attributes whose values are plain numbers. An empty unit is unknown."""
        return {}

    def is_assumed(self, attribute: str) -> bool:
        """Return whether no message will confirm this attribute after a command."""
        return self.config.flag("optimistic", not self.readers) or {attribute, ""}.isdisjoint(self._reported)

    def assumed(self, update: Update) -> Update:
        """Return the values to assume after a command that no message will confirm."""
        return update

    def expire(self) -> Update:
        """Mark the entity as expired. Return the update that makes the entity's values unknown."""
        self.is_expired = True
        return dict.fromkeys(self.attributes)

    def refresh(self) -> None:
        """Mark the entity as not expired, because a new value has arrived."""
        self.is_expired = False

    def end_unit(self) -> Update:
        """Ignore further values, because their unit has changed. Return the update that makes all numbers without
        their own unit unknown."""
        self.has_old_unit = True
        return dict.fromkeys(self.units)

    def changes(self, filter_: str, message: Message) -> Iterator[Change]:
        """Yield the changes in a message that matches a filter.

        All values form one update, because a message is one observation.
        """
        if self.availability.reads(filter_):
            yield from self._availability_changes(filter_, message)
        merged: Update | None = None
        is_ignored = self.has_old_unit or (self.reports_events and message.is_retained)
        for reader in () if is_ignored else self.readers:
            if reader.filter == filter_:
                try:
                    found = reader.parse(self, message.rendered(reader.template))
                except ValueMissing:
                    continue
                except Exception as fault:
                    yield fault
                    found = fault.update if isinstance(fault, UnknownWord) else None
                if isinstance(found, EntityEvent):
                    yield found
                elif found is not None:
                    merged = found if merged is None else {**merged, **found}
        if merged is not None:
            yield merged

    def _availability_changes(self, filter_: str, message: Message) -> Iterator[Change]:
        was_available = self.availability.is_available
        try:
            self.availability.take(filter_, message)
        except (TemplateFailed, UnknownWord) as fault:
            yield fault
        if self.availability.is_available != was_available:
            yield None

    def changed_by(self, update: Update) -> list[str]:
        """Return the attributes whose values the update changes."""
        shown = self.attributes
        return [
            key
            for key, value in update.items()
            if shown.get(key) != value or isinstance(shown.get(key), bool) != isinstance(value, bool)
        ]

    def apply(self, update: Update, changed: Iterable[str]) -> None:
        """Set the values of the changed attributes."""
        for key in changed:
            if (value := update[key]) is None:
                del self.attributes[key]
            else:
                self.attributes[key] = value

    def use_custom(self, key: str) -> None:
        """Rename the value to this custom attribute, because another entity has the capability or the name."""
        offer = self.offers.pop(self.custom_key, None)
        self.custom_key, self.claims = key, ()
        if offer is not None:
            self.offers[self.custom_key] = offer

    def restore(self, shown: Mapping[str, Value]) -> bool:
        """Restore values from before a restart for attributes without a value. Return whether any value was
        restored."""
        missing = self.possible_attributes - self.attributes.keys()
        kept = {key: value for key, value in shown.items() if key in missing}
        self.attributes |= kept
        self.unconfirmed = tuple(dict.fromkeys((*self.unconfirmed, *kept)))
        return bool(kept)

    def write(self, command: Command, at: datetime) -> Intent:
        """Return the messages of an offered command. Raise `Invalid` or `Unsupported`.

        `at` is the current time in the home's zone, for the templates. The entity keeps `at` for `publish_with`,
        because most functions in between do not use it.
        """
        self._written_at = at
        return self.offers[command.capability].write(self, command)

    def confirm(self, update: Update) -> None:
        """Record that a message has confirmed these attributes."""
        self.unconfirmed = tuple(each for each in self.unconfirmed if each not in update)

    def add_reader(self, key: str, parse: PayloadParser, *templates: str, reports: tuple[str, ...] = ("",)) -> None:
        """Read the topic under `key`, if it is announced, and further topics under `_<key>s`.

        Use the first announced template. The messages report the attributes in `reports`, and so confirm commands to
        these attributes. The entry `""` means any attribute.
        """
        if topic := self.config.topic(key):
            template = self.config.template(*templates)
            self._reported += reports
            topics = dict.fromkeys((topic, *filter(is_filter, self.config.texts(f"_{key}s"))))
            self.readers += tuple(TopicReader(each, template, parse) for each in topics)

    def add_offer(
        self, attribute: str, actions: tuple[str, ...], write: Callable[[Any, Command], Intent], **schema: Value
    ) -> None:
        self.offers[attribute] = Offer(actions=actions, write=write, schema=schema)

    def add_value(
        self,
        attribute: str,
        name: str,
        parse: PayloadParser,
        schema: Mapping[str, Value] | None,
        *,
        to_payload: Callable[[Any], Any] = lambda value: value,
        to_shown: Callable[[Any], Value] = lambda payload: payload,
        step: float | None = None,
    ) -> None:
        """Read an attribute at `<name>_state_topic`. If a schema is given, the attribute can also be set at
        `<name>_command_topic`.

        The template is `<name>_state_template`, otherwise `<name>_value_template`, otherwise `value_template`. By
        default, the payload is the value of the command. If there is no state topic, a command is complete when it is
        sent.
        """
        is_shown = f"{name}_state_topic" in self.config

        def write(entity: Entity, command: Command) -> Intent:
            payload = to_payload(command.value)
            shows = {attribute: to_shown(payload)} if is_shown else {}
            return replace(entity.intent(f"{name}_command", payload, shows, value=payload), step=step)

        templates = f"{name}_state_template", f"{name}_value_template", "value_template"
        self.add_reader(f"{name}_state_topic", parse, *templates, reports=(attribute,))
        if schema is not None and self.can(f"{name}_command"):
            self.add_offer(attribute, ("set",), write, **schema)

    def can(self, name: str) -> bool:
        """Return whether the entity can publish to `<name>_topic`. The topic must be usable, and `<name>_template`
        must be readable or missing."""
        return self.has_target(f"{name}_topic") and not is_unreadable(self.config.template(f"{name}_template"))

    def need(self, name: str = "command") -> None:
        """Raise `Invalid` if the entity cannot publish to `<name>_topic`."""
        if not self.can(name):
            raise Invalid(f"the entity has no {name} topic")

    def has_target(self, key: str) -> bool:
        """Return whether this key contains a topic to publish to."""
        return self.config.target(key) is not None

    def intent(self, name: str, payload: Value, shows: Update | None = None, **names: Value) -> Intent:
        """Return the message of `publish`, and the values that confirm the command."""
        return Intent(messages=(self.publish(name, payload, **names),), shows=shows or {})

    def publish(self, name: str, payload: Value, **names: Value) -> Outgoing:
        """Return the message for `<name>_topic`, rendered by `<name>_template` if this template is announced."""
        return self.publish_with(self.config.template(f"{name}_template"), f"{name}_topic", payload, **names)

    def publish_with(self, template: Template | None, key: str, payload: Value, **names: Value) -> Outgoing:
        """Return the message for the topic under `key`, rendered by this template. Raise `Unsupported`."""
        topic, object_id = self.config.target(key), self.announcement.object_id
        if topic is None or is_unreadable(template):
            raise Unsupported(f"{object_id} has no usable {key}, or the template of the topic is unreadable")
        text = str(payload)
        if template is not None:
            text = template.render({"value": text, "entity_id": object_id, **names}, self._written_at)
        return Outgoing(topic, text, self.qos, self.retains)

    def payload(self, word: str) -> str:
        """Return the announced payload for a word. The default is the word in capitals."""
        return self.config.text(f"payload_{word}", word.upper())

    def switched(self, command: Command) -> str:
        """Return the power after the command. Raise `BadAnswer` for `toggle` if the entity has not yet reported its
        power."""
        shown = self.attributes.get("power")
        if shown is None and self.is_assumed("power"):
            shown = "off"
        return without_toggle(command, shown, self.announcement.object_id).action


def shows_one_of(attribute: str, states: tuple[str, ...]) -> Callable[[Entity], bool]:
    return lambda entity: entity.attributes.get(attribute) in states
