"""Translates services of Home Assistant to Lua statements.

Services and fields follow Home Assistant's documentation of integrations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from appliance.cli.homeassistant.commands import FIELDS, SWITCHED, Command, commands_of, number_value, service_for
from appliance.cli.homeassistant.entities import TARGET_KEYS, Target
from appliance.cli.homeassistant.helper_entities import first_state, helper_value
from appliance.cli.homeassistant.lua import Raw, literal, name, quote
from appliance.cli.homeassistant.not_translated import WITHOUT_COUNTERPART, NotTranslated
from appliance.cli.homeassistant.statements import ODD_FORMS, Statements, words_of
from appliance.cli.homeassistant.times import seconds, whole
from appliance.cli.homeassistant.values import as_mapping, is_template, number, shown, words
from appliance.cli.homeassistant.yaml_parser import Tagged

TRIGGER_ENTITY = re.compile(r"\s*\{\{\s*trigger\.(?:entity_id|to_state\.entity_id)\s*\}\}\s*")

BRIGHTNESS_STEP = 10

MESSAGE_FIELDS = frozenset({"message", "title", "data", "actions", "notification_id"})
"""Message fields that the import translates or may ignore."""


class Services:
    """Writes the Lua statements for services."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._lines = statements.lines
        self._entities = statements.entities

    def write(self, service: str, action: Mapping[str, Any]) -> None:
        if is_template(service):
            raise NotTranslated("the name of the service is a template")
        domain, _, verb = service.partition(".")
        if action.get("response_variable") and domain != "script":
            raise NotTranslated("the import does not support the response of a service")
        raw = action.get("data") or action.get("data_template") or {}
        if not isinstance(raw, Mapping):
            raise NotTranslated("the data of the service is a template")
        data = dict(raw)
        method = {
            "notify": self._notify, "persistent_notification": self._notify, "mqtt": self._mqtt, "timer": self._timer,
            "input_boolean": self._helper, "input_number": self._helper, "input_select": self._helper,
            "input_text": self._helper, "input_datetime": self._helper, "counter": self._helper,
            "input_button": self._helper,
            "logbook": self._log, "system_log": self._log, "script": self._script, "scene": self._scenes,
        }.get(domain)  # fmt: skip
        if method is not None:
            method(verb, action, data)
            return
        if domain in WITHOUT_COUNTERPART:
            raise NotTranslated(WITHOUT_COUNTERPART[domain])
        if self._is_about_trigger(action, data):
            self._command_trigger(domain, verb, service, data)
            return
        ids = self._targets(domain, action, data)
        self._entities.count_expanded(len(ids), len(str(data)))
        statements = [commands_of(each, domain, verb, data, self._statements.scope) for each in ids]
        self._statements.omit(service, data, FIELDS)
        for entity_id, commands in zip(ids, statements, strict=True):
            self._write(entity_id, commands, data)

    def _is_about_trigger(self, action: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
        """Return whether the target is the entity of the trigger."""
        parts = (as_mapping(action.get("target")), action, data)
        targets = [str(each.get("entity_id")) for each in parts if each.get("entity_id") is not None]
        is_trigger = len(targets) == 1 and TRIGGER_ENTITY.fullmatch(targets[0]) is not None
        return is_trigger and self._statements.has_event and bool(self._statements.trigger_entities)

    def _command_trigger(self, domain: str, verb: str, service: str, data: dict[str, Any]) -> None:
        data.pop("entity_id", None)
        if any(not each.startswith(f"{domain}.") for each in self._statements.trigger_entities):
            raise NotTranslated(f"some entities of the triggers do not belong to the domain {domain}")
        scope = self._statements.scope
        made = [commands_of(each, domain, verb, data, scope) for each in scope.trigger_entities]
        commands = [[command for _, command in each] for each in made]
        owners = {target.device_id.count(":") for each in made for target, _ in each}
        if any(each != commands[0] for each in commands) or owners != {1}:
            raise NotTranslated("the trigger's entities need different commands")
        self._statements.omit(service, data, FIELDS)
        for capability, action, value in commands[0]:
            command = {"capability": capability, "action": action, "value": value}
            self._lines.add(f"ctx:command(event.device_id, {literal(command)})")

    def _write(self, entity_id: str, commands: list[tuple[Target, Command]], data: Mapping[str, Any]) -> None:
        transition = (
            {"transition_secs": number_value(data["transition"], self._statements.scope)}
            if data.get("transition") is not None
            else {}
        )
        for target, (capability, verb, value) in commands:
            command = {"capability": capability, "action": verb, "value": value, **transition}
            mark = f" -- {entity_id}"
            self._lines.add(f"ctx:command({quote(target.device_id)}, {literal(command)}){mark}")

    def _targets(self, domain: str, action: Mapping[str, Any], data: dict[str, Any]) -> list[str]:
        """Remove the target entities from the service's data, and return the entities."""
        found: list[str] = []
        for part in (action.get("target"), action, data):
            found += self._entities.targeted(domain, part)
        for key in TARGET_KEYS:
            data.pop(key, None)
        if "all" in found:
            rows = self._entities.installation.entities
            self._entities.count_expanded(len(rows))
            found = sorted(each for each in rows if each.startswith(f"{domain}."))
        if any(each.startswith("group.") for each in found):
            raise NotTranslated("this group has no known members; create a group in Lares and use ctx:command_group")
        if domain == "homeassistant":
            found = [each for each in found if _can_be_switched(each)]
        if wrong := [each for each in found if "." not in each]:
            raise NotTranslated(f"{shown(wrong[0])} is not an entity id")
        if not found:
            raise NotTranslated("the target contains no known entity")
        return list(dict.fromkeys(found))

    def _helper(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        domain = str(action.get("action") or action.get("service")).partition(".")[0]
        for entity_id in self._targets(domain, action, data):
            key = quote(self._entities.variable(entity_id))
            steps = {"increment": 1, "decrement": -1}
            row = self._entities.installation.helper_rows.get(entity_id, {})
            if verb in ("turn_on", "turn_off"):
                made = "true" if verb == "turn_on" else "false"
            elif verb == "toggle":
                made = f"not ctx:get({key}, false)"
            elif verb in steps:
                limits = (row.get("minimum", row.get("min")), row.get("maximum", row.get("max")))
                step, low, high = (number(each) for each in (row.get("step", 1), *limits))
                shown = [literal(each) for each in (steps[verb] * step, low, high)]
                made = ", ".join(shown if high is not None else shown[:2] if low is not None else shown[:1])
                self._lines.add(f"ha.add(ctx, {key}, {made}) -- {entity_id}")
                continue
            elif verb == "reset":
                made = literal(first_state(domain, row))
            elif verb == "press":
                made = "os.time()"
            elif verb in ("set_value", "set_options", "select_option", "set_datetime"):
                fields = ("value", "option", "time", "datetime", "date", "timestamp")
                given = next((data[each] for each in fields if data.get(each) is not None), None)
                made = self._helper_value(domain, given)
            else:
                raise NotTranslated(f"the service {domain}.{verb} has no counterpart in Lares")
            self._lines.add(f"ctx:set({key}, {made}) -- {entity_id}")

    def _helper_value(self, domain: str, given: Any) -> str:
        if is_template(given) or isinstance(given, Tagged):
            return self._statements.value(given)
        return literal(helper_value(domain, given))

    def _timer(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        duration = data.get("duration")
        for entity_id in self._targets("timer", action, data):
            timer = entity_id.removeprefix("timer.")
            if verb == "start":
                given = duration if duration is not None else self._entities.installation.timers.get(timer)
                made = self._statements.value(given) if is_template(given) else literal(whole(seconds(given)))
                self._lines.add(f"ctx:start_timer({quote(timer)}, {made})")
            elif verb == "cancel":
                self._lines.add(f"ctx:cancel_timer({quote(timer)})")
            elif verb == "finish":
                self._lines.add(f"ctx:start_timer({quote(timer)}, 0)")
            else:
                raise NotTranslated(f"Lares timers do not support the action {verb}")

    def _notify(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        if verb in ("dismiss", "mark_read"):
            raise NotTranslated("Lares does not store notifications")
        fields: dict[str, Any] = {}
        if data.get("title") is not None:
            fields["title"] = Raw(self._statements.message(data["title"]))
        more = as_mapping(data.get("data"))
        self._statements.omit("a message", {**data, **more}, MESSAGE_FIELDS)
        buttons = more.get("actions")
        if isinstance(buttons, list):
            fields["actions"] = [
                {"label": str(each.get("title", "")), "hook": str(each.get("action", "")).lower()}
                for each in buttons
                if isinstance(each, Mapping)
            ]
        tail = f", {literal(fields)}" if fields else ""
        self._lines.add(f"ctx:notify({self._statements.message(data.get('message'))}{tail})")

    def _log(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        level = {"debug": "debug", "warning": "warn", "error": "error"}.get(str(data.get("level")), "info")
        self._lines.add(f"ctx:log({quote(level)}, {self._statements.message(data.get('message'))})")

    def _mqtt(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        if verb != "publish":
            raise NotTranslated(f"the service mqtt.{verb} has no counterpart in Lares")
        payload = {
            "topic": Raw(self._statements.message(data.get("topic"))),
            "payload": Raw(self._statements.message(data.get("payload"))),
            "retain": True if data.get("retain") is True else None,
            "qos": data["qos"] if isinstance(data.get("qos"), int) and data["qos"] else None,
        }
        self._lines.add(f"ctx:invoke({quote(f'{self._entities.section}:publish')}, {literal(payload)})")

    def _scenes(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        if verb == "turn_on":
            scene = {"scene": self._targets("scene", action, data)}
            self._statements.omit("scene.turn_on", data, ())
            self.write_scene(scene)
        elif verb == "apply" and isinstance(data.get("entities"), Mapping):
            self.apply(data["entities"], data)
        elif verb == "create" and not data.get("entities") and data.get("scene_id"):
            ids = [
                target.device_id
                for each in self._entities.members(words(data.get("snapshot_entities")))
                if isinstance(target := self._entities.target(each), Target)
            ]
            name_ = quote(f"scene.{data['scene_id']}")
            self._lines.add(f"ha.keep(ctx, {name_}, {literal(list(dict.fromkeys(ids)))})")
        else:
            raise NotTranslated(
                f"the service scene.{verb} has no counterpart; instead, use ctx:snapshot and ctx:restore"
            )

    def apply(self, states: Mapping[Any, Any], data: Mapping[str, Any] | None = None) -> None:
        """Write commands that set entities to the states of a scene."""
        fade = {"transition": data["transition"]} if data and data.get("transition") is not None else {}
        for entity_id, state in states.items():
            try:
                service, more = service_for(str(entity_id), state)
                self.write(service, {"action": service, "target": {"entity_id": entity_id}, "data": {**more, **fade}})
            except ODD_FORMS as reason:
                self._statements.skip({str(entity_id): state}, words_of(reason))

    def _script(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        """Write the start of a scene, or a call of the Lua function that replaces a script."""
        if verb in ("turn_off", "toggle", "reload"):
            raise NotTranslated(f"the service script.{verb} has no counterpart; instead, use POST /scenes/ID/cancel")
        if verb == "turn_on":
            ids = [each.removeprefix("script.") for each in self._targets("script", action, data)]
            given = as_mapping(data.get("variables"))
        else:
            ids, given = [verb], data
        for each in ids:
            script = self._entities.scripts.get(each)
            if script is None:
                raise NotTranslated(f"script.{each} is not in this folder")
            if verb == "turn_on":
                self._lines.note("Home Assistant does not wait for the end of this script, but Lares does")
            call = f"ctx:run_scene({quote(script.id)})"
            if script.is_function:
                fields = {str(key): Raw(self._statements.value(value)) for key, value in given.items()}
                call = f"require({quote(script.id)})(ctx, {literal(fields)})"
            if (answer := action.get("response_variable")) and script.is_function:
                self._lines.add(f"local {name(str(answer))} = {call}")
                self._statements.names[str(answer)] = name(str(answer))
            else:
                self._lines.add(call)

    def write_scene(self, action: Mapping[str, Any]) -> None:
        for each in words(action["scene"]):
            name_ = each.removeprefix("scene.")
            if name_ in self._entities.snapshots:
                self._lines.add(f"ha.restore(ctx, {quote(f'scene.{name_}')})")
            else:
                self._lines.add(f"ctx:run_scene({quote(self._entities.scenes.get(name_, name_))})")

    def write_device_action(self, action: Mapping[str, Any]) -> None:
        entity = self._entities.entity(str(action.get("entity_id", "")))
        kind = str(action["type"])
        service = {"press": "press", "open": "open_cover", "close": "close_cover", "stop": "stop_cover"}.get(
            kind, kind
        )
        if kind in ("set_position", "set_tilt_position"):
            service = "set_cover_position" if kind == "set_position" else "set_cover_tilt_position"
        data = {
            key: each
            for key, each in action.items()
            if key in ("brightness_pct", "hvac_mode", "preset_mode", "value", "option")
        }
        if "position" in action:
            data["position" if kind == "set_position" else "tilt_position"] = action["position"]
        if kind in ("brightness_increase", "brightness_decrease"):
            service, data = (
                "turn_on",
                {"brightness_step_pct": BRIGHTNESS_STEP * (1 if kind.endswith("increase") else -1)},
            )
        self.write(f"{entity.domain}.{service}", {"target": {"entity_id": entity.entity_id}, "data": data})


def _can_be_switched(entity_id: str) -> bool:
    return entity_id.split(".", maxsplit=1)[0] in {*SWITCHED, "input_boolean", "climate", "siren", "all"}
