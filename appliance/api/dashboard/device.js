// The pages of one device and of one room. The device's: its name and facts, what it shows and takes, its history, who uses it and who commanded it last.

import { get, post, segment } from "./api.js";
import { control, toDevice } from "./controls.js";
import { tags, use } from "./dom.js";
import { icon } from "./icons.js";
import { roomResults, roomSwitch } from "./home.js";
import { Paired } from "./pairing.js";
import { Day, History } from "./past.js";
import { lookOf, stateOf } from "./look.js";
import { panelOf } from "./sheet.js";
import { Devices, hasTile } from "./summary.js";
import { marks } from "./tiles.js";
import { act, inOrder, mayAdmin, mayWrite, put, state } from "./store.js";
import { card, Editable, empty, facts, Field, titled, useLoaded } from "./ui.js";
import { attributesOf, isAway, nameOf, numberOf, orderOf, word } from "./values.js";
import { t, time } from "./words.js";

const { a, div, h1, p, span, strong } = tags;

const MAX_COMMANDS = 5;
const AUDIT_MS = 5000; // of a device that changes all the time
const MAX_SERIES = 12;

export function Device({ id }) {
	const device = state.devices.get(id);
	if (!device) return [h1({ tabindex: "-1" }, t("device.gone")), p(id)];
	const to = toDevice(device);
	const { symbol, tone } = lookOf(device);
	const onSave = (name) =>
		act(id, "name", async () => put("devices", await post(`${to.path}/name`, { name: name || null })));
	const title = { text: nameOf(device), level: "h1", label: t("rename", { name: nameOf(device) }), canEdit: mayWrite(), onSave };
	return [
		a({ class: "back", href: "#/" }, icon("back"), t("nav.home")),
		div({ class: `heading ${tone || "off"}` }, span({ class: "symbol" }, icon(symbol)), use(Editable, title), marks(device)),
		(isAway(device) || hasTile(device)) && p({ class: isAway(device) ? "problem" : "hint" }, stateOf(device)),
		(isAway(device) || hasTile(device) || state.errors.has(id)) && card(panelOf(device, false)),
		device.metadata?.vendor_specific.virtual && mayAdmin() && use(Simulate, { key: `simulate ${id}`, device }),
		use(History, { key: id, device }),
		use(Uses, { key: `uses ${id}`, device }),
		titled(t("device.facts"), factsOf(device)),
		mayAdmin() && device.metadata?.vendor_specific.node_id && use(Paired, { key: `paired ${id}`, device }),
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

// Automations and scenes whose files name the device, and the last commands to it.
function Uses({ device }) {
	const uses = useLoaded(() => get(`devices/${segment(device.id)}/uses`), []).data;
	const period = Math.floor(Number(new Date(device.updated_at)) / AUDIT_MS);
	const audit = useLoaded(() => get(`audit/commands?device_id=${segment(device.id)}&limit=${MAX_COMMANDS}`), [period, state.pending.has(device.id)]).data;
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

// A room: its devices, and what they measured over a day.
export function RoomPage({ id }) {
	const room = state.rooms.get(id);
	if (!room) return [h1({ tabindex: "-1" }, t("room.gone")), p(id)];
	const devices = inOrder([...state.devices.values()].filter((device) => device.room_id === id));
	const measured = devices.flatMap((device) => attributesOf(device)
		.filter(([attribute, value]) => typeof value !== "boolean" && numberOf(value) !== null
			&& !device.commands?.some(({ capability }) => capability === attribute))
		.map(([attribute]) => ({ device, attribute }))).slice(0, MAX_SERIES);
	return [
		a({ class: "back", href: "#/" }, icon("back"), t("nav.home")),
		div({ class: "heading" }, h1({ tabindex: "-1", dir: "auto", class: "title" }, room.name), roomSwitch(room, devices)),
		roomResults(id),
		devices.length ? use(Devices, { devices }) : empty(t("nothing")),
		measured.length > 0 && use(Day, { key: measured.map(({ device, attribute }) => device.id + attribute).join(), measured }),
	];
}
