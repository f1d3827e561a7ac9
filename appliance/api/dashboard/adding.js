// Sections of adapters: add one from discovery or from the form of its kind, or remove it. The hub checks each change
// before writing it, and starts or stops the section at once.

import { get, put as replace, segment } from "./api.js";
import { fileAddress } from "./editor.js";
import { tags, use, useState } from "./dom.js";
import { icon } from "./icons.js";
import { act, confirm, mayAdmin, state } from "./store.js";
import { actions, Button, card, errorLine, iconButton, row, titled } from "./ui.js";
import { word } from "./values.js";
import { t } from "./words.js";

const { a, form, input, label, option, p, select, span, strong } = tags;

// An address without a scheme gets the one of its kind.
const ADDRESS = { name: "base_url", preset: "192.168.1.50", scheme: "http", isNeeded: true };
const HOST = { name: "host", preset: "192.168.1.50", isNeeded: true };
const USER = [{ name: "username" }, { name: "password", isSecret: true }];

// Kinds with the keys that a section of each needs; the editor has all others.
const KINDS = {
	mqtt: [{ ...HOST, preset: "127.0.0.1" }, { name: "port", preset: "1883", isNumber: true }, ...USER],
	shelly: [ADDRESS, { name: "password", isSecret: true }],
	hue: [{ ...ADDRESS, scheme: "https" }],
	wled: [ADDRESS],
	tasmota_http: [ADDRESS, { name: "password", isSecret: true }],
	elgato_lights: [{ ...ADDRESS, preset: "192.168.1.50:9123" }],
	roku_tv: [{ ...HOST, name: "ip_address" }],
	matter: [{ name: "url", preset: "127.0.0.1:5580/ws", scheme: "ws", isNeeded: true }],
	homewizard: [ADDRESS],
	sonos: [ADDRESS],
	daikin: [ADDRESS],
	fronius: [ADDRESS],
	fritzbox: [{ ...ADDRESS, preset: "fritz.box:49000" }, ...USER],
};

const configOf = async () => {
	const { files } = await get("files");
	return get(`files/${segment(files.find(({ kind }) => kind === "config").path)}`);
};

// Change the configuration; true once the hub has accepted and applied it.
const change = (target, edit) => act(target, "save", async () => {
	const { path, text, version } = await configOf();
	await replace(`files/${segment(path)}`, { text: edit(text), version });
	return true;
});

const appended = (section) => (text) => `${text.trimEnd()}\n\n${section.trim()}\n`;

// The text without the section of this adapter; all else keeps its comments and order.
export function without(text, name) {
	const own = new RegExp(`^\\[{1,2}adapters\\.(?:${name}|"${name}")(?:\\.|\\])`);
	let isOwn = false;
	return text.split("\n").filter((line) => {
		if (/^\s*\[/.test(line)) isOwn = own.test(line.trim());
		return !isOwn;
	}).join("\n");
}

// Add the section that a search has found.
export function AddFound({ section }) {
	const [isDone, setDone] = useState(false);
	const target = `add ${section}`;
	if (isDone) return p({ role: "status" }, t("add.done"));
	return [actions(use(Button, { label: t("add.this"), isMain: true, isBusy: state.pending.has(target), onClick: () => change(target, appended(section)).then((done) => done && setDone(true)) })),
		errorLine(target)];
}

export function AdapterTools({ name }) {
	const target = `remove ${name}`;
	const remove = async () => {
		if (!(await confirm(t("add.confirm_remove", { name }), t("delete")))) return;
		await change(target, (text) => without(text, name));
	};
	return mayAdmin() && [iconButton("remove", t("delete.what", { name }), remove), errorLine(target)];
}

const withScheme = (text, scheme) => (scheme && !text.includes("://") ? `${scheme}://${text}` : text);
const quoted = (value) => JSON.stringify(value);

function sectionOf(kind, name, values) {
	const lines = KINDS[kind].filter(({ name: key }) => values[key]).map(({ name: key, isNumber, scheme }) => `${key} = ${isNumber ? Number(values[key]) : quoted(withScheme(values[key].trim(), scheme))}`);
	return [`[adapters.${name}]`, name !== kind && `type = ${quoted(kind)}`, ...lines].filter(Boolean).join("\n");
}

function freeName(kind) {
	const taken = new Set(state.adapters.map(({ name }) => name));
	let name = kind;
	for (let count = 2; taken.has(name); count += 1) name = `${kind}_${count}`;
	return name;
}

export function AddPage() {
	const [kind, setKind] = useState("mqtt");
	const [values, setValues] = useState({});
	const [name, setName] = useState(freeName("mqtt"));
	const [added, setAdded] = useState(null);
	const target = "add section";
	const choose = (chosen) => {
		setKind(chosen);
		setName(freeName(chosen));
		setValues({});
	};
	const send = async (event) => {
		event.preventDefault();
		if (!(await change(target, appended(sectionOf(kind, name, values))))) return;
		setAdded(name);
		setName(freeName(kind));
		setValues({});
	};
	const field = ({ name: key, preset, isNeeded, isSecret, isNumber }) => label({ key }, span(t(`add.${key}`)),
		input({ type: isSecret ? "password" : isNumber ? "number" : "text", value: values[key] ?? "", placeholder: preset ?? "", required: isNeeded, autocomplete: "off", oninput: ({ target: { value } }) => setValues((old) => ({ ...old, [key]: value })) }));
	const now = added && state.adapters.find((each) => each.name === added);
	return [
		titled(t("add.title"), form({ class: "card form", onsubmit: send },
			label(span(t("add.kind")), select({ value: kind, onchange: ({ target: { value } }) => choose(value) }, Object.keys(KINDS).map((each) => option({ key: each, value: each }, t(`kind.${each}`))))),
			KINDS[kind].map(field),
			label(span(t("add.section")), input({ type: "text", value: name, pattern: "[a-z][a-z0-9_]*", required: true, oninput: ({ target: { value } }) => setName(value) })),
			errorLine(target),
			now && p({ role: "status", class: now.status === "degraded" ? "problem" : "" }, strong(now.name), `: ${word(now.status)}`),
			actions(tags.button({ class: "main", "aria-busy": state.pending.has(target) ? "true" : null }, t("add.make"))))),
		card(row(span(t("add.other")), a({ class: "button", href: fileAddress("config/default.toml") }, icon("file"), "default.toml"))),
	];
}
