// Cards of devices: what each shows and takes, and how they are put into another order.

import { segment } from "./api.js";
import { commandsOf, control, toDevice } from "./controls.js";
import { memo, tags, use, useEffect, useRef, useState } from "./dom.js";
import { cameraStills, isPicture, Trend } from "./pictures.js";
import { flip, isIn, mayWrite, reorder, state } from "./store.js";
import { called, errorLine, iconButton, iconOf, thing } from "./ui.js";
import { attributesOf, isAway, labelOf, nameOf, show, word } from "./values.js";
import { t, time } from "./words.js";

const { a, dd, div, dl, dt, p, small, span } = tags;

const MAX_CONTROLS = 4;
const MAX_READINGS = 3;
const CORNER = ["power", "lock"];
const SAID_OTHERWISE = ["power", "color_mode"]; // by the switch, and by the colour

// The cards of these devices. While they are edited, `list` is the preference that keeps their order.
export const cards = (devices, list = "order") => div({ class: "cards" }, devices.map((device) => use(DeviceCard, {
	key: device.id,
	device,
	pending: state.pending.get(device.id),
	error: state.errors.get(device.id) ?? null,
	mayCommand: mayWrite(),
	list: state.isEditing ? list : null,
	marks: state.isEditing && `${isIn("favourites", device.id)} ${isIn("hidden", device.id)}`,
})));

// The control in the corner and those below it.
export function controls(to, commands, attributes) {
	const corner = commands.find(({ capability }) => CORNER.includes(capability));
	const others = commands.filter((each) => each !== corner).slice(0, MAX_CONTROLS);
	return [corner && control(to, corner, attributes, { isBare: true }), others.map((each) => control(to, each, attributes))];
}

// The first cards stand whole at once, the others by their names; these are filled together once the first are painted.
const FIRST_CARDS = 24;
const unfilled = new Set();
let drawn = 0;

function useFilling() {
	const card = useRef({ isFirst: undefined }).current;
	card.isFirst ??= drawn++ < FIRST_CARDS;
	const [isFull, setFull] = useState(card.isFirst);
	useEffect(() => {
		if (isFull) return undefined;
		const fill = () => setFull(true);
		if (unfilled.size === 0) setTimeout(fillAll);
		unfilled.add(fill);
		return () => unfilled.delete(fill);
	}, []);
	return isFull;
}

function fillAll() {
	drawn = -Infinity; // whoever comes back finds all as it was
	for (const fill of unfilled) fill();
	unfilled.clear();
}

const DeviceCard = memo(({ device, error, mayCommand, list }) => {
	const isFull = useFilling();
	const commands = mayCommand && isFull ? commandsOf(device) : [];
	const [corner, others] = controls(toDevice(device), commands, device.attributes);
	const readings = readingsOf(device, commands);
	const title = a({ class: "title", href: `#/device/${segment(device.id)}` }, called(nameOf(device)), small(summary(device)));
	const look = isAway(device) ? "away" : (device.attributes.power ?? "");
	const control = list ? editing(device, list) : corner;
	return thing({ look, symbol: iconOf(device), title, control, id: device.id },
		isFull && !list && [
			isAway(device) && p({ class: "hint" }, t("away.hint")),
			cameraStills(device),
			readingList(device, readings),
			others,
			device.kind === "Sensor" && use(Trend, { device, readings }),
			errorLine(device.id, error),
		]);
});

// What a device shows beside that which these commands show.
export const readingsOf = (device, commands) => attributesOf(device)
	.filter(([name, value]) => !SAID_OTHERWISE.includes(name) && !isPicture(value) && !commands.some(({ capability }) => capability === name))
	.slice(0, MAX_READINGS);

export const readingList = (device, readings) => readings.length > 0 && dl({ class: "readings" }, readings.map(([name, value]) =>
	div({ key: name }, dt(labelOf(name, device)), dd({ dir: "auto" }, show(name, value, device)))));

// What stands below a device's name: that it is away and since when, else what it does.
export function summary(device) {
	const { power, brightness, lock, state: presence } = device.attributes;
	if (isAway(device)) return t("away", { state: word(presence), time: time(device.last_seen) });
	const parts = [power, lock].filter(Boolean).map(word);
	if (power === "on" && brightness !== undefined) parts.push(show("brightness", brightness));
	return parts.join(" · ") || device.info?.model;
}

// --- another order -------------------------------------------------------------------------------

export function marks(device) {
	const name = nameOf(device);
	const mark = (list, symbol) => iconButton(symbol, t(`${list}.mark`, { name }), () => flip(list, device.id), false,
		{ "aria-pressed": String(isIn(list, device.id)) });
	return span({ class: "buttons marks" }, mark("favourites", "star"), mark("hidden", "hide"));
}

function editing(device, list) {
	const move = (by) => ({ currentTarget }) => {
		const row = [...currentTarget.closest(".cards").children];
		const at = row.indexOf(currentTarget.closest(".card"));
		if (row[at + by]) place(row.map((each) => each.id), at, at + by, list);
	};
	const [back, forth] = [move(-1), move(1)];
	const onkeydown = (event) => {
		const go = { ArrowUp: back, ArrowLeft: back, ArrowDown: forth, ArrowRight: forth }[event.key];
		if (!go) return;
		event.preventDefault();
		go(event);
	};
	const handle = { class: "plain handle", onkeydown, onpointerdown: (event) => drag(event, list) };
	return span({ class: "buttons" }, marks(device), iconButton("drag", t("move", { name: nameOf(device) }), null, false, handle));
}

function place(ids, from, to, list) {
	ids.splice(to, 0, ...ids.splice(from, 1));
	reorder(list, ids);
}

// The card follows the pointer: it takes the place of whichever card of its row the pointer is over.
function drag(event, list) {
	const handle = event.currentTarget;
	const row = handle.closest(".cards");
	event.preventDefault();
	const id = handle.closest(".card").id;
	const end = new AbortController(); // of the document, for a handle that is moved loses the pointer
	const follow = ({ clientX, clientY }) => {
		const over = document.elementsFromPoint(clientX, clientY).find((each) => each.parentNode === row);
		const ids = [...row.children].map((each) => each.id);
		if (over && over.id !== id) place(ids, ids.indexOf(id), ids.indexOf(over.id), list);
	};
	document.addEventListener("pointermove", follow, { signal: end.signal });
	for (const each of ["pointerup", "pointercancel"]) document.addEventListener(each, () => end.abort(), { signal: end.signal });
}
