// Forms for adapter sections, generated from the settings of each kind. A section can be tried before it is saved.
// The hub checks each change before it writes the change, and starts, replaces, or stops the adapter at once.

import { erase, get, post, replace, segment } from "./api.js";
import { confirm } from "./dialog.js";
import { tags, use, useEffect, useRef, useState } from "./dom.js";
import { fileAddress } from "./editor.js";
import { icon } from "./icons.js";
import { useLoaded } from "./loading.js";
import { act, mayAdmin, state } from "./store.js";
import { TrialResult } from "./trial.js";
import { actions, Button, card, empty, errorLine, HUB_LANGUAGE, iconButton, row, titled } from "./ui.js";
import { word } from "./values.js";
import { plain, t } from "./words.js";

const { a, button, details, div, form, h1, input, label, option, p, select, small, span, strong, summary } = tags;

const HIDDEN = "***"; // in place of a secret
const requestOf = (name) => `files/sections/${segment(name)}`;
const titleOf = ({ name, title }) => t(`kind.${name}`, {}, title);
const byTitle = (one, other) => titleOf(one).localeCompare(titleOf(other));

const save = (target, name, body) => act(target, "save", async () => {
	await replace(requestOf(name), body);
	return true;
});

// Add a section for a discovered device, with the header `[adapters.NAME]` and its keys.
export function AddFound({ section }) {
	const [isDone, setDone] = useState(false);
	const [header, ...lines] = section.trim().split("\n");
	const name = /^\[adapters\.(.+)\]$/.exec(header)[1];
	const { type: kind = name, ...values } = Object.fromEntries(
		lines.map((line) => /^(\w+) = (.*)$/.exec(line)).filter(Boolean).map(([, key, value]) => [key, JSON.parse(value)]));
	const target = `add ${name}`;
	if (isDone) return p({ role: "status" }, t("add.done"));
	const add = () => save(target, name, { kind, values, is_new: true }).then((done) => done && setDone(true));
	return [actions(use(Button, { label: t("add.this"), isMain: true, isBusy: state.pending.has(target), onClick: add })), errorLine(target)];
}

export function AdapterTools({ name }) {
	const target = `remove ${name}`;
	const remove = async () => {
		if (await confirm(t("add.confirm_remove", { name }), t("delete"))) await act(target, "delete", () => erase(requestOf(name)));
	};
	return mayAdmin() && [iconButton("edit", t("add.edit", { name }), () => (location.hash = `#/settings/adapter:${name}`)),
		iconButton("remove", t("delete.what", { name }), remove), errorLine(target)];
}

// The configuration's sections, including disabled sections, and the kinds.
const useSections = () => useLoaded(async () => {
	const [{ kinds }, { sections, version }] = await Promise.all([get("kinds"), get("files/sections")]);
	return { kinds: kinds.filter(({ fault }) => !fault).sort(byTitle), sections, version };
}, [state.adapters.length]);

export function AddPage() {
	const { data, error } = useSections();
	const [kind, setKind] = useState("mqtt");
	const [added, setAdded] = useState(null);
	const now = added && state.adapters.find(({ name }) => name === added);
	if (!data) return titled(t("add.title"), card(empty(error ?? "…")));
	const name = freeName(kind, data.sections);
	const choose = ({ target: { value } }) => {
		setKind(value);
		setAdded(null);
	};
	const choices = select({ value: kind, onchange: choose }, data.kinds.map((each) => option({ key: each.name, value: each.name }, titleOf(each))));
	return [
		titled(t("add.title"), div({ class: "card form" },
			label(span(t("add.kind")), choices),
			use(SectionForm, { key: `${kind} ${name}`, kind: data.kinds.find((each) => each.name === kind), name, known: data.sections, onDone: setAdded }),
			now && use(Added, { key: now.name, adapter: now, next: name }))),
		card(row(span(t("add.other")), a({ class: "button", href: fileAddress("config/default.toml") }, icon("file"), "default.toml"))),
	];
}

// The result of adding the last section. The result is shown below the form, not inside, because the form may be
// longer than the screen, and the form is reset for the `next` adapter.
function Added({ adapter: { name, status }, next }) {
	const place = useRef();
	useEffect(() => void place.current?.scrollIntoView({ block: "center" }), [next]);
	return p({ role: "status", class: status === "degraded" ? "problem" : "", ref: place }, strong(name), `: ${word(status)} `,
		a({ href: "#/settings/devices" }, t("settings.devices")));
}

// Return a name that no enabled section uses. A disabled section with the kind's name is reused.
function freeName(kind, sections) {
	const taken = new Set(sections.filter(({ name, is_enabled: isEnabled }) => isEnabled || name !== kind).map(({ name }) => name));
	let name = kind;
	for (let count = 2; taken.has(name); count += 1) name = `${kind}_${count}`;
	return name;
}

export function EditSection({ name }) {
	const { data, error } = useSections();
	const [isDone, setDone] = useState(false);
	const section = data?.sections.find((each) => each.name === name);
	const kind = section && data.kinds.find((each) => each.name === section.kind);
	return [
		a({ class: "back", href: "#/settings/devices" }, icon("back"), t("settings.devices")),
		h1({ tabindex: "-1" }, name),
		!kind ? empty(error ?? (data ? t(section ? "add.in_file" : "add.gone", { name }) : "…")) : div({ class: "card form" }, p({ class: "hint" }, titleOf(kind)),
			use(SectionForm, { key: name, kind, section, version: data.version, onDone: () => setDone(true) }),
			isDone && p({ role: "status" }, t("add.saved"))),
		card(row(span(t("add.other")), a({ class: "button", href: fileAddress("config/default.toml") }, icon("file"), "default.toml"))),
	];
}

