// Tiles of devices, readings of sensors, and the sorting of tiles by hand.

import { segment } from "./api.js";
import { memo, tags, use } from "./dom.js";
import { icon } from "./icons.js";
import { lookOf, obviousOf, readingOf, stateOf } from "./appearance.js";
import { tap } from "./commands.js";
import { cameraStills } from "./pictures.js";
import { flip, isIn, reorder } from "./preferences.js";
import { mayWrite, state } from "./store.js";
import { busy, called, errorLine, iconButton, nameOfControl, switchState } from "./ui.js";
import { actionWord, isAway, labelOf, nameOf } from "./values.js";
import { t } from "./words.js";

const { a, article, button, div, small, span } = tags;

export const sheetOf = (device) => `#/sheet/${segment(device.id)}`;

// The tiles of these devices. While a person edits the tiles, their order is saved in the preference `list`.
export const tiles = (devices, { list = "order", isGuarded = false } = {}) => div({ class: "tiles" }, devices.map((device) => use(DeviceTile, {
	key: device.id,
	device,
	isGuarded,
	pending: state.pending.get(device.id),
	error: state.errors.get(device.id) ?? null,
	mayCommand: mayWrite(),
	list: state.isEditing ? list : null,
	marks: state.isEditing && `${isIn("favourites", device.id)} ${isIn("hidden", device.id)}`,
})));

// A tile. A tap on the tile calls `onTap`, if given. A tap on the name opens the sheet.
/** @param {any} props */
export function tile({ key, id, href, name, text, look: { symbol, tone }, isOn, isPending, isDim, label, onTap }, ...more) {
	const drawn = icon(symbol);
	const pressed = isOn === undefined ? {} : switchState(isOn);
	return article({ key, "data-id": id, class: `tile ${tone || "off"} ${isDim ? "away" : ""}` },
		onTap ? button({ type: "button", class: "symbol", "aria-label": nameOfControl(label, isOn !== null), "aria-busy": busy(isPending), onclick: () => isPending || onTap(), ...pressed }, drawn)
			: span({ class: "symbol" }, drawn),
		div({ class: "text" }, a({ class: onTap ? "name" : "name whole", href }, called(name)), text && small({ dir: "auto" }, text)),
		...more);
}

const DeviceTile = memo(({ device, isGuarded, error, mayCommand, list, pending = {} }) => {
	const name = nameOf(device);
	const isDim = isAway(device);
	const obvious = mayCommand && !list && !isDim ? obviousOf(device) : null;
	const isSwitch = obvious?.isOn !== undefined;
	return tile({
		id: device.id, name, isDim,
		href: sheetOf(device),
		text: stateOf(device),
		look: lookOf(device),
		isOn: obvious?.isOn,
		isPending: obvious && pending[obvious.capability] !== undefined,
		label: obvious && `${name}: ${isSwitch ? labelOf(obvious.capability, device) : actionWord(obvious.action)}`,
		onTap: obvious && (() => tap(device, obvious, isGuarded)),
	}, list ? editing(device, list) : cameraStills(device), errorLine(device.id, error));
});

// --- sensors -----------------------------------------------------------------------------------------

// One line of readings. Readings with an alert come first.
export function readings(devices) {
	const RANK = ["bad", "warn", undefined, "away"];
	const found = devices.map((device) => ({ device, ...readingOf(device) })).sort((one, other) => RANK.indexOf(one.tone) - RANK.indexOf(other.tone));
	return found.length > 0 && div({ class: "readings" }, found.map(({ device, text, tone }) => use(Reading, { key: device.id, device, text, tone })));
}

const Reading = memo(({ device, text, tone = "" }) => a({ class: `reading ${tone}`, href: sheetOf(device), title: nameOf(device) },
	!text.includes(nameOf(device)) && span({ class: "hidden" }, `${nameOf(device)}: `), span({ dir: "auto" }, text)));

// --- another order -------------------------------------------------------------------------------

export function marks(device) {
	const name = nameOf(device);
	const mark = (list, symbol) => iconButton(symbol, t(`${list}.mark`, { name }), () => flip(list, device.id), false,
		{ "aria-pressed": String(isIn(list, device.id)) });
	return span({ class: "buttons marks" }, mark("favourites", "star"), mark("hidden", "hide"));
}

function editing(device, list) {
	const move = (by) => ({ currentTarget }) => {
		const row = [...currentTarget.closest(".tiles").children];
		const at = row.indexOf(currentTarget.closest(".tile"));
		if (row[at + by]) place(row.map(idOf), at, at + by, list);
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

/** @type {(tile: any) => string} */
const idOf = ({ dataset }) => dataset.id;

function place(ids, from, to, list) {
	ids.splice(to, 0, ...ids.splice(from, 1));
	reorder(list, ids);
}

// Let the tile follow the pointer. The tile takes the place of the tile under the pointer in the same row.
function drag(event, list) {
	const handle = event.currentTarget;
	const row = handle.closest(".tiles");
	event.preventDefault();
	const id = idOf(handle.closest(".tile"));
	const end = new AbortController(); // listen on the document, because a moved handle loses the pointer
	const follow = ({ clientX, clientY }) => {
		const over = document.elementsFromPoint(clientX, clientY).find((each) => each.parentNode === row);
		const ids = [...row.children].map(idOf);
		if (over && idOf(over) !== id) place(ids, ids.indexOf(id), ids.indexOf(idOf(over)), list);
	};
	document.addEventListener("pointermove", follow, { signal: end.signal });
	for (const each of ["pointerup", "pointercancel"]) document.addEventListener(each, () => end.abort(), { signal: end.signal });
}
