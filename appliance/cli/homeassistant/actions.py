"""Actions of Home Assistant as Lua statements.

Action types, services, and fields follow Home Assistant's documentation of scripts and integrations. An untranslated
part becomes a comment with the reason and the YAML.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ruamel.yaml import YAML

from appliance.cli.homeassistant import conditions, named, templates, triggers
from appliance.cli.homeassistant.conditions import check_part
from appliance.cli.homeassistant.entities import Comparison, Entities, NotTranslated, Target, Variable
from appliance.cli.homeassistant.lua import Lines, Raw, literal, name, negated, quote
from appliance.cli.homeassistant.source import Tagged, as_list, helper_value, is_template, number, words
from appliance.cli.homeassistant.templates import Scope
from appliance.cli.homeassistant.times import SECONDS, duration, seconds, whole
from appliance.lua.execution import MAX_WAIT_SECS

MAX_UNROLLED = 20

ONE_NAME = re.compile(r"\s*\{\{\s*([A-Za-z_]\w*(?:\.\w+|\['\w+'\])*)\s*\}\}\s*")
"""A template with only a name, such as `{{ repeat.item.lamp }}`."""

TRIGGER_ENTITY = re.compile(r"\s*\{\{\s*trigger\.(?:entity_id|to_state\.entity_id)\s*\}\}\s*")

TARGET_ITEM = re.compile(r"(?:entity|device|area|floor|label)_id:\s*(?:-\s*)?'?\{\{\s*repeat\.item")
VOLUME_STEP = 5
BRIGHTNESS_STEP = 10

COLORS: Mapping[str, tuple[int, int, int]] = {
    "red": (255, 0, 0), "green": (0, 128, 0), "lime": (0, 255, 0), "blue": (0, 0, 255), "yellow": (255, 255, 0),
    "orange": (255, 165, 0), "purple": (128, 0, 128), "pink": (255, 192, 203), "magenta": (255, 0, 255),
    "cyan": (0, 255, 255), "turquoise": (64, 224, 208), "white": (255, 255, 255), "gold": (255, 215, 0),
    "violet": (238, 130, 238), "salmon": (250, 128, 114), "coral": (255, 127, 80), "navy": (0, 0, 128),
}  # fmt: skip

Command = tuple[str, str, Any]
"""Capability, action, and value. The command omits a value of None."""

SIMPLE: Mapping[str, Mapping[str, Command]] = {
    "lock": {"lock": ("lock", "lock", None), "unlock": ("lock", "unlock", None), "open": ("lock", "unlock", None)},
    "media_player": {
        "media_play": ("media_playback", "play", None),
        "media_pause": ("media_playback", "pause", None),
        "media_stop": ("media_playback", "stop", None),
        "media_next_track": ("media_playback", "next", None),
        "media_previous_track": ("media_playback", "previous", None),
        "volume_up": ("volume", "increase", VOLUME_STEP),
        "volume_down": ("volume", "decrease", VOLUME_STEP),
    },
    "climate": {"turn_off": ("hvac_mode", "set", "off"), "turn_on": ("hvac_mode", "set", "heat")},
}
"""Commands for services without data, by domain and service."""

POWER = {"turn_on": "on", "turn_off": "off", "toggle": "toggle"}
SWITCHED = frozenset({"light", "switch", "fan", "media_player"})

COLOR_FIELDS = ("color_temp_kelvin", "color_temp", "kelvin", "hs_color", "rgb_color", "xy_color", "color_name")

SETTERS: Mapping[str, Mapping[str, str]] = {
    "climate": {
        "hvac_mode": "hvac_mode",
        "preset_mode": "preset_mode",
        "fan_mode": "fan_mode",
        "swing_mode": "swing_mode",
    },
    "fan": {"percentage": "custom.mqtt.percentage", "preset_mode": "preset_mode"},
    "media_player": {"source": "media_source", "is_volume_muted": "muted"},
    "cover": {"position": "cover_position", "tilt_position": "cover_tilt"},
}
"""Capabilities by domain and field of a service."""

FIELDS = frozenset(
    {
        *("brightness", "brightness_pct", "brightness_step", "brightness_step_pct", "transition", "effect", "value"),
        *("color_temp", "color_temp_kelvin", "kelvin", "rgb_color", "hs_color", "xy_color", "color_name"),
        *("temperature", "volume_level", "option", "code", *(field for each in SETTERS.values() for field in each)),
    }
)
"""Translated fields of device services."""

MESSAGE_FIELDS = frozenset({"message", "title", "data", "actions", "notification_id"})
"""Fields of messages that are translated, or that Lares does not need."""

CUSTOM: Mapping[str, Mapping[str, tuple[str, Any]]] = {
    "button": {"press": ("press", None)},
    "number": {"set_value": ("set", "value")},
    "select": {"select_option": ("set", "option")},
    "text": {"set_value": ("set", "value")},
    "valve": {"open_valve": ("set", Raw('"open"')), "close_valve": ("set", Raw('"closed"'))},
    "siren": {"turn_on": ("set", Raw("true")), "turn_off": ("set", Raw("false"))},
    "alarm_control_panel": {
        "alarm_disarm": ("set", Raw('"disarmed"')),
        "alarm_arm_home": ("set", Raw('"armed_home"')),
        "alarm_arm_away": ("set", Raw('"armed_away"')),
        "alarm_arm_night": ("set", Raw('"armed_night"')),
        "alarm_arm_vacation": ("set", Raw('"armed_vacation"')),
    },
}
"""Actions on `custom` attributes: the action, and its value or the field with the value."""


RAISING = ("ctx:invoke(", "ctx:run_scene(", "require(")
"""Lua calls that raise an error if they fail."""

COMPARED = frozenset({"device_state_change", "variable_change"})
"""Types of triggers whose state Lua can wait for."""


class Actions:
    """Writes the Lua statements of one automation. `problems` are the reasons for untranslated parts."""

    def __init__(
        self,
        entities: Entities,
        trigger_entities: tuple[str, ...] = (),
        *,
        reads_waits: bool = False,
        fields: Mapping[str, str] | None = None,
        depth: int = 2,
    ) -> None:
        """With `fields` (Lua by name), write for a scene or function, otherwise for an automation."""
        self.lines = Lines(depth)
        self.problems: list[str] = []
        self._entities = entities
        self._trigger_entities = trigger_entities
        self._names: dict[str, str] = dict(fields or {})
        self._known: dict[str, Any] = {}
        self._has_event = fields is None
        self._loops = 0
        self._reads_waits = reads_waits

    def define(self, variables: Any) -> None:
        """Write variables of an automation or action as Lua locals."""
        if not isinstance(variables, Mapping):
            return
        for key, value in variables.items():
            try:
                made = self._value(value)
            except NotTranslated as reason:
                self._skip({"variables": {key: value}}, str(reason))
                continue
            local = name(str(key))
            self.lines.add(f"local {local} = {made}")
            self._names[str(key)] = local
            self._known.pop(str(key), None)
            if not is_template(as_yaml(value)):
                self._known[str(key)] = value

    def define_by_trigger(self, variables: Mapping[str, Mapping[str, Any]]) -> None:
        """Write the variables of each trigger, by trigger id."""
        for key in dict.fromkeys(str(key) for own in variables.values() for key in own):
            local = name(key)
            self.lines.add(f"local {local}")
            self._names[key] = local
        for id_, own in variables.items():
            self.lines.open(f"if event.trigger_id == {literal(id_)} then")
            for key, value in own.items():
                try:
                    self.lines.add(f"{name(str(key))} = {self._value(value)}")
                except NotTranslated as reason:
                    self._skip({"variables": {key: value}}, str(reason))
            self.lines.close()

    def sequence(self, value: Any) -> None:
        for each in as_list(value):
            self._one(each)

    def stop(self, what: str) -> None:
        """End the run at an untranslated condition, because the condition may prevent the next actions."""
        self.lines.add(f'ctx:log("warn", {quote(f"{what} is not translated: write it in this file")})')
        self.lines.add("do return end")

    @property
    def scope(self) -> Scope:
        return Scope(
            entities=self._entities,
            names=dict(self._names),
            trigger_entities=self._trigger_entities,
            has_event=self._has_event,
        )

    def _one(self, action: Any) -> None:
        if isinstance(action, str) and is_template(action):
            action = {"condition": "template", "value_template": action}
        if isinstance(action, list):
            self.sequence(action)
            return
        if not isinstance(action, Mapping):
            self._skip(action, "it is not a mapping")
            return
        before, problems = self.lines.mark(), len(self.problems)
        try:
            action = self._filled_in(action)
            check_part({"enabled": action.get("enabled", True)})
            if action.get("alias"):
                self.lines.note(str(action["alias"]))
            self._method(action)(action)
            if action.get("continue_on_error") is True:
                self._protect(before[0])
        except (NotTranslated, AttributeError, KeyError, TypeError, ValueError) as reason:
            self.lines.cut(before)
            del self.problems[problems:]
            self._skip(action, str(reason) if isinstance(reason, NotTranslated) else "it has an unknown format")
            if str(reason) == "it is disabled":
                return
            if _is_condition(action):
                self.stop("this condition")
            elif "wait_template" in action or "wait_for_trigger" in action:
                self._without_wait(action)

    def _protect(self, start: int) -> None:
        """Continue the run after an error in the lines from `start` on. Device commands raise no errors."""
        lines = self.lines.lines[start:]
        if any(call in line for line in lines for call in RAISING) and not any("local " in line for line in lines):
            self.lines.lines[start:] = [
                f"{self.lines.indent}pcall(function()",
                *(f"  {line}" for line in lines),
                f"{self.lines.indent}end)",
            ]

    def _method(self, action: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None]:
        methods: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "delay": self._delay, "wait_template": self._wait_template, "wait_for_trigger": self._wait_for_trigger,
            "choose": self._choose, "if": self._if, "repeat": self._repeat, "parallel": self._parallel,
            "sequence": lambda each: self.sequence(each["sequence"]), "stop": self._stop,
            "variables": lambda each: self.define(each["variables"]), "scene": self._scene, "event": self._event,
            "set_conversation_response": self._response,
        }  # fmt: skip
        if _is_condition(action):
            return self._condition
        if "device_id" in action and "domain" in action and "type" in action:
            return self._device
        for key in ("action", "service", "service_template"):
            if isinstance(action.get(key), str):
                return lambda each: self._service(str(each[key]), each)
        for key, method in methods.items():
            if key in action:
                return method
        raise NotTranslated("the type of this action is unknown")

    def _skip(self, part: Any, reason: str) -> None:
        """Write an untranslated part as a comment."""
        self.problems.append(reason)
        self.lines.note(f"not translated: {reason}")
        for line in as_yaml(part).splitlines():
            self.lines.note(f"  {line}")

    # --- control ---

    def _condition(self, action: Mapping[str, Any]) -> None:
        self.lines.open(f"if {negated(conditions.in_lua(action, self.scope))} then")
        self.lines.add("return")
        self.lines.close()

    def _test(self, value: Any) -> str:
        """Return the Lua expression of conditions. If one cannot be translated, write a comment and return false."""
        try:
            return conditions.in_lua(value, self.scope)
        except NotTranslated as reason:
            self._skip(value, f"condition: {reason}")
            return "false"

    def _choose(self, action: Mapping[str, Any]) -> None:
        options = as_list(action["choose"])
        tests = [self._test(each.get("conditions") if isinstance(each, Mapping) else each) for each in options]
        for at, (option, test) in enumerate(zip(options, tests, strict=True)):
            (self.lines.turn if at else self.lines.open)(f"{'elseif' if at else 'if'} {test} then")
            self._block(option.get("sequence"))
        if action.get("default") is not None and options:
            self.lines.turn("else")
            self._block(action["default"])
        if options:
            self.lines.close()
        else:
            self.sequence(action.get("default"))

    def _if(self, action: Mapping[str, Any]) -> None:
        self.lines.open(f"if {self._test(action['if'])} then")
        self._block(action.get("then"))
        if action.get("else") is not None:
            self.lines.turn("else")
            self._block(action["else"])
        self.lines.close()

    def _block(self, value: Any) -> None:
        """Write actions in a block with its own local variables."""
        names = dict(self._names)
        self.sequence(value)
        self._names = names

    def _repeat(self, action: Mapping[str, Any]) -> None:
        repeat = action["repeat"]
        if not isinstance(repeat, Mapping):
            raise NotTranslated("the repetition is not a mapping")
        names, self._loops = dict(self._names), self._loops + 1
        index = f"index{self._loops}" if self._loops > 1 else "index"
        self._names |= {"repeat_index": index, "repeat_first": f"{index} == 1"}
        counts = "repeat." in as_yaml(repeat)
        end = "end"
        if "count" in repeat:
            self.lines.open(f"for {index} = 1, {self._value(repeat['count'])} do")
        elif "for_each" in repeat and self._is_unrolled(repeat):
            self._unroll(repeat)
            self._names, self._loops = names, self._loops - 1
            return
        elif "for_each" in repeat:
            item = f"item{self._loops}" if self._loops > 1 else "item"
            self._names["repeat_item"] = item
            self.lines.open(f"for {index}, {item} in ipairs({self._value(repeat['for_each'])}) do")
        elif "while" in repeat:
            test = conditions.in_lua(repeat["while"], self.scope)
            self.lines.add(*([f"local {index} = 1"] if counts else []))
            self.lines.open(f"while {test} do")
        elif "until" in repeat:
            end = f"until {conditions.in_lua(repeat['until'], self.scope)}"
            self.lines.add(*([f"local {index} = 0"] if counts else []))
            self.lines.open("repeat")
            self.lines.add(*([f"{index} = {index} + 1"] if counts else []))
        else:
            raise NotTranslated("the repetition has no end condition")
        self.sequence(repeat.get("sequence"))
        if counts and "while" in repeat:
            self.lines.add(f"{index} = {index} + 1")
        self.lines.close(end)
        self._names, self._loops = names, self._loops - 1

    def _is_unrolled(self, repeat: Mapping[str, Any]) -> bool:
        """Return whether the items contain targets. Actions on them are written once per item."""
        items = repeat["for_each"]
        return (
            isinstance(items, list)
            and len(items) <= MAX_UNROLLED
            and not is_template(as_yaml(items))
            and TARGET_ITEM.search(as_yaml(repeat.get("sequence"))) is not None
        )

    def _unroll(self, repeat: Mapping[str, Any]) -> None:
        known = dict(self._known)
        for index, item in enumerate(repeat["for_each"], 1):
            self._known["repeat"] = {"item": item, "index": index}
            self._names |= {"repeat_item": self._value(item), "repeat_index": str(index)}
            self.sequence(repeat.get("sequence"))
        self._known = known

    def _filled_in(self, value: Any) -> Any:
        """Replace templates that contain only a constant's name by the constant."""
        if isinstance(value, Mapping):
            return {key: self._filled_in(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._filled_in(each) for each in value]
        found = ONE_NAME.fullmatch(value) if isinstance(value, str) and self._known else None
        if found is None:
            return value
        path = [each for each in re.split(r"\W+", found[1]) if each]
        constant: Any = self._known
        for key in path:
            if not isinstance(constant, Mapping) or key not in constant:
                return value
            constant = constant[key]
        return constant

    def _parallel(self, action: Mapping[str, Any]) -> None:
        self.lines.note("in Home Assistant, these actions run at the same time")
        self.sequence(action["parallel"])

    def _stop(self, action: Mapping[str, Any]) -> None:
        if (answer := action.get("response_variable")) and not self._has_event:
            self.lines.add(f"do return {templates.named(str(answer), self.scope)} end")
            return
        if action["stop"]:
            self.lines.add(
                f"ctx:log({quote('error' if action.get('error') else 'info')}, {self._message(action['stop'])})"
            )
        self.lines.add("do return end")

    def _delay(self, action: Mapping[str, Any]) -> None:
        delay = action["delay"]
        if is_template(delay):
            self.lines.add(f"ha.sleep(ctx, {self._value(delay)})")
            return
        if isinstance(delay, Mapping) and any(is_template(each) for each in delay.values()):
            terms = [f"({self._value(each)}) * {SECONDS[unit]}" for unit, each in delay.items() if unit in SECONDS]
            self.lines.add(f"ha.sleep(ctx, {' + '.join(terms)})")
            return
        secs = whole(seconds(delay))
        self.lines.add(f"ctx:sleep({secs})" if secs <= MAX_WAIT_SECS else f"ha.sleep(ctx, {secs})")

    def _wait_template(self, action: Mapping[str, Any]) -> None:
        text = str(action["wait_template"])
        try:
            self._wait(templates.comparison(text, self._entities), action)
        except NotTranslated:
            test = templates.condition(text, self.scope)
            self._finish_wait(f"ha.wait_until(ctx, function() return {test} end, {self._timeout(action)})", action)

    def _wait_for_trigger(self, action: Mapping[str, Any]) -> None:
        """Wait for the first of several triggers. A state that is already true ends the wait."""
        found = [
            (test, duration(each)) for each in as_list(action["wait_for_trigger"]) for test in self._awaited(each)
        ]
        if len(found) == 1 and not found[0][1]:
            self._wait(found[0][0], action)
            return
        holds = {for_secs for _, for_secs in found}
        if len(holds) != 1:
            raise NotTranslated("a wait for triggers with different times is not translated")
        test = " or ".join(templates.comparison_in_lua(test) for test, _ in found)
        more = f", {whole(held)}" if (held := holds.pop()) else ""
        timeout = self._timeout(action)
        self._finish_wait(f"ha.wait_until(ctx, function() return {test} end, {timeout}{more})", action)

    def _awaited(self, trigger: Any) -> list[Comparison]:
        """Return the tests of a trigger. The trigger matches if one of them is true."""
        if not isinstance(trigger, Mapping):
            raise NotTranslated("it is not a mapping")
        check_part(trigger)
        without = {key: each for key, each in trigger.items() if key != "for"}
        rows = triggers.translate(without, self._entities)
        kinds = [row.table for row in rows if not row.guard]
        if len(kinds) != len(rows) or any(each["type"] not in COMPARED for each in kinds):
            raise NotTranslated("a wait for this trigger is not translated")
        found = []
        for row in kinds:
            tests = [each for each in ("equals", "above", "below") if each in row]
            if len(tests) != 1:
                raise NotTranslated("a wait for a range or for any change is not translated")
            target: Target | Variable = Variable(str(row.get("name")), "")
            if "device_id" in row:
                target = Target(row["device_id"], row["attribute"], "")
            found.append(Comparison(target, tests[0], row[tests[0]]))
        return found

    def _wait(self, test: Comparison, action: Mapping[str, Any]) -> None:
        timeout = self._timeout(action)
        if isinstance(test.target, Variable) or timeout > MAX_WAIT_SECS:
            lua = templates.comparison_in_lua(test)
            self._finish_wait(f"ha.wait_until(ctx, function() return {lua} end, {timeout})", action)
            return
        wanted = {"attribute": test.target.attribute, test.test: test.value, "timeout_secs": timeout}
        self._finish_wait(f"ctx:wait_for({quote(test.target.device_id)}, {literal(wanted)})", action)

    def _without_wait(self, action: Mapping[str, Any]) -> None:
        """Wait for the timeout of an untranslated wait. Without a timeout, end the run."""
        try:
            self._delay({"delay": action["timeout"]})
        except (KeyError, NotTranslated):
            self.stop("this wait")
        else:
            if action.get("continue_on_timeout", True) is False:
                self.stop("this wait")

    def _timeout(self, action: Mapping[str, Any]) -> int | float:
        if action.get("timeout") is None:
            self.lines.note("Home Assistant waits without a limit; Lares needs one")
            return MAX_WAIT_SECS
        return whole(seconds(action["timeout"]))

    def _finish_wait(self, call: str, action: Mapping[str, Any]) -> None:
        if action.get("continue_on_timeout", True) is False:
            self.lines.open(f"if not {call} then")
            self.lines.add("return")
            self.lines.close()
        elif self._reads_waits:
            self.lines.add(f"local completed = {call}")
            self._names |= {"wait_completed": "completed", "wait_trigger": "(completed or nil)"}
        else:
            self.lines.add(call)

    def _event(self, action: Mapping[str, Any]) -> None:
        raise NotTranslated("Lares has no custom events: set a variable, or call a scene")

    def _response(self, action: Mapping[str, Any]) -> None:
        raise NotTranslated("Lares has no voice assistant")

    def _scene(self, action: Mapping[str, Any]) -> None:
        for each in words(action["scene"]):
            name_ = each.removeprefix("scene.")
            if name_ in self._entities.snapshots:
                self.lines.add(f"ha.restore(ctx, {quote(f'scene.{name_}')})")
            else:
                self.lines.add(f"ctx:run_scene({quote(self._entities.scenes.get(name_, name_))})")

    def _device(self, action: Mapping[str, Any]) -> None:
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
        self._service(f"{entity.domain}.{service}", {"target": {"entity_id": entity.entity_id}, "data": data})

    # --- services ---

    def _service(self, service: str, action: Mapping[str, Any]) -> None:
        if is_template(service):
            raise NotTranslated("a service that is computed is not translated")
        domain, _, verb = service.partition(".")
        if action.get("response_variable") and domain != "script":
            raise NotTranslated("the answer of a service is not translated")
        raw = action.get("data") or action.get("data_template") or {}
        if not isinstance(raw, Mapping):
            raise NotTranslated("the data are a template")
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
        if domain in named.WITHOUT_COUNTERPART:
            raise NotTranslated(named.WITHOUT_COUNTERPART[domain])
        if self._is_about_trigger(action, data):
            self._command_trigger(domain, verb, service, data)
            return
        ids = self._targets(domain, action, data)
        statements = [self._commands(each, domain, verb, data) for each in ids]
        self._omit(service, data, FIELDS)
        for entity_id, commands in zip(ids, statements, strict=True):
            self._write(entity_id, commands, data)

    def _is_about_trigger(self, action: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
        """Return whether the target is the entity of the trigger."""
        target = action.get("target")
        places = (target if isinstance(target, Mapping) else {}, action, data)
        targets = [str(each.get("entity_id")) for each in places if each.get("entity_id") is not None]
        is_trigger = len(targets) == 1 and TRIGGER_ENTITY.fullmatch(targets[0]) is not None
        return is_trigger and self._has_event and bool(self._trigger_entities)

    def _command_trigger(self, domain: str, verb: str, service: str, data: dict[str, Any]) -> None:
        data.pop("entity_id", None)
        if any(not each.startswith(f"{domain}.") for each in self._trigger_entities):
            raise NotTranslated(f"some entities of the triggers are not of the domain {domain}")
        made = [self._commands(each, domain, verb, data) for each in self._trigger_entities]
        commands = [[command for _, command in each] for each in made]
        owners = {target.device_id.count(":") for each in made for target, _ in each}
        if any(each != commands[0] for each in commands) or owners != {1}:
            raise NotTranslated("the trigger's entities take different commands")
        self._omit(service, data, FIELDS)
        for capability, action, value in commands[0]:
            command = {"capability": capability, "action": action, "value": value}
            self.lines.add(f"ctx:command(event.device_id, {literal(command)})")

    def _omit(self, service: str, data: Mapping[str, Any], known: Collection[str]) -> None:
        """Write a comment about untranslated fields."""
        if others := [str(each) for each in data if each not in known]:
            reason = f"{service} without {', '.join(others)}, which Lares does not have"
            self.problems.append(reason)
            self.lines.note(reason)

    def _write(self, entity_id: str, commands: list[tuple[Target, Command]], data: Mapping[str, Any]) -> None:
        transition = (
            {"transition_secs": Raw(self._value(data["transition"]))} if data.get("transition") is not None else {}
        )
        for target, (capability, verb, value) in commands:
            command = {"capability": capability, "action": verb, "value": value, **transition}
            mark = f" -- {entity_id}"
            self.lines.add(f"ctx:command({quote(target.device_id)}, {literal(command)}){mark}")

    def _targets(self, domain: str, action: Mapping[str, Any], data: dict[str, Any]) -> list[str]:
        """Remove the target entities from the service's data, and return them."""
        target = action.get("target")
        found: list[str] = []
        for place in (target if isinstance(target, Mapping) else {}, action, data):
            found += self._entities.targeted(domain, place)
        for key in ("entity_id", "device_id", "area_id", "floor_id", "label_id"):
            data.pop(key, None)
        if "all" in found:
            rows = self._entities.installation.entities
            found = sorted(each for each in rows if each.startswith(f"{domain}."))
        if any(each.startswith("group.") for each in found):
            raise NotTranslated("this group has no known members: make a group and use ctx:command_group")
        if domain == "homeassistant":
            found = [each for each in found if _can_be_switched(each)]
        if not found:
            raise NotTranslated("it contains no known entity")
        return list(dict.fromkeys(found))

    def _commands(
        self, entity_id: str, domain: str, verb: str, data: Mapping[str, Any]
    ) -> list[tuple[Target, Command]]:
        """Return the commands of a service for one entity. Raises `NotTranslated`."""
        if domain == "homeassistant":
            domain = entity_id.split(".", maxsplit=1)[0]
        if verb in CUSTOM.get(domain, {}):
            custom = self._entities.custom(entity_id)
            action, source = CUSTOM[domain][verb]
            value = source if isinstance(source, Raw) or source is None else Raw(self._value(data.get(source)))
            return [(custom, (custom.attribute, action, value))]
        target = self._entities.target(entity_id)
        if isinstance(target, Variable):
            raise NotTranslated("a helper has no commands")
        found = self._by_verb(target, domain, verb, data)
        for field, capability in SETTERS.get(domain, {}).items():
            if data.get(field) is not None:
                found.append((capability, "set", Raw(self._value(data[field]))))
        if not found:
            raise NotTranslated(f"the service {domain}.{verb} has no counterpart in Lares")
        return [(target, each) for each in found]

    def _by_verb(self, target: Target, domain: str, verb: str, data: Mapping[str, Any]) -> list[Command]:
        """Return the commands of the service without those of its optional fields."""
        if command := SIMPLE.get(domain, {}).get(verb):
            return [command]
        if verb in POWER and domain in SWITCHED:
            more = self._light(target, data) if domain == "light" and verb == "turn_on" else []
            return [("power", POWER[verb], None), *more]
        if domain == "cover":
            return self._cover(target, verb)
        if domain == "media_player" and verb == "volume_set":
            return [("volume", "set", self._scaled(data.get("volume_level"), 100))]
        if domain == "climate" and verb == "set_temperature" and data.get("temperature") is not None:
            unit = "°C" if self._entities.installation.is_metric else "°F"
            return [("target_temperature", "set", {"value": Raw(self._value(data["temperature"])), "unit": unit})]
        return []

    def _cover(self, target: Target, verb: str) -> list[Command]:
        verbs = {"open_cover": "open", "close_cover": "close", "stop_cover": "stop"}
        if verb in verbs:
            return [(target.attribute, verbs[verb], None)]
        tilts = {"open_cover_tilt": "open", "close_cover_tilt": "close", "stop_cover_tilt": "stop"}
        if verb in tilts:
            return [("cover_tilt", tilts[verb], None)]
        if verb == "toggle":
            raise NotTranslated("a cover has no toggle: compare cover_position")
        return []

    def _light(self, target: Target, data: Mapping[str, Any]) -> list[Command]:
        """Return the commands for brightness, colour, and effect."""
        found: list[Command] = []
        if data.get("brightness_pct") is not None:
            found.append(("brightness", "set", self._scaled(data["brightness_pct"], 1)))
        elif data.get("brightness") is not None:
            found.append(("brightness", "set", self._scaled(data["brightness"], 100 / 255)))
        for field, factor in (("brightness_step_pct", 1.0), ("brightness_step", 100 / 255)):
            step = data.get(field)
            if is_template(step):
                raise NotTranslated("a step that is computed is not translated")
            if step:
                shown = templates.number_in_lua(Target(target.device_id, "brightness", "light"), "0")
                found.append(("brightness", "set", Raw(f"ha.clamp({shown} + {round(float(step) * factor)}, 0, 100)")))
        found += self._color(data)
        if data.get("effect") is not None:
            found.append(("effect", "set", Raw(self._value(data["effect"]))))
        return found

    def _color(self, data: Mapping[str, Any]) -> list[Command]:
        found: list[Command] = []
        for field, unit in (("color_temp_kelvin", "kelvin"), ("kelvin", "kelvin"), ("color_temp", "mireds")):
            if data.get(field) is not None:
                found.append(("color_temperature", "set", {"value": Raw(self._value(data[field])), "unit": unit}))
        for field, capability, keys in (
            ("rgb_color", "color_rgb", ("r", "g", "b")),
            ("hs_color", "color_hs", ("hue", "saturation")),
            ("xy_color", "color_xy", ("x", "y")),
        ):
            if (values := data.get(field)) is None:
                continue
            if not isinstance(values, list) or len(values) != len(keys) or any(map(is_template, values)):
                raise NotTranslated("a colour that is computed is not translated")
            if values:
                exact = [each if capability == "color_xy" else round(each) for each in values]
                found.append((capability, "set", dict(zip(keys, exact, strict=True))))
        if (color := data.get("color_name")) is not None:
            if color not in COLORS:
                raise NotTranslated(f"the colour {color} is unknown: write color_rgb")
            found.append(("color_rgb", "set", dict(zip("rgb", COLORS[color], strict=True))))
        return found

    def _scaled(self, value: Any, factor: float) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return round(value * factor)
        made = self._value(value)
        return Raw(f"ha.round({made})" if factor == 1 else f"ha.round(({made}) * {factor:g})")

    def _helper(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        domain = str(action.get("action") or action.get("service")).partition(".")[0]
        for entity_id in self._targets(domain, action, data):
            key = quote(self._entities.variable(entity_id))
            steps = {"increment": 1, "increase": 1, "decrement": -1, "decrease": -1}
            if verb in ("turn_on", "turn_off"):
                made = "true" if verb == "turn_on" else "false"
            elif verb == "toggle":
                made = f"not ctx:get({key}, false)"
            elif verb in steps:
                self.lines.add(f"ha.add(ctx, {key}, {steps[verb]}) -- {entity_id}")
                continue
            elif verb == "reset":
                made = literal(self._entities.installation.helpers.get(entity_id, 0) if domain != "counter" else 0)
            elif verb == "press":
                made = "os.time()"
            elif verb in ("set_value", "set_options", "select_option", "set_datetime"):
                fields = ("value", "option", "time", "datetime", "date", "timestamp")
                given = next((data[each] for each in fields if data.get(each) is not None), None)
                made = self._helper_value(domain, given)
            else:
                raise NotTranslated(f"the service {domain}.{verb} has no counterpart in Lares")
            self.lines.add(f"ctx:set({key}, {made}) -- {entity_id}")

    def _helper_value(self, domain: str, given: Any) -> str:
        if is_template(given) or isinstance(given, Tagged):
            return self._value(given)
        return literal(helper_value(domain, given))

    def _timer(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        duration = data.get("duration")
        for entity_id in self._targets("timer", action, data):
            timer = entity_id.removeprefix("timer.")
            if verb == "start":
                given = duration if duration is not None else self._entities.installation.timers.get(timer)
                made = self._value(given) if is_template(given) else literal(whole(seconds(given)))
                self.lines.add(f"ctx:start_timer({quote(timer)}, {made})")
            elif verb == "cancel":
                self.lines.add(f"ctx:cancel_timer({quote(timer)})")
            elif verb == "finish":
                self.lines.add(f"ctx:start_timer({quote(timer)}, 0)")
            else:
                raise NotTranslated(f"a timer of Lares has no {verb}")

    def _notify(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        if verb in ("dismiss", "mark_read"):
            raise NotTranslated("Lares does not store notifications")
        fields: dict[str, Any] = {}
        if data.get("title") is not None:
            fields["title"] = Raw(self._message(data["title"]))
        more = data.get("data")
        self._omit("a message", {**data, **(more if isinstance(more, Mapping) else {})}, MESSAGE_FIELDS)
        buttons = more.get("actions") if isinstance(more, Mapping) else None
        if isinstance(buttons, list):
            fields["actions"] = [
                {"label": str(each.get("title", "")), "hook": str(each.get("action", "")).lower()}
                for each in buttons
                if isinstance(each, Mapping)
            ]
        tail = f", {literal(fields)}" if fields else ""
        self.lines.add(f"ctx:notify({self._message(data.get('message'))}{tail})")

    def _log(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        level = {"debug": "debug", "warning": "warn", "error": "error"}.get(str(data.get("level")), "info")
        self.lines.add(f"ctx:log({quote(level)}, {self._message(data.get('message'))})")

    def _mqtt(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        if verb != "publish":
            raise NotTranslated(f"the service mqtt.{verb} has no counterpart in Lares")
        payload = {
            "topic": Raw(self._message(data.get("topic"))),
            "payload": Raw(self._message(data.get("payload"))),
            "retain": True if data.get("retain") is True else None,
            "qos": data["qos"] if isinstance(data.get("qos"), int) and data["qos"] else None,
        }
        self.lines.add(f"ctx:invoke({quote(f'{self._entities.section}:publish')}, {literal(payload)})")

    def _scenes(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        if verb == "turn_on":
            self._scene({"scene": self._targets("scene", action, data)})
        elif verb == "apply" and isinstance(data.get("entities"), Mapping):
            self.apply(data["entities"], data)
        elif verb == "create" and not data.get("entities") and data.get("scene_id"):
            ids = [
                target.device_id
                for each in self._entities.members(words(data.get("snapshot_entities")))
                if isinstance(target := self._entities.target(each), Target)
            ]
            name_ = quote(f"scene.{data['scene_id']}")
            self.lines.add(f"ha.keep(ctx, {name_}, {literal(list(dict.fromkeys(ids)))})")
        else:
            raise NotTranslated(f"the service scene.{verb} has no counterpart: use ctx:snapshot and ctx:restore")

    def apply(self, states: Mapping[Any, Any], data: Mapping[str, Any] | None = None) -> None:
        """Write commands that set entities to the states of a scene."""
        fade = {"transition": data["transition"]} if data and data.get("transition") is not None else {}
        for entity_id, state in states.items():
            try:
                service, more = service_for(str(entity_id), state)
                self._service(
                    service, {"action": service, "target": {"entity_id": entity_id}, "data": {**more, **fade}}
                )
            except (NotTranslated, AttributeError, KeyError, TypeError, ValueError) as reason:
                words_ = str(reason) if isinstance(reason, NotTranslated) else "it has an unknown format"
                self._skip({str(entity_id): state}, words_)

    def _script(self, verb: str, action: Mapping[str, Any], data: dict[str, Any]) -> None:
        """Run a scene, or call the Lua function of a script with fields."""
        if verb in ("turn_off", "toggle", "reload"):
            raise NotTranslated(f"the service script.{verb} has no counterpart: use POST /scenes/ID/cancel")
        if verb == "turn_on":
            ids = [each.removeprefix("script.") for each in self._targets("script", action, data)]
            given = data.get("variables") if isinstance(data.get("variables"), Mapping) else {}
        else:
            ids, given = [verb], data
        for each in ids:
            script = self._entities.scripts.get(each)
            if script is None:
                raise NotTranslated(f"script.{each} is not in this folder")
            if verb == "turn_on":
                self.lines.note("Home Assistant does not wait for the end of this script")
            call = f"ctx:run_scene({quote(script.id)})"
            if script.is_function:
                fields = {str(key): Raw(self._value(value)) for key, value in dict(given or {}).items()}
                call = f"require({quote(script.id)})(ctx, {literal(fields)})"
            if (answer := action.get("response_variable")) and script.is_function:
                self.lines.add(f"local {name(str(answer))} = {call}")
                self._names[str(answer)] = name(str(answer))
            else:
                self.lines.add(call)

    # --- values ---

    def _value(self, value: Any) -> str:
        """Return a value, which may contain templates, as Lua."""
        if isinstance(value, Tagged):
            raise NotTranslated(f"the YAML tag {value.tag} is not supported")
        if isinstance(value, list):
            return f"{{ {', '.join(map(self._value, value))} }}"
        if isinstance(value, Mapping):
            return literal({key: Raw(self._value(each)) for key, each in value.items()})
        if is_template(value):
            return templates.expression(value, self.scope)
        return literal(number(value))

    def _message(self, value: Any) -> str:
        if isinstance(value, Tagged):
            raise NotTranslated(f"the YAML tag {value.tag} is not supported")
        return templates.message(value, self.scope)


def _can_be_switched(entity_id: str) -> bool:
    return entity_id.split(".", maxsplit=1)[0] in {*SWITCHED, "input_boolean", "climate", "siren", "all"}


def service_for(entity_id: str, state: Any) -> tuple[str, dict[str, Any]]:
    """Return the service and the data that set an entity to a state of a scene. Raises `NotTranslated`."""
    row = dict(state) if isinstance(state, Mapping) else {"state": state}
    domain, shown = entity_id.partition(".")[0], row.pop("state", None)
    word = ("on" if shown else "off") if isinstance(shown, bool) else str(shown)
    if domain == "light" and word == "on":
        mode = {"color_temp": ("color_temp_kelvin", "color_temp"), "hs": ("hs_color",), "xy": ("xy_color",)}
        colors = mode.get(str(row.get("color_mode")), ("rgb_color",) if "color_mode" in row else COLOR_FIELDS)
        color = next((each for each in colors if row.get(each) is not None), None)
        keys = ("brightness", "effect", color)
        data = {str(key): row[key] for key in keys if key is not None and row.get(key) not in (None, "None", "none")}
        return "light.turn_on", data
    if domain in {*SWITCHED, "input_boolean"} and word in ("on", "off"):
        return f"{domain}.turn_{word}", {}
    if domain == "climate":
        return "climate.set_temperature", {"hvac_mode": word, **_only(row, "temperature", "preset_mode", "fan_mode")}
    if domain == "cover" and row.get("current_position", row.get("position")) is not None:
        return "cover.set_cover_position", {"position": row.get("current_position", row.get("position"))}
    fixed = {
        "cover": {"open": "open_cover", "closed": "close_cover"},
        "lock": {"locked": "lock", "unlocked": "unlock"},
        "media_player": {"playing": "media_play", "paused": "media_pause", "idle": "media_stop"},
    }
    if (verb := fixed.get(domain, {}).get(word)) is not None:
        return f"{domain}.{verb}", {}
    set_ = {
        **dict.fromkeys(["input_number", "number", "input_text", "text"], ("set_value", "value")),
        **dict.fromkeys(["input_select", "select"], ("select_option", "option")),
        "input_datetime": ("set_datetime", "datetime"),
    }
    if domain in set_:
        verb, field = set_[domain]
        return f"{domain}.{verb}", {field: word}
    raise NotTranslated(f"the state {word} of {entity_id} has no command in Lares")


def _only(row: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: row[key] for key in keys if row.get(key) is not None}


def _is_condition(action: Mapping[str, Any]) -> bool:
    return any(each in action for each in ("condition", "and", "or", "not"))


def as_yaml(part: Any) -> str:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = 100
    stream = io.StringIO()
    yaml.dump(_plain(part), stream)
    return stream.getvalue().replace("\n...", "").strip()


def _plain(part: Any) -> Any:
    if isinstance(part, Tagged):
        return str(part)
    if isinstance(part, Mapping):
        return {str(key): _plain(each) for key, each in part.items()}
    return [_plain(each) for each in part] if isinstance(part, list) else part