const shownAs = ({ type, is_secret: isSecret }, value) => {
	if (value === undefined || isSecret) return "";
	return type === "list" && Array.isArray(value) ? value.join(", ") : String(value);
};

// Return the typed value. Return undefined for an unchanged value, and null to remove the value.
function valueOf(setting, text, stored) {
	const { type, is_secret: isSecret, example, default: preset, description } = setting;
	const typed = text.trim();
	if (isSecret && !typed) return undefined;
	if (typed === shownAs(setting, stored)) return undefined;
	if (!typed) return null;
	if (type === "boolean") return typed === "true";
	if (type === "integer" || type === "number") return Number(typed);
	if (type === "list") return typed.split(",").map((each) => each.trim()).filter(Boolean);
	if (type === "duration" && Number(typed) >= 0) return Number(typed);
	if (!["base_url", "url"].includes(setting.name) || typed.includes("://")) return typed;
	const scheme = /(\w+):\/\//.exec(`${example ?? ""} ${preset ?? ""} ${description ?? ""}`)?.[1] ?? "http";
	return `${scheme}://${typed}`;
}

function SectionForm({ kind, name: preset, section, version, known = [], onDone }) {
	const stored = section?.values ?? {};
	const [name, setName] = useState(section?.name ?? preset);
	const [texts, setTexts] = useState({});
	const [trial, setTrial] = useState(null);
	const target = `section ${section?.name ?? "new"}`;
	const pending = state.pending.get(target) ?? {};
	const textOf = (setting) => texts[setting.name] ?? shownAs(setting, stored[setting.name]);
	const values = () => Object.fromEntries(kind.settings
		.map((setting) => [setting.name, valueOf(setting, textOf(setting), stored[setting.name])])
		.filter(([, value]) => value !== undefined));
	const send = async (event) => {
		event.preventDefault();
		const old = section ?? known.find((each) => each.name === name && !each.is_enabled);
		const given = old && !old.is_enabled ? { ...values(), enabled: true } : values();
		if (await save(target, name, { kind: kind.name, values: given, version, is_new: !old })) onDone(name);
	};
	const tryOut = async (event) => {
		if (!event.target.form.reportValidity()) return;
		setTrial(null);
		setTrial(await act(target, "test", () => post(`${requestOf(name)}/try`, { kind: kind.name, values: values() })) ?? null);
	};
	const field = (setting) => use(SettingField, { key: setting.name, setting, text: textOf(setting), isKept: stored[setting.name] === HIDDEN,
		onType: (text) => setTexts((old) => ({ ...old, [setting.name]: text })) });
	const [usual, rare] = [false, true].map((isRare) => kind.settings.filter((each) => each.is_rare === isRare));
	return form({ class: "form", onsubmit: send },
		usual.map(field),
		!section && label(span(t("add.section")), input({ type: "text", value: name, maxlength: "128", required: true,
			autocapitalize: "off", autocomplete: "off", spellcheck: "false", oninput: ({ target: { value } }) => setName(value) }),
			small({ class: "hint" }, t("add.rule"))),
		rare.length > 0 && details(summary(t("add.more")), div({ class: "form" }, rare.map(field))),
		errorLine(target),
		trial && use(TrialResult, { trial }),
		actions(button({ type: "button", "aria-busy": "test" in pending ? "true" : null, onclick: tryOut }, t("add.test")),
			button({ class: "main", "aria-busy": "save" in pending ? "true" : null }, t(section ? "save" : "add.make"))));
}

function SettingField({ setting, text, isKept, onType }) {
	const { name, type, is_required: isRequired, is_secret: isSecret, default: preset, example, values, min, max, description } = setting;
	const known = t(`add.${name}`, {}, "");
	const title = span(known || plain(name));
	const hint = description && !known && small({ class: "hint", lang: HUB_LANGUAGE }, description);
	const typed = ({ target: { value } }) => onType(value);
	if (type === "table") return p({ class: "hint" }, strong(plain(name)), ` ${t("add.in_file")}`);
	const words = type === "boolean" ? ["true", "false"] : type === "list" ? null : values;
	if (words) {
		const usual = preset === null ? "–" : t("add.default", { value: type === "boolean" ? t(preset ? "yes" : "no") : preset });
		return label(title, select({ value: text, required: isRequired, onchange: typed }, option({ value: "" }, usual),
			words.map((each) => option({ key: each, value: String(each) }, type === "boolean" ? t(each === "true" ? "yes" : "no") : String(each)))), hint);
	}
	const isNumber = type === "integer" || type === "number";
	const sample = isKept ? t("add.kept") : String(preset ?? example ?? /"(\w+:\/\/[^"]+)"/.exec(description)?.[1] ?? "");
	return label(title, input({ type: isSecret ? "password" : isNumber ? "number" : "text", value: text, placeholder: sample, required: isRequired && !isKept,
		min: isNumber && min, max: isNumber && max, step: isNumber && (type === "integer" ? "1" : "any"),
		autocomplete: isSecret ? "new-password" : "off", autocapitalize: "off", spellcheck: "false", oninput: typed }), hint);
}
