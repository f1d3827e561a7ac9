// The list of automations, and a page for each automation: its switch, its runs, its triggers and conditions, and the
// errors of its file.

import { erase, get, post, replace, segment, sentenceOf } from "./api.js";
import { dayTime, hasOtherTime } from "./calendar.js";
import { confirm } from "./dialog.js";
import { tags, use, useState } from "./dom.js";
import { fileAddress, FileList } from "./editor.js";
import { Running } from "./home.js";
import { icon } from "./icons.js";
import { inTurn, useLoaded, useRefreshed } from "./loading.js";
import { inWordsNow, valueOf } from "./reasons.js";
import { holding, inSeconds, runItem } from "./executions.js";
import { act, mayAdmin, mayWrite, note, put, state } from "./store.js";
import {
	actions, Button, called, card, empty, errorLine, facts, Field, HUB_LANGUAGE, iconButton, outcomes, row,
	safeModeReason, titled, toggle,
} from "./ui.js";
import { t, time } from "./words.js";

const { a, code, div, h1, li, ol, p, small, span, strong, ul } = tags;

// Refresh the list, because no event reports that an automation ran, failed, or was switched by another page.
async function refresh() {
	const before = new Map(state.automations);
	const found = await inTurn(() => get("automations?include=times"));
	for (const each of found) if (state.automations.get(each.id) === before.get(each.id)) put("automations", each);
}

const needsAttention = ({ last_error: failed }) => Boolean(failed);

// Sort automations: errors first, then running automations, then by name.
const byUrgency = (one, other) => Number(needsAttention(other)) - Number(needsAttention(one)) || Number(other.running > 0) - Number(one.running > 0)
	|| one.name.localeCompare(other.name);

export function Automations({ id }) {
	const { reload } = useRefreshed(refresh);
	if (id) return use(AutomationPage, { key: id, id, onRun: reload });
	const automations = [...state.automations.values()].sort(byUrgency);
	return [
		div({ class: "heading" }, h1({ tabindex: "-1", class: "title" }, t("nav.automations")),
			mayAdmin() && a({ class: "button main", href: "#/new" }, icon("add"), t("new.title"))),
		safeModeReason(),
		zoneNote(),
		state.faults.length > 0 && card(p({ class: "problem" }, t("files.wrong", { count: state.faults.length })), faultList(state.faults)),
		use(Running),
		automations.length ? card(automations.map((automation) => use(AutomationRow, { key: automation.id, automation }))) : empty(t("nothing")),
		use(Timers),
		use(Variables),
		mayAdmin() && use(FileList),
	];
}

// A note if the browser's time differs from the home's time. The page shows all times in the browser's zone.
const zoneNote = () => hasOtherTime(state.timezone) && p({ class: "hint" }, t("automation.other_zone", { zone: state.timezone }));

const pathOf = ({ id }) => `automations/${segment(id)}`;
const targetOf = ({ id }) => `automation ${id}`;

function AutomationRow({ automation }) {
	const { id, name, last, last_run: lastRun, last_error: lastError, next_run: next, running, status } = automation;
	const ran = lastRun && t("automation.ran", { time: dayTime(lastRun), took: took(last) });
	const warned = last?.status === "ok" && last.warnings > 0;
	const idle = [status === "disabled" && t("automation.off"),
		status === "enabled" && next && t("automation.due", { time: dayTime(next) }), ran || (next ? null : t("automation.no_run")),
		warned && t("automation.warned")].filter(Boolean).join(" · ");
	return div({ class: "item" }, div({ class: lastError || warned ? "row failed" : "row" },
		a({ class: "title", href: `#/automations/${segment(id)}` }, called(name),
			lastError && !running ? small({ dir: "auto", lang: HUB_LANGUAGE }, lastError) : small({ dir: "auto" }, running ? t("running") : idle)),
		switchOf(automation)), errorLine(targetOf(automation)));
}

const took = (entry) => (entry?.duration_ms === undefined ? "" : `, ${inSeconds(entry.duration_ms)}`);

const switchOf = (automation) => toggle({
	label: automation.name,
	isOn: automation.status === "enabled",
	isPending: Boolean(state.pending.get(targetOf(automation))?.enabled),
	isDisabled: !mayWrite(),
	onSwitch: (enabled) =>
		act(targetOf(automation), "enabled", async () => put("automations", await post(`${pathOf(automation)}/enabled`, { enabled }))),
});

function AutomationPage({ id, onRun }) {
	const automation = state.automations.get(id);
	const { last_run: lastRun, status } = automation ?? {};
	const path = pathOf({ id });
	const history = useRefreshed(() => inTurn(() => get(`${path}/history?limit=20`)));
	const why = useRefreshed(() => inTurn(() => get(`why?id=${segment(id)}`)), Boolean(automation));
	const next = useLoaded(() => inTurn(() => get(`${path}/next`)), [status, why.data]);
	const back = a({ class: "back", href: "#/automations" }, icon("back"), t("nav.automations"));
	const stated = why.data?.automation;
	const reasons = card(why.error ? empty(why.error) : stated ? statedAs(stated) : sentences(why.data?.summary));
	if (!automation) {
		// the hub knows a new automation before the page does
		const isExpected = !why.error && (!why.data || (stated && why.data.id === id));
		const heading = (text) => div({ class: "heading" }, icon("automations"), h1({ tabindex: "-1", dir: "auto", class: "title" }, text));
		return isExpected ? [back, heading(id), empty("…")] : [back, heading(t("automation.gone")), p(id), reasons];
	}
	const target = targetOf(automation);
	const entries = history.data?.entries ?? [];
	const run = async () => {
		note("outcomes", target, null);
		const answer = await act(target, "run", () => post(`${path}/execute`, {}));
		if (answer) note("outcomes", target, answer.results);
		[history, why].forEach((each) => each.reload());
		onRun();
	};
	return [
		back,
		div({ class: "heading" }, icon("automations"), h1({ tabindex: "-1", dir: "auto", class: "title" }, automation.name), switchOf(automation)),
		automation.description && p({ dir: "auto" }, automation.description),
		mayAdmin() && use(Source, { id }),
		status === "disabled" && !automation.enabled_in_file && p({ class: "hint" }, t("automation.fill_in")),
		zoneNote(),
		errorLine(target),
		outcomes(target),
		use(Running, { of: id }),
		card(facts([
			[t("automation.next"), nextOf(automation, next.data)],
			[t("automation.last"), lastRun ? `${dayTime(lastRun)}${took(entries[0])}` : t("automation.no_run")],
		]), mayWrite() && actions(use(Button, { label: t("automation.run"), isBusy: Boolean(state.pending.get(target)?.run), onClick: run }))),
		titled(t("automation.why"), reasons),
		titled(t("automation.history"), card(entries.length ? ol({ class: "runs" }, entries.map(runItem(stated?.conditions ?? [])))
			: empty(history.error ?? t("nothing")))),
	];
}

