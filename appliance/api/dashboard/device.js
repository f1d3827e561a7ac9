// The page of a device, with facts, controls, history, automations, and the last commands.

import { get, post, segment } from "./api.js";
import { moment } from "./calendar.js";
import { toDevice } from "./commands.js";
import { control } from "./controls.js";
import { Copy } from "./copy.js";
import { Alias, renameDevice } from "./device_names.js";
import { tags, use, useEffect, useState } from "./dom.js";
import { icon } from "./icons.js";
import { useLoaded } from "./loading.js";
import { lookOf, stateOf } from "./appearance.js";
import { Paired } from "./pairing.js";
import { History } from "./history.js";
import { panelOf } from "./sheet.js";
import { act, mayAdmin, mayWrite, state } from "./store.js";
import { hasTile } from "./summary.js";
import { marks } from "./tiles.js";
import { card, Editable, empty, facts, Field, titled } from "./ui.js";
import { actionWord, attributesOf, isAway, labelOf, nameOf, numberOf, orderOf, show, word } from "./values.js";
import { t, time } from "./words.js";

const { a, code, details, div, h1, p, small, span, strong, summary } = tags;

const MAX_COMMANDS = 5;
const AUDIT_MS = 5000; // the period for a device that changes constantly
const QUIET_MS = 1000; // the delay after the device's last change

export function Device({ id }) {
	const device = state.devices.get(id);
	const [isOffered, setOffered] = useState(false);
	if (!device) return [h1({ tabindex: "-1" }, t("device.gone")), p(id)];
	const { symbol, tone } = lookOf(device);
	const onSave = async (name) => (await renameDevice(id, name)) && setOffered(Boolean(name) && !device.alias);
	const title = { text: nameOf(device), level: "h1", label: t("rename", { name: nameOf(device) }), canEdit: mayWrite(), onSave };
	return [
		a({ class: "back", href: "#/" }, icon("back"), t("nav.home")),
		div({ class: `heading ${tone || "off"}` }, span({ class: "symbol" }, icon(symbol)), use(Editable, title), marks(device)),
		isOffered && use(Alias, { device, isOffered, onDone: () => setOffered(false) }),
		(isAway(device) || hasTile(device)) && p({ class: isAway(device) ? "problem" : "hint" }, stateOf(device)),
		(isAway(device) || hasTile(device) || state.errors.has(id)) && card(panelOf(device, false)),
		device.metadata?.vendor_specific.virtual && mayAdmin() && use(Simulate, { key: `simulate ${id}`, device }),
		use(History, { key: id, device }),
		use(Happened, { key: `events ${id}`, device }),
		use(Uses, { key: `uses ${id}`, device }),
		titled(t("device.facts"), [factsOf(device), !isOffered && mayWrite()
			&& use(Alias, { key: `alias ${id}`, device, isOffered: false, onDone: () => setOffered(false) }), use(LuaCommands, { device })]),
		mayAdmin() && device.metadata?.vendor_specific.node_id && use(Paired, { key: `paired ${id}`, device }),
	];
}

// Controls for a virtual device. The controls set values without commands, and send events.
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
	const copied = (text, name) => text && span({ class: "copied" }, code(text), use(Copy, { text, name: t(`fact.${name}`) }));
	const known = {
		alias: copied(device.alias, "alias"), id: copied(device.id, "id"),
		manufacturer, model, firmware, serial, area, parent, room,
		updated: time(device.updated_at), seen: time(device.last_seen),
	};
	return facts(Object.entries(known).map(([name, value]) => [t(`fact.${name}`), value]), "card");
}

function asLua(value) {
	if (value?.constructor !== Object) return JSON.stringify(value);
	return `{ ${Object.entries(value).map(([name, each]) => `${name} = ${asLua(each)}`).join(", ")} }`;
}

