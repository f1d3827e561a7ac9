// The one-line summary of the home. Each part counts devices and links to a list of them.

import { segment } from "./api.js";
import { tags, use } from "./dom.js";
import { icon } from "./icons.js";
import { isAlarm, isLeftOpen, isLow, isUnlocked, lookOf, readingOf } from "./appearance.js";
import { isCamera } from "./pictures.js";
import { inOrder, isIn, orderedRooms } from "./preferences.js";
import { state } from "./store.js";
import { empty, titled } from "./ui.js";
import { readings, sheetOf, tiles } from "./tiles.js";
import { commandsOf } from "./controls.js";
import { isAway, nameOf, numberOf, show, unitOf } from "./values.js";
import { t } from "./words.js";

const { a, div, h1, nav, span } = tags;

const isLit = ({ kind, attributes }) => kind === "Light" && attributes.power === "on";
const isLocked = (device) => device.attributes.lock === "locked";
const OUTSIDE = /outdoor|outside|weather|fridge|freezer|boiler|pool|aquarium/i;
const MAX_INDOORS = 45; // °C; a higher temperature is not that of a room

// Return whether the device measures the air of a room.
function isIndoors(device) {
	const { attributes } = device;
	const unit = unitOf(attributes.temperature?.unit ?? "");
	return numberOf(attributes.temperature) !== null && unit === "°C" && attributes.temperature.value < MAX_INDOORS
		&& !("weather_condition" in attributes) && !OUTSIDE.test(`${device.id} ${nameOf(device)} ${state.rooms.get(device.room_id)?.name ?? ""}`);
}

const mean = (devices) => ({ value: devices.reduce((sum, { attributes }) => sum + attributes.temperature.value, 0) / devices.length, unit: "°C" });
const named = (part) => (devices) => (devices.length === 1 ? t(`summary.${part}_one`, { name: nameOf(devices[0]) })
	: t(`summary.${part}_many`, { count: devices.length }));

// The parts of the summary. Each part has a filter for devices, an appearance, and words. A part without devices is
// hidden.
/** @type {Record<string, any>} */
const PARTS = {
	alarm: { counts: isAlarm, tone: "bad", symbol: "siren", text: (devices) =>
		(devices.length === 1 ? readingOf(devices[0]).text : t("summary.alarm_many", { count: devices.length })) },
	unlocked: { counts: isUnlocked, tone: "bad", symbol: "unlocked", text: named("unlocked") },
	open: { counts: isLeftOpen, tone: "warn", symbol: "ajar", text: named("open") },
	lights: { counts: isLit, tone: "light", symbol: "light", text: named("lit") },
	indoors: { counts: isIndoors, symbol: "sensor", text: (devices) => t("summary.indoors", { value: show("temperature", mean(devices)) }) },
	locked: { counts: isLocked, tone: "good", symbol: "lock", text: (devices) =>
		(devices.length === 1 ? t("summary.locked_one", { name: nameOf(devices[0]) }) : t("summary.locked_many")) },
	away: { counts: isAway, tone: "away", symbol: "away", text: named("away") },
	low: { counts: isLow, tone: "warn", symbol: "battery", text: (devices) => (devices.length === 1
		? t("summary.low_one", { name: nameOf(devices[0]), share: show("battery", devices[0].attributes.battery, devices[0]) })
		: t("summary.low_many", { count: devices.length })) },
};

const EVERYWHERE = ["alarm", "away", "low", "open", "unlocked"]; // these parts include devices that are hidden from the home

function counted(part) {
	const { counts } = PARTS[part];
	return [...state.devices.values()].filter((each) => each.attributes && counts(each) && (part === "away" || !isAway(each))
		&& (EVERYWHERE.includes(part) || !isIn("hidden", each.id)));
}

export function Summary() {
	const found = Object.entries(PARTS).map(([part, look]) => ({ part, ...look, devices: counted(part) })).filter(({ devices }) => devices.length > 0);
	const isAnyUnlocked = found.some(({ part }) => part === "unlocked");
	const shown = found.filter(({ part }) => part !== "locked" || !isAnyUnlocked);
	return shown.length > 0 && nav({ class: "summary", "aria-label": t("summary") }, shown.map(({ part, tone = "", symbol, text, devices }) =>
		a({ key: part, class: tone, href: devices.length === 1 ? sheetOf(devices[0]) : `#/list/${segment(part)}` },
			icon(devices.length === 1 && part === "open" ? lookOf(devices[0]).symbol : symbol), span({ dir: "auto" }, text(devices)))));
}

// The list of the devices that a part of the summary counts.
export function List({ id }) {
	const isOn = id === "on";
	const devices = isOn ? inUse() : Object.hasOwn(PARTS, id) ? counted(id) : [];
	const title = isOn ? t("home.on") : devices.length > 0 ? PARTS[id].text(devices) : t("nothing");
	return [
		a({ class: "back", href: "#/" }, icon("back"), t("nav.home")),
		div({ class: "heading" }, h1({ tabindex: "-1" }, title)),
		devices.length ? byRoom(devices) : empty(t("nothing")),
	];
}

const byRoom = (devices) => [...orderedRooms(), { id: null, name: t("home.unassigned") }].map((room) => {
	const inside = inOrder(devices.filter(({ room_id: id }) => (state.rooms.has(id) ? id : null) === room.id));
	return inside.length > 0 && div({ key: room.id }, titled(room.name, use(Devices, { devices: inside })));
});

// Sensors as lines of readings, followed by all other devices as tiles.
export function Devices({ devices }) {
	if (state.isEditing) return tiles(devices);
	const able = devices.filter(hasTile);
	return [readings(devices.filter((each) => !able.includes(each))), able.length > 0 && tiles(able)];
}

export const hasTile = (device) => commandsOf(device).length > 0 || isCamera(device) || !["Sensor", "Virtual"].includes(device.kind);

// Return the devices that are on or running.
export const inUse = () => inOrder([...state.devices.values()].filter((each) => each.attributes && hasTile(each) && !isAway(each) && !isIn("hidden", each.id)
	&& ["light", "cool", "warm", "play"].includes(lookOf(each).tone) && each.attributes.cover_position === undefined));