// The link to the automation's file.
function Source({ id }) {
	const { data } = useLoaded(() => get("files"), []);
	const file = data?.files.find(({ path }) => path === `config/automations/${id}.lua`);
	return file ? a({ class: "button", href: fileAddress(file.path) }, icon("file"), t("automation.source")) : null;
}

function nextOf({ status }, answer) {
	if (status === "disabled") return t("automation.off");
	return answer?.next.length ? dayTime(answer.next[0]) : t("automation.waits");
}

const sentences = (texts) => ul({ class: "runs", dir: "auto", lang: HUB_LANGUAGE }, texts?.map((sentence, at) =>
	li({ key: at }, sentence.replace(INSTANT, time))));

// Triggers and conditions in words, followed by the hub's notes.
const statedAs = ({ triggers, conditions, notes }) => [
	p({ class: "label" }, t("trigger.title")),
	ul({ class: "runs", dir: "auto", "aria-label": t("trigger.title") }, triggers.map((each, at) => li({ key: at }, inWordsNow(each)))),
	conditions.length > 0 && [p({ class: "label" }, t("condition.title")), conditionList(conditions)],
	notes.length > 0 && sentences(notes),
];

const conditionList = (conditions, prefix = "") => ol({ class: "runs", dir: "auto" }, conditions.map((each, at) => li({ key: at },
	`${prefix}${at + 1}: ${inWordsNow(each)} – `, strong({ class: each.holds ? "" : "problem" }, holding(each)),
	each.conditions && conditionList(each.conditions, `${prefix}${at + 1}.`))));

const INSTANT = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

function Timers() {
	const { data, reload } = useRefreshed(() => inTurn(() => get("timers")));
	const cancel = ({ name }) => act(`timer ${name}`, "cancel", () => erase(`timers/${segment(name)}`)).then(reload);
	return data?.length > 0 && titled(t("timers"), card(data.map((timer) => div({ key: timer.name },
		row(span({ class: "title" }, called(timer.name), small(t("timer.due", { time: time(timer.due_at) }))),
			mayWrite() && use(Button, { label: t("cancel"), onClick: () => cancel(timer) })),
		errorLine(`timer ${timer.name}`)))));
}

const textOf = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// The control that sets a variable. An existing variable keeps its type. The typed text determines the type of a
// new variable.
function variable(name, value, isNew, set) {
	const label = t("variable.value", { name });
	if (typeof value === "boolean") return toggle({ label, isOn: value, onSwitch: (isOn) => set(() => isOn) });
	const [isText, isNumber] = [typeof value === "string", typeof value === "number"];
	return use(Field, { label, action: t("set"), initial: textOf(value), canBeEmpty: isText, type: isNumber ? "number" : "text", step: isNumber && "any",
		onSend: (text) => set(() => (isNew ? valueOf(text) : isText ? text : parse(text))) });
}

function parse(text) {
	try {
		return JSON.parse(text);
	} catch ({ message }) {
		throw new Error(sentenceOf(400, { code: "invalid_value", error: message }));
	}
}

function Variables() {
	const { data = [], reload } = useRefreshed(() => inTurn(() => get("variables")));
	const [fresh, setFresh] = useState(null);
	const set = (name, read) => act(`variable ${name}`, "set", async () => {
		await replace(`variables/${segment(name)}`, { value: read() });
		return true;
	}).finally(reload);
	const remove = async (name) => {
		if (!(await confirm(t("confirm.delete", { name }), t("delete")))) return;
		if (name === fresh) setFresh(null);
		if (data.some((each) => each.name === name)) act(`variable ${name}`, "delete", () => erase(`variables/${segment(name)}`)).then(reload);
	};
	const known = fresh && !data.some(({ name }) => name === fresh) ? [...data, { name: fresh, value: "" }] : data;
	return (known.length > 0 || mayWrite()) && titled(t("variables"), card(
		known.map(({ name, value }) => div({ key: name },
			row(called(name), mayWrite() && iconButton("remove", t("delete.what", { name }), () => remove(name))),
			mayWrite() ? variable(name, value, name === fresh && !data.some((each) => each.name === name), (read) => set(name, read)) : p(textOf(value)),
			errorLine(`variable ${name}`))),
		mayWrite() && use(Field, { label: t("variable.new"), action: t("create"), maxlength: "256", onSend: (name) => setFresh(name) ?? true })));
}

const faultList = (faults) => ul({ class: "faults", lang: HUB_LANGUAGE },
	faults.map(({ file, line, message }, key) => li({ key }, code(line ? `${file}:${line}` : file), ` ${message}`)));
