"""Translates delays and waits for templates and triggers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.cli.homeassistant import templates, triggers
from appliance.cli.homeassistant.entities import Comparison, Target, Variable
from appliance.cli.homeassistant.entity_values import comparison_in_lua
from appliance.cli.homeassistant.lua import Raw, literal, quote
from appliance.cli.homeassistant.not_translated import NotTranslated, check_part
from appliance.cli.homeassistant.statements import Statements
from appliance.cli.homeassistant.times import SECONDS, duration, seconds, whole
from appliance.cli.homeassistant.values import as_list, is_template
from appliance.lua.running.ctx_calls import MAX_WAIT_SECS

COMPARED = frozenset({"device_state_change", "variable_change"})
"""Types of triggers that Lua can await by comparing a state."""


class Waits:
    """Writes delays and waits. If `reads_waits` is true, later actions read the result of a wait."""

    def __init__(self, statements: Statements, *, reads_waits: bool) -> None:
        self._statements = statements
        self._lines = statements.lines
        self._reads_waits = reads_waits

    def write_delay(self, action: Mapping[str, Any]) -> None:
        delay = action["delay"]
        if is_template(delay):
            self._lines.add(f"ha.sleep(ctx, {self._statements.value(delay)})")
            return
        if isinstance(delay, Mapping) and any(is_template(each) for each in delay.values()):
            terms = [
                f"({self._statements.value(each)}) * {SECONDS[unit]}"
                for unit, each in delay.items()
                if unit in SECONDS
            ]
            self._lines.add(f"ha.sleep(ctx, {' + '.join(terms)})")
            return
        secs = whole(seconds(delay))
        if secs < 0:
            raise NotTranslated("the delay is negative")
        self._lines.add(f"ctx:sleep({secs})" if secs <= MAX_WAIT_SECS else f"ha.sleep(ctx, {secs})")

    def write_wait_template(self, action: Mapping[str, Any]) -> None:
        text = str(action["wait_template"])
        try:
            self._write(templates.comparison(text, self._statements.entities), action)
        except NotTranslated:
            test = templates.condition(text, self._statements.scope)
            self._finish(f"ha.wait_until(ctx, function() return {test} end, {self._timeout(action)})", action)

    def write_wait_for_trigger(self, action: Mapping[str, Any]) -> None:
        """Write a wait for the first of several triggers. A state that already matches does not end the wait."""
        found = [
            (test, duration(each)) for each in as_list(action["wait_for_trigger"]) for test in self._awaited(each)
        ]
        target = found[0][0].target if len(found) == 1 and not found[0][1] else None
        timeout = self._timeout(action)
        if isinstance(target, Target):
            wanted = literal({"attribute": target.attribute, found[0][0].test: found[0][0].value})
            call = f"ha.wait_for_trigger(ctx, {quote(target.device_id)}, {wanted}, {timeout})"
            self._finish(call, action)
            return
        holds = {for_secs for _, for_secs in found}
        if len(holds) != 1:
            raise NotTranslated("the import does not support a wait for triggers with different times")
        tests = ", ".join(f"function() return {comparison_in_lua(test)} end" for test, _ in found)
        more = f", {whole(held)}" if (held := holds.pop()) else ""
        self._finish(f"ha.wait_for_any(ctx, {{ {tests} }}, {timeout}{more})", action)

    def _awaited(self, trigger: Any) -> list[Comparison]:
        """Return the Lua tests for a trigger. The trigger matches if any of the tests is true."""
        if not isinstance(trigger, Mapping):
            raise NotTranslated("this part is not a YAML mapping")
        check_part(trigger)
        without = {key: each for key, each in trigger.items() if key != "for"}
        rows = triggers.translate(without, self._statements.entities)
        kinds = [row.table for row in rows if not row.guard]
        if len(kinds) != len(rows) or any(each["type"] not in COMPARED for each in kinds):
            raise NotTranslated("the import does not support a wait for this trigger")
        found = []
        for row in kinds:
            tests = [each for each in ("equals", "above", "below") if each in row]
            if len(tests) != 1:
                raise NotTranslated("the import does not support a wait for a range or for any change")
            target: Target | Variable = Variable(str(row.get("name")), "")
            if "device_id" in row:
                target = Target(row["device_id"], row["attribute"], "")
            found.append(Comparison(target, tests[0], row[tests[0]]))
        return found

    def _write(self, test: Comparison, action: Mapping[str, Any]) -> None:
        timeout = self._timeout(action)
        if isinstance(test.target, Variable):
            lua = comparison_in_lua(test)
            self._finish(f"ha.wait_until(ctx, function() return {lua} end, {timeout})", action)
            return
        device, wanted = quote(test.target.device_id), {"attribute": test.target.attribute, test.test: test.value}
        if isinstance(timeout, Raw) or timeout > MAX_WAIT_SECS:
            self._finish(f"ha.wait_for(ctx, {device}, {literal(wanted)}, {timeout})", action)
        else:
            self._finish(f"ctx:wait_for({device}, {literal({**wanted, 'timeout_secs': timeout})})", action)

    def replace_by_delay(self, action: Mapping[str, Any]) -> None:
        """If a wait cannot be translated, replace the wait with a delay as long as the wait's timeout. If the wait
        has no timeout, end the run."""
        try:
            self.write_delay({"delay": action["timeout"]})
        except (KeyError, NotTranslated):
            self._statements.end_run("this wait")
        else:
            if action.get("continue_on_timeout", True) is False:
                self._statements.end_run("this wait")

    def _timeout(self, action: Mapping[str, Any]) -> int | float | Raw:
        return Raw("math.huge") if action.get("timeout") is None else whole(seconds(action["timeout"]))

    def _finish(self, call: str, action: Mapping[str, Any]) -> None:
        if action.get("continue_on_timeout", True) is False:
            self._lines.return_if(f"not {call}")
        elif self._reads_waits:
            self._lines.add(f"local completed = {call}")
            self._statements.names |= {"wait_completed": "completed", "wait_trigger": "(completed or nil)"}
        else:
            self._lines.add(call)
