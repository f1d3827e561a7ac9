"""Translates actions of Home Assistant, such as conditions and loops, to Lua statements.

Action types and fields follow Home Assistant's documentation of scripts. An untranslated part becomes a comment with
the reason and the YAML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from appliance.cli.homeassistant import conditions
from appliance.cli.homeassistant.commands import number_value
from appliance.cli.homeassistant.entities import TARGET_KEYS, Entities
from appliance.cli.homeassistant.lua import literal, name, negated, quote
from appliance.cli.homeassistant.not_translated import Disabled, NotTranslated, check_part
from appliance.cli.homeassistant.services import Services
from appliance.cli.homeassistant.statements import ODD_FORMS, Statements, words_of
from appliance.cli.homeassistant.values import as_list, as_mapping, contains_template, is_template, mentions
from appliance.cli.homeassistant.waits import Waits

MAX_UNROLLED = 20

ONE_NAME = re.compile(r"\s*\{\{\s*([A-Za-z_]\w*(?:\.\w+|\['\w+'\])*)\s*\}\}\s*")
"""A template that contains only a name, such as `{{ repeat.item.lamp }}`."""

REPEATED_ITEM = re.compile(r"\s*\{\{\s*repeat\.item")

RAISING = ("ctx:invoke(", "ctx:run_scene(", "require(")
"""Lua calls that raise an error if they fail."""


class Actions:
    """Writes the Lua statements of an automation. `problems` contains the reasons for untranslated parts."""

    def __init__(
        self,
        entities: Entities,
        trigger_entities: tuple[str, ...] = (),
        *,
        reads_waits: bool = False,
        fields: Mapping[str, str] | None = None,
        depth: int = 2,
    ) -> None:
        """If `fields` maps field names to Lua code, write a scene or function. If `fields` is None, write an
        automation."""
        self.statements = Statements(entities, trigger_entities, fields or {}, has_event=fields is None, depth=depth)
        self._entities = entities
        self.services = Services(self.statements)
        self._waits = Waits(self.statements, reads_waits=reads_waits)
        self.lines, self.problems = self.statements.lines, self.statements.problems
        self._known: dict[str, Any] = {}
        self._loops = 0
        self._copies = 1

    def body(self) -> str:
        """Return the Lua statements."""
        if not self.lines.lines:
            self.lines.add('ctx:log("info", "nothing was translated")')
        return "\n".join(self.lines.lines)

    def define(self, variables: Any) -> None:
        """Write variables of an automation or action as Lua locals."""
        if not isinstance(variables, Mapping | None):
            self.statements.skip({"variables": variables}, "the variables are not a YAML mapping")
        for key, value in as_mapping(variables).items():
            try:
                made = self.statements.value(value)
            except NotTranslated as reason:
                self.statements.skip({"variables": {key: value}}, str(reason))
                continue
            local = name(str(key))
            self.lines.add(f"local {local} = {made}")
            self.statements.names[str(key)] = local
            self._known.pop(str(key), None)
            if not contains_template(value):
                self._known[str(key)] = value

    def define_by_trigger(self, variables: Mapping[str, Mapping[str, Any]]) -> None:
        """Write the variables of each trigger as Lua locals that depend on the trigger's id."""
        for key in dict.fromkeys(str(key) for own in variables.values() for key in own):
            local = name(key)
            self.lines.add(f"local {local}")
            self.statements.names[key] = local
        for id_, own in variables.items():
            self.lines.open(f"if event.trigger_id == {literal(id_)} then")
            for key, value in own.items():
                try:
                    self.lines.add(f"{name(str(key))} = {self.statements.value(value)}")
                except NotTranslated as reason:
                    self.statements.skip({"variables": {key: value}}, str(reason))
            self.lines.close()

    def sequence(self, value: Any) -> None:
        for each in as_list(value):
            self._one(each)

    def _one(self, action: Any) -> None:
        if isinstance(action, str) and is_template(action):
            action = {"condition": "template", "value_template": action}
        if isinstance(action, list):
            self.sequence(action)
            return
        if not isinstance(action, Mapping):
            self.statements.skip(action, "this part is not a YAML mapping")
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
        except ODD_FORMS as reason:
            self.lines.cut(before)
            del self.problems[problems:]
            self.statements.skip(action, words_of(reason))
            if not isinstance(reason, Disabled):
                self._replace(action)

    def _replace(self, action: Mapping[str, Any]) -> None:
        """If later actions depend on this untranslated action, end the run here, or wait."""
        if _is_condition(action):
            self.statements.end_run("this condition")
        elif "delay" in action:
            self.statements.end_run("this delay")
        elif {"while", "until"} & as_mapping(action.get("repeat")).keys():
            self.statements.end_run("this repetition")
        elif "wait_template" in action or "wait_for_trigger" in action:
            self._waits.replace_by_delay(action)

    def _protect(self, start: int) -> None:
        """Wrap the lines from `start` on, so that the run continues after an error. Device commands do not need
        this wrapper, because they raise no errors."""
        lines = self.lines.lines[start:]
        if any(call in line for line in lines for call in RAISING) and not any("local " in line for line in lines):
            self.lines.lines[start:] = [
                f"{self.lines.indent}pcall(function()",
                *(f"  {line}" for line in lines),
                f"{self.lines.indent}end)",
            ]

    def _method(self, action: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None]:
        methods: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "delay": self._waits.write_delay, "wait_template": self._waits.write_wait_template,
            "wait_for_trigger": self._waits.write_wait_for_trigger,
            "choose": self._choose, "if": self._if, "repeat": self._repeat, "parallel": self._parallel,
            "sequence": lambda each: self.sequence(each["sequence"]), "stop": self._stop,
            "variables": lambda each: self.define(each["variables"]), "scene": self.services.write_scene,
            "event": self._event, "set_conversation_response": self._response,
        }  # fmt: skip
        if _is_condition(action):
            return self._condition
        if "device_id" in action and "domain" in action and "type" in action:
            return self.services.write_device_action
        for key in ("action", "service", "service_template"):
            if isinstance(action.get(key), str):
                return lambda each: self.services.write(str(each[key]), each)
        for key, method in methods.items():
            if key in action:
                return method
        raise NotTranslated("the type of this action is unknown")

    # --- control ---

    def _condition(self, action: Mapping[str, Any]) -> None:
        self.lines.return_if(negated(conditions.in_lua(action, self.statements.scope)))

    def _test(self, value: Any) -> str:
        """Return the Lua expression for conditions. If a condition cannot be translated, write a comment, and return
        an expression that ends the run, because the other branch may be wrong, too."""
        try:
            return conditions.in_lua(value, self.statements.scope)
        except NotTranslated as reason:
            self.statements.skip(value, f"condition: {reason}")
            return 'error("this condition is not translated; write it in Lua in this file")'

    def _choose(self, action: Mapping[str, Any]) -> None:
        options = as_list(action["choose"])
        if any("conditions" not in each for each in options):
            raise NotTranslated("an option has no conditions")
        tests = [self._test(each["conditions"]) for each in options]
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
        """Write actions in a block with separate local variables."""
        names = dict(self.statements.names)
        self.sequence(value)
        self.statements.names = names

    def _repeat(self, action: Mapping[str, Any]) -> None:
        repeat = action["repeat"]
        if not isinstance(repeat, Mapping):
            raise NotTranslated("the repetition is not a YAML mapping")
        names, self._loops = dict(self.statements.names), self._loops + 1
        index = f"index{self._loops}" if self._loops > 1 else "index"
        self.statements.names |= {"repeat_index": index, "repeat_first": f"{index} == 1"}
        counts = mentions(repeat, "repeat.")
        end = "end"
        if "count" in repeat:
            self.lines.open(f"for {index} = 1, {number_value(repeat['count'], self.statements.scope)} do")
        elif "for_each" in repeat and self._is_unrolled(repeat):
            self._unroll(repeat)
            self.statements.names, self._loops = names, self._loops - 1
            return
        elif "for_each" in repeat:
            item = f"item{self._loops}" if self._loops > 1 else "item"
            self.statements.names["repeat_item"] = item
            self.lines.open(f"for {index}, {item} in ipairs({self.statements.value(repeat['for_each'])}) do")
        elif "while" in repeat:
            test = conditions.in_lua(repeat["while"], self.statements.scope)
            self.lines.add(*([f"local {index} = 1"] if counts else []))
            self.lines.open(f"while {test} do")
        elif "until" in repeat:
            end = f"until {conditions.in_lua(repeat['until'], self.statements.scope)}"
            self.lines.add(*([f"local {index} = 0"] if counts else []))
            self.lines.open("repeat")
            self.lines.add(*([f"{index} = {index} + 1"] if counts else []))
        else:
            raise NotTranslated("the repetition has no end condition")
        self.sequence(repeat.get("sequence"))
        if counts and "while" in repeat:
            self.lines.add(f"{index} = {index} + 1")
        self.lines.close(end)
        self.statements.names, self._loops = names, self._loops - 1

    def _is_unrolled(self, repeat: Mapping[str, Any]) -> bool:
        """Return whether any repeated item contains a target. Actions on targets are written once per item."""
        items = repeat["for_each"]
        return (
            isinstance(items, list)
            and len(items) * self._copies <= MAX_UNROLLED
            and not contains_template(items)
            and _targets_item(repeat.get("sequence"))
        )

    def _unroll(self, repeat: Mapping[str, Any]) -> None:
        known, copies = dict(self._known), self._copies
        self._copies *= len(repeat["for_each"])
        for index, item in enumerate(repeat["for_each"], 1):
            self._known["repeat"] = {"item": item, "index": index}
            self.statements.names |= {"repeat_item": self.statements.value(item), "repeat_index": str(index)}
            self.sequence(repeat.get("sequence"))
        self._known, self._copies = known, copies

    def _filled_in(self, value: Any) -> Any:
        """If a template contains only the name of a constant, replace the template with the constant's value."""
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
        reason = "in Home Assistant, these actions run at the same time; here, they run one after another"
        self.lines.note(reason)
        if any(mentions(action["parallel"], each) for each in ("delay", "wait_")):
            self.problems.append(reason)
        self.sequence(action["parallel"])

    def _stop(self, action: Mapping[str, Any]) -> None:
        if (answer := action.get("response_variable")) and not self.statements.has_event:
            self.lines.add(f"do return {self.statements.scope.variable(str(answer))} end")
            return
        if action["stop"]:
            level = quote("error" if action.get("error") else "info")
            self.lines.add(f"ctx:log({level}, {self.statements.message(action['stop'])})")
        self.lines.add("do return end")

    def _event(self, action: Mapping[str, Any]) -> None:
        raise NotTranslated("Lares has no custom events; instead, set a variable, or call a scene")

    def _response(self, action: Mapping[str, Any]) -> None:
        raise NotTranslated("Lares has no voice assistant")


def _is_condition(action: Mapping[str, Any]) -> bool:
    return any(each in action for each in ("condition", "and", "or", "not"))


def _targets_item(part: Any) -> bool:
    """Return whether an action in the part has the item of its `repeat` as a target."""
    if isinstance(part, Mapping):
        targets = [text for key in TARGET_KEYS for text in as_list(part.get(key))]
        return any(map(REPEATED_ITEM.match, map(str, targets))) or any(map(_targets_item, part.values()))
    return isinstance(part, list) and any(map(_targets_item, part))
