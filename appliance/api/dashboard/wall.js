// The panel on a wall: the time, the summary, and large tiles by room. The panel dims after a while.

import { weekdayAndDate } from "./calendar.js";
import { tags, use, useEffect, useState } from "./dom.js";
import { icon } from "./icons.js";
import { columnsOf, Scenes } from "./home.js";
import { favourites, inOrder, isIn, orderedRooms } from "./preferences.js";
import { state } from "./store.js";
import { hasTile, Summary } from "./summary.js";
import { tiles } from "./tiles.js";
import { empty, iconButton } from "./ui.js";
import { show } from "./values.js";
import { clock, t } from "./words.js";

const { a, div, h1, h2, header, p, section, span, strong } = tags;

const DIM_MS = 60_000;
const TICK_MS = 1000;
const MINUTE_MS = 60_000;

const minute = () => Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS; // draw at most once per minute

export function Wall() {
	const [now, setNow] = useState(minute());
	const [isDim, setDim] = useState(false);
	useEffect(() => {
		let touched = Date.now();
		let lock = null;
		let isGone = false;
		const wake = () => {
			touched = Date.now();
			setDim(false);
		};
		const keep = (held) => {
			lock = held;
			if (isGone) held.release();
		};
		const hold = () => document.hidden || navigator.wakeLock?.request("screen").then(keep, () => {}); // available only over HTTPS
		const tick = () => {
			setNow(minute());
			setDim(Date.now() - touched > DIM_MS);
		};
		const timer = setInterval(tick, TICK_MS);
		const events = ["pointerdown", "keydown", "focusin"];
		events.forEach((each) => addEventListener(each, wake, true));
		document.addEventListener("visibilitychange", hold);
		hold();
		return () => {
			isGone = true;
			clearInterval(timer);
			events.forEach((each) => removeEventListener(each, wake, true));
			document.removeEventListener("visibilitychange", hold);
			lock?.release();
		};
	}, []);
	const chosen = favourites();
	const able = (device) => !isIn("hidden", device.id) && hasTile(device);
	const shown = chosen.length ? chosen : inOrder([...state.devices.values()].filter(able));
	const fill = () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen?.());
	return div({ class: isDim ? "panel dim" : "panel" },
		header(h1({ tabindex: "-1" }, clock(now)), p({ class: "today" }, weekdayAndDate(now), outdoors()), span({ class: "buttons" },
			iconButton("wall", t("wall.fill"), fill),
			a({ class: "plain", href: "#/", "aria-label": t("nav.home"), title: t("nav.home") }, icon("close")))),
		use(Summary),
		state.scenes.size > 0 && use(Scenes),
		shown.length ? div({ class: "columns" }, columnsOf(inRooms(shown), 28).map((column, at) => div({ key: at, class: "column" }, column)))
			: empty(t("home.empty")));
}

// The outdoor temperature, if a device reports it.
function outdoors() {
	const found = [...state.devices.values()].find(({ attributes }) => "temperature_outdoor" in attributes);
	return found && strong(` · ${t("attribute.temperature_outdoor")} ${show("temperature_outdoor", found.attributes.temperature_outdoor, found)}`);
}

// One section per room. Favourites keep their order.
function inRooms(devices) {
	const rooms = [...orderedRooms(), { id: undefined, name: t("home.unassigned") }];
	const roomOf = ({ room_id: id }) => (state.rooms.has(id) ? id : undefined);
	const parts = rooms.map(({ id, name }) => ({ id, name, inside: devices.filter((device) => roomOf(device) === id) })).filter(({ inside }) => inside.length > 0);
	return parts.map(({ id, name, inside }) => ({
		height: 1 + Math.ceil(inside.length / 2),
		drawn: section({ key: `room ${id}`, "aria-label": name }, parts.length > 1 && header(h2({ dir: "auto" }, name)),
			tiles(inside, { list: "favourites", isGuarded: true })),
	}));
}
