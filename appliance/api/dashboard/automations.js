// Automations: switched, run, and asked why they did not run; and what is wrong with the Lua files.

import { get, post, segment } from "./api.js";
import { load } from "./connection.js";
import { tags, use, useState } from "./dom.js";
import { act, mayAdmin, mayWrite, note, put, state } from "./store.js";
import { Running } from "./executions.js";
import { actions, Button, card, empty, errorLine, facts, inTurn, outcomes, row, thing, titled, toggle, useLoaded } from "./ui.js";
import { word } from "./values.js";
import { number, seconds, t, time } from "./words.js";

const { code, details, div, h1, li, ol, p, small, span, strong, summary, ul } = tags;

export function Automations({ id }) {
	const automations = [...state.automations.values()];
	return [
		h1({ tabindex: "-1" }, t("nav.automations")),
		use(Running, { kind: "automation" }),
		automations.length === 0 && empty(t("nothing")),
		div({ class: "list" }, automations.map((each) => use(Automation, { key: each.id, automation: each, isOpen: each.id === id }))),
		mayAdmin() && use(Files),
	];
}

function Automation({ automation, isOpen }) {
	const { id, name, description, status, enabled_in_file: isOnAtFirst, last_run: lastRun } = automation;
	const path = `automations/${segment(id)}`;
	const target = `automation ${id}`;
	const history = useLoaded(() => inTurn(() => get(`${path}/history?limit=20`)), [lastRun, status]);
	const next = useLoaded(() => inTurn(() => get(`${path}/next`)), [status]);
	const entries = history.data?.entries ?? [];
	const latest = entries[0]?.status === "ok" ? undefined : entries[0];
	const pending = state.pending.get(target);
	const run = async () => {
		note("outcomes", target, null);
		const answer = await act(target, "run", () => post(`${path}/execute`, {}));
		if (answer) note("outcomes", target, answer.results);
		history.reload();
		load();
	};
	return thing({
		symbol: "automations",
		title: span({ class: "title" }, strong(name), small(description)),
		control: toggle({
			label: name,
			isOn: status === "enabled",
			isPending: Boolean(pending?.enabled),
			isDisabled: !mayWrite(),
			onSwitch: (enabled) => act(target, "enabled", async () => put("automations", await post(`${path}/enabled`, { enabled }))),
		}),
	},
		facts([
			[t("automation.next"), nextOf(automation, next.data)],
			[t("automation.last"), lastRun ? time(lastRun) : t("never")],
			latest && [time(latest.executed_at), reasonOf(latest)],
		].filter(Boolean)),
		status === "disabled" && !isOnAtFirst && p(t("automation.fill_in")),
		errorLine(target),
		outcomes(target),
		details({ open: isOpen }, summary(t("automation.history")), entries.length ? ol({ class: "runs" }, entries.map(runItem)) : empty(t("nothing"))),
		mayWrite() && actions(use(Button, { label: t("automation.run"), isBusy: Boolean(pending?.run), onClick: run })));
}

function nextOf({ status }, answer) {
	if (status === "disabled") return t("automation.off");
	return answer?.next.length ? time(answer.next[0]) : t("automation.waits");
}

const REASON = /^(condition|cooldown|duplicate|mode|disabled|brake)\b[\s:]*(.*)$/s;

// Why a trigger did not become a run that went well, as a sentence.
function reasonOf({ status, error }) {
	const [, kind, detail] = REASON.exec(error ?? "") ?? [null, "failed", error];
	return error ? t(`reason.${kind}`, { detail }) : word(status);
}

function runItem(entry, at) {
	const { status, executed_at: when, duration_ms: duration = 0, trace = [] } = entry;
	return li({ key: at, class: status },
		p(`${time(when)} · `, strong(word(status)), ` · ${number(duration)} ms`),
		status !== "ok" && p(reasonOf(entry)),
		trace.length > 0 && ol({ class: "trace" }, trace.map((step) => li(stepText(step)))));
}

function stepText({ at_ms: at = 0, step, ...more }) {
	const told = Object.entries(more).map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`);
	return [`${number(at)} ms`, step, ...told].join(" · ");
}

// The folders of Lua files: read anew, with every fault by file and line.
function Files() {
	const [results, setResults] = useState({});
	const reload = async (target) => {
		const result = await act(`files ${target}`, "reload", () => post(`${target}/reload`));
		if (result) setResults((old) => ({ ...old, [target]: { ...result, at: Date.now() } }));
	};
	return titled(t("files"), card(["scenes", "automations", "scripts"].map((target) => div({ key: target },
		row(span(t(target)), use(Button, { label: t("refresh"), isBusy: state.pending.has(`files ${target}`), onClick: () => reload(target) })),
		errorLine(`files ${target}`),
		results[target] && reloaded(results[target])))));
}

function reloaded({ at, errors, loaded_count: count }) {
	const told = errors.length ? t("files.faults", { count: errors.length }) : t("files.loaded", { count });
	return div({ role: "status" }, p(`${seconds(at)}: ${told}`),
		ul({ class: "faults" }, errors.map(({ file, line, message }) => li(code(line ? `${file}:${line}` : file), ` ${message}`))));
}
