// The name and the short id of a device.

import { post, segment } from "./api.js";
import { tags, use } from "./dom.js";
import { act, put, state } from "./store.js";
import { card, errorLine, Field } from "./ui.js";
import { nameOf } from "./values.js";
import { t } from "./words.js";

const { p } = tags;

const MAX_ID = 60;

export const renameDevice = (id, name) => act(id, "name", async () => {
	put("devices", await post(`devices/${segment(id)}/name`, { name: name || null }));
	return true;
});

// The form for a device's short id. The form also opens after a device is renamed.
export function Alias({ device, isOffered, onDone }) {
	const { id, alias } = device;
	const target = `alias ${id}`;
	const taken = new Set([...state.devices.values()].filter((each) => each.id !== id).flatMap((each) => [each.alias, each.id]));
	const save = (text) => act(target, "set", async () => {
		put("devices", { alias: undefined, ...await post(`devices/${segment(id)}/alias`, { alias: text || null }) });
		onDone();
	});
	return card(isOffered && p(t("alias.offer")),
		use(Field, { key: String(isOffered), label: t("fact.alias"), action: t("save"),
			initial: alias ?? (isOffered ? idFor(nameOf(device), taken) : ""), canBeEmpty: true, maxlength: "64",
			title: t("alias.rule"), autocapitalize: "off", spellcheck: "false", onSend: save }),
		p({ class: "hint" }, t("alias.rule")),
		errorLine(target));
}

// Return a new id: the name in lower-case letters, digits, and underscores, with a number if the id already exists.
export function idFor(name, taken) {
	const letters = name.normalize("NFKD").toLowerCase().replace(/ß/g, "ss").replace(/[\u0300-\u036f]/g, "");
	const stem = letters.replace(/[^a-z0-9]+/g, "_").replace(/^_|_$/g, "").slice(0, MAX_ID) || "place";
	let id = stem;
	for (let count = 2; taken.has(id); count += 1) id = `${stem}_${count}`;
	return id;
}