// The device's commands as Lua code, each with an accepted value.
function LuaCommands({ device }) {
	const { id, alias, attributes, commands = [] } = device;
	const lines = commands.flatMap(({ capability, actions, schema }) => actions.filter((action) => action !== "get").map((action) => {
		const example = schema.values?.[0] ?? numberOf(attributes[capability]) ?? schema.min ?? attributes[capability] ?? 1;
		const value = ["set", "increase", "decrease"].includes(action) ? `, value = ${asLua(schema.type === "boolean" ? true : example)}` : "";
		const text = `ctx:command("${alias ?? id}", { capability = "${capability}", action = "${action}"${value} })`;
		return div({ key: `${capability} ${action}`, class: "row" }, span(code(text), rangeOf(schema, action)), use(Copy, { text, name: actionWord(action) }));
	}));
	return lines.length > 0 && details({ class: "card" }, summary(t("device.lua")), lines);
}

function rangeOf({ values = [], min, max, unit }, action) {
	if (action !== "set") return null;
	const text = values.length ? values.join(" | ") : min !== undefined ? `${min} … ${max}${unit ? ` ${unit}` : ""}` : "";
	return text && small({ class: "range" }, text);
}

// Reload data when the device changes: after the first change, then at most once per period, and after the last
// change.
function useChanges({ updated_at: at }) {
	const [rested, setRested] = useState(at);
	useEffect(() => {
		const timer = setTimeout(() => setRested(at), QUIET_MS);
		return () => clearTimeout(timer);
	}, [at]);
	return [Math.floor(Number(new Date(at)) / AUDIT_MS), rested];
}

const MAX_HAPPENED = 12;
const MAX_STATES = 200; // maximum number of states to search for changes

// The device's last changes, without measurements, and its events since the page was opened. The hub does not
// store events.
function Happened({ device }) {
	const { id } = device;
	const { data } = useLoaded(() => get(`devices/${segment(id)}/history?limit=${MAX_STATES}`), useChanges(device));
	const entries = data?.entries ?? [];
	const changes = entries.slice(0, -1).flatMap(({ observed_at: when, device: { attributes } }, index) => {
		const before = entries[index + 1].device.attributes;
		return Object.entries(attributes).filter(([name, value]) => (typeof value === "boolean" || numberOf(value) === null)
			&& JSON.stringify(value) !== JSON.stringify(before[name]))
			.map(([name, value]) => ({ when: Date.parse(when), text: name === "state" ? word(value) : `${labelOf(name, device)}: ${show(name, value, device)}` }));
	});
	const events = state.events.filter((each) => each.type === "device.event" && each.id === id).map(({ at: when, event }) => ({ when, text: word(event) }));
	const found = [...events, ...changes].sort((one, other) => other.when - one.when).slice(0, MAX_HAPPENED);
	return found.length > 0 && titled(t("device.events"), card(found.map(({ when, text }, key) => p({ key },
		`${moment(new Date(when))} · `, strong({ dir: "auto" }, text)))));
}

// The automations and scenes whose files name the device, and the last commands to the device.
function Uses({ device }) {
	const uses = useLoaded(() => get(`devices/${segment(device.id)}/uses`), []).data;
	const audit = useLoaded(() => get(`audit/commands?device_id=${segment(device.id)}&limit=${MAX_COMMANDS}`),
		[...useChanges(device), state.pending.has(device.id)]).data;
	const commands = audit?.entries ?? [];
	const users = (kind) => (uses?.[kind] ?? []).map((id) =>
		p({ key: `${kind} ${id}` }, a({ href: kind === "automations" ? `#/automations/${segment(id)}` : "#/" },
			state[kind].get(id)?.name ?? id), ` · ${t(`source.${kind.slice(0, -1)}`)}`));
	const told = [...users("automations"), ...users("scenes"), ...commands.map((entry, at) =>
		p({ key: at }, `${time(entry.recorded_at)} · `, strong(sourceOf(entry.source)), ` · ${commandText(entry, device)}`))];
	return titled(t("device.uses"), card(told.length ? told : empty(t("device.unused"))));
}

function sourceOf(source) {
	const [kind, id] = source.split(/:(.*)/s);
	return state[`${kind}s`]?.get?.(id)?.name ?? t(`source.${kind}`, {}, source);
}

const commandText = ({ command, status, message }, device) =>
	`${orderOf(command, device)}${status === "ok" ? "" : ` – ${message ?? word(status)}`}`;
