// A run of an automation or a scene: its outcome, cause, and steps in words.

import { moment } from "./calendar.js";
import { tags } from "./dom.js";
import { conditionAt, foundBy, inWords } from "./reasons.js";
import { state } from "./store.js";
import { HUB_LANGUAGE } from "./ui.js";
import { commandOf, labelOf, nameOf, show, word } from "./values.js";
import { duration, number, plain, t, withUnit } from "./words.js";

const { li, ol, p, span, strong } = tags;

export const inSeconds = (ms) => (ms < 1000 ? `${number(ms)} ms` : withUnit(ms / 1000, "s"));

/** @type {(condition: any) => string} */
export const holding = ({ holds }) => t(`condition.${holds ? "yes" : "no"}`);

const NUMBERED = /^([\d.]+): (.*)$/s;
const REASON = /^(condition|cooldown|duplicate|mode|disabled|brake)\b[\s:]*(.*)$/s;

// The reason why a trigger did not lead to a successful run, in the page's language, followed by the hub's sentence.
function reasonOf({ status, error, trace = [] }, conditions) {
	if (!error) return word(status);
	const [, kind, detail] = REASON.exec(error) ?? [null, status === "error" ? "failed" : status, error];
	const [, number, compared] = NUMBERED.exec(kind === "condition" ? detail : "") ?? [];
	const condition = conditionAt(conditions, number ?? 0);
	const isSame = condition && trace.some(({ step, holds, type }) => step === "condition" && !holds
		&& conditionAt(conditions, number.split(".")[0]).type === type);
	const found = isSame ? foundBy(condition, compared) : null;
	const [own, said] = isSame ? [`${number}: ${inWords(condition)}`, `(${found ?? compared})`] : ["", kind === "disabled" ? "" : detail];
	return [`${t(`reason.${kind}`, { detail: own }, "")} `, span({ lang: found === null && HUB_LANGUAGE }, said.replace(/ s more$/, " s"))];
}

// The result of a run. A run with warnings has a separate result, not "done".
const outcomeOf = ({ status, warnings = [] }) => (status === "ok" && warnings.length ? t("automation.warned") : word(status));

// The cause of a run, such as a device's value, a time, or a person. A run before the hub's last start has only a type.
function causeOf({ type, device_id: id, attribute, value, event, name, hook }) {
	if (!type || type === "manual") return t("source.device");
	const device = id && (state.devices.get(id) ?? { id });
	if (device && attribute) return `${nameOf(device)}: ${labelOf(attribute, device)} = ${show(attribute, value, device)}`;
	if (device) return event ? t("trigger.event", { who: nameOf(device), event: word(event) }) : nameOf(device);
	if (type === "timer" && name) return t("trigger.timer", { name });
	if (type === "webhook" && hook) return t("trigger.webhook", { hook });
	if (type === "variable_change" && name) return t("trigger.variable", { name });
	return t(`cause.${type}`, {}, plain(type));
}

export const runItem = (conditions) => (entry, at) => {
	const { status, executed_at: when, duration_ms: duration = 0, trace = [], warnings = [], trigger_payload: payload } = entry;
	const isBad = status === "error" || warnings.length > 0;
	const addsTo = (reason) => !reason || trace.length > 1 || trace.some(({ step }) => step !== "condition");
	return li({ key: at, class: status },
		p(`${moment(when)} · `, strong({ class: isBad ? "problem" : "" }, outcomeOf(entry)), ` · ${inSeconds(duration)}`),
		p({ class: "hint", dir: "auto" }, causeOf(payload ?? {})),
		status !== "ok" && p({ dir: "auto" }, reasonOf(entry, conditions)),
		warnings.filter((each) => !(entry.error ?? "").includes(each)).map((each, key) => p({ key, class: "problem", lang: HUB_LANGUAGE, dir: "auto" }, each)),
		trace.length > 0 && addsTo(entry.error) && ol({ class: "trace" },
			trace.map((step) => li(`${inSeconds(step.at_ms ?? 0)} · ${STEPS[step.step](step, conditions)}`))));
};

// The words for a run's steps, by kind.
const STEPS = {
	condition: (step, conditions) => {
		const known = conditionAt(conditions, step.number);
		return `${step.number}: ${known?.type === step.type ? inWords(known) : step.type} – ${holding(step)}`;
	},
	command: (step) => `${commandOf(step)} – ${step.message ?? word(step.status)}`,
	invoke: ({ target, status }) => `${target} – ${word(status)}`,
	sleep: ({ secs }) => t("step.sleep", { duration: duration(secs) }),
	wait: ({ result, ...what }) => `${t("step.wait", { what: inWords({ type: "device_state", ...what }) })} – ${holding({ holds: result })}`,
	scene: ({ scene_id: id, status }) => `${t("source.scene")} ${state.scenes.get(id)?.name ?? id} – ${word(status)}`,
	log: ({ level, message }) => `${t("box.log")} · ${level} · ${message}`,
};
