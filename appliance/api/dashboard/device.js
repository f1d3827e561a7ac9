// One device: its name and facts, what it shows and takes, its history, who uses it and who commanded it last.

import { get, post, segment } from "./api.js";
import { Chart } from "./chart.js";
import { marks, summary as saying } from "./cards.js";
import { commandsOf, control, toDevice } from "./controls.js";
import { tags, use, useState } from "./dom.js";
import { stills } from "./still.js";
import { act, mayAdmin, mayWrite, put, state } from "./store.js";
import { card, Editable, empty, errorLine, facts, Field, icon, iconOf, LATE, Late, line, scroll, titled, useLoaded } from "./ui.js";
import { actionWord, attributesOf, isAway, labelOf, nameOf, show, word } from "./values.js";
import { t, time } from "./words.js";

const { a, button, dd, details, div, dl, dt, h1, p, span, strong, summary } = tags;

const PERIODS = { hour: 3_600_000, day: 86_400_000, month: 30 * 86_400_000 };
const MAX_ROWS = 200;
const MAX_COMMANDS = 5;

export function Device({ id }) {
	const device = state.devices.get(id);
	if (!device) return [h1({ tabindex: "-1" }, t("device.gone")), p(id)];
	const to = toDevice(device);
	const onSave = (name) =>
		act(id, "name", async () => put("devices", await post(`${to.path}/name`, { name: name || null })));
	const commands = mayWrite() ? commandsOf(device) : [];
	const title = { text: nameOf(device), level: "h1", label: t("rename", { name: nameOf(device) }), canEdit: mayWrite(), onSave };
	return [
		a({ class: "back", href: "#/" }, icon("back"), t("nav.home")),
		div({ class: "heading" }, iconOf(device), use(Editable, title), marks(device)),
		isAway(device) && p({ class: "hint" }, `${saying(device)} ${t("away.hint")}`),
		errorLine(id),
		stills(device),
		commands.length > 0 && card(commands.map((each) => control(to, each, device.attributes))),
		device.metadata?.vendor_specific.virtual && mayAdmin() && use(Simulate, { key: `simulate ${id}`, device }),
		use(History, { key: id, device }),
		use(Uses, { key: `uses ${id}`, device }),
		titled(t("device.facts"), factsOf(device)),
		mayAdmin() && device.metadata?.vendor_specific.node_id && use(Late, { key: `paired ${id}`, load: LATE.pairing, part: "Paired", device }),
	];
}

// What a virtual device shows and takes no command for, to be moved by hand; and what may happen at it.
function Simulate({ device }) {
	const catalog = useLoaded(() => get("capabilities"), []).data?.capabilities ?? [];
	const simulate = `adapters/${segment(device.metadata.source)}/operations/observe`;
	const to = { ...toDevice(device), simulate };
	const taken = (device.commands ?? []).filter(({ actions }) => actions.some((each) => !["get", "reset"].includes(each)))
		.map(({ capability }) => capability);
	const schemas = new Map(catalog.map(({ key, schema }) => [key, schema]));
	const shown = attributesOf(device).filter(([name]) => !taken.includes(name));
	const happen = (event) => act(device.id, "event", () => post(simulate, { device_id: device.id, event }));
	return titled(t("simulate"), card(
		shown.map(([name, value]) => movable(name) && control(to, { capability: name, actions: ["set"], schema: schemaOf(name, value) }, device.attributes)),
		div({ class: "control" }, span({ class: "label" }, t("simulate.event")),
			use(Field, { key: "event", label: t("simulate.event"), action: t("simulate.send"), initial: "single", onSend: happen }))));

	function movable(name) {
		return schemas.has(name) || name === "presence";
	}

	function schemaOf(name, value) {
		const schema = schemas.get(name) ?? { type: "boolean" };
		return typeof value?.value === "number" ? { ...schema, type: "quantity" } : schema;
	}
}

function factsOf(device) {
	const { manufacturer, model, firmware, serial, area, parent_id: parent } = device.info ?? {};
	const room = state.rooms.get(device.room_id)?.name ?? t("home.unassigned");
	const known = {
		manufacturer, model, firmware, serial, area, parent, room,
		updated: time(device.updated_at), seen: time(device.last_seen), id: device.id,
	};
	return facts(Object.entries(known).map(([name, value]) => [t(`fact.${name}`), value]), "card");
}

const pressed = (isPressed, look, label, onclick) =>
	button({ key: label, type: "button", class: look, "aria-pressed": String(isPressed), onclick }, label);

function History({ device }) {
	const attributes = attributesOf(device);
	const [attribute, setAttribute] = useState(attributes[0]?.[0]);
	const [period, setPeriod] = useState("day");
	if (!attribute) return null;
	return titled(t("device.history"), card(
		dl({ class: "facts" }, attributes.map(([name, value]) => div({ key: name, class: name === attribute && "chosen" },
			dt(pressed(name === attribute, "link", labelOf(name, device), () => setAttribute(name))), dd(show(name, value))))),
		div({ class: "tabs", role: "group", "aria-label": t("device.history") },
			Object.keys(PERIODS).map((each) => pressed(each === period, "", t(`period.${each}`), () => setPeriod(each)))),
		use(Picture, { key: `${attribute} ${period}`, device, attribute, period })));
}

function Picture({ device, attribute, period }) {
	const [until] = useState(Date.now());
	const from = until - PERIODS[period];
	const query = new URLSearchParams({ limit: "1000", start: new Date(from).toISOString() });
	const { data, error } = useLoaded(() => get(`devices/${segment(device.id)}/history/${segment(attribute)}?${query}`), []);
	const entries = data?.entries;
	if (!entries?.length) return p({ class: "empty picture" }, error ?? (entries && t("device.no_history")));
	const label = t("device.picture", { attribute: labelOf(attribute, device), count: entries.length });
	const lines = entries.slice(0, MAX_ROWS).map((entry, at) => line(at, "", time(entry.observed_at), show(attribute, entry.value)));
	return [
		use(Chart, { attribute, entries, from, until, label }),
		details(summary(t("device.table")), scroll(label, lines)),
	];
}

// Automations and scenes whose files name the device, and the last commands to it.
function Uses({ device }) {
	const uses = useLoaded(() => get(`devices/${segment(device.id)}/uses`), []).data;
	const audit = useLoaded(() => get("audit/commands?limit=1000"), [device.updated_at]).data;
	const commands = audit?.entries.filter((entry) => entry.device_id === device.id).slice(0, MAX_COMMANDS) ?? [];
	const users = (kind) => (uses?.[kind] ?? []).map((id) =>
		p({ key: `${kind} ${id}` }, a({ href: kind === "automations" ? `#/automations/${segment(id)}` : "#/" },
			state[kind].get(id)?.name ?? id), ` · ${t(`source.${kind.slice(0, -1)}`)}`));
	const told = [...users("automations"), ...users("scenes"), ...commands.map((entry, at) =>
		p({ key: at }, `${time(entry.recorded_at)} · `, strong(sourceOf(entry.source)), ` · ${commandText(entry)}`))];
	return titled(t("device.uses"), card(told.length ? told : empty(t("device.unused"))));
}

function sourceOf(source) {
	const [kind, id] = source.split(/:(.*)/s);
	return state[`${kind}s`]?.get?.(id)?.name ?? t(`source.${kind}`, {}, source);
}

function commandText({ command: { capability, action, value = null }, status, message }) {
	const wanted = value === null ? "" : ` ${show(capability, value)}`;
	return `${labelOf(capability)}: ${actionWord(action)}${wanted}${status === "ok" ? "" : ` – ${message ?? word(status)}`}`;
}
