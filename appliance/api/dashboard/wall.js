// The panel on a wall: large switches of the favourites over the whole screen, which grows dark by itself.

import { cards } from "./cards.js";
import { commandsOf } from "./controls.js";
import { tags, use, useEffect, useState } from "./dom.js";
import { Scenes } from "./home.js";
import { favourites, inOrder, isIn, state } from "./store.js";
import { empty, icon, iconButton } from "./ui.js";
import { clock, t } from "./words.js";

const { a, div, h1, header, span } = tags;

const DIM_MS = 60_000;
const TICK_MS = 1000;
const MINUTE_MS = 60_000;

const minute = () => Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS; // nothing is drawn anew within one

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
		const hold = () => document.hidden || navigator.wakeLock?.request("screen").then(keep, () => {}); // over https alone
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
	const able = (device) => !isIn("hidden", device.id) && commandsOf(device).length > 0;
	const shown = chosen.length ? chosen : inOrder([...state.devices.values()].filter(able));
	const fill = () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen?.());
	return div({ class: isDim ? "panel dim" : "panel" },
		header(h1({ tabindex: "-1" }, clock(now)), span({ class: "buttons" },
			iconButton("wall", t("wall.fill"), fill),
			a({ class: "plain", href: "#/", "aria-label": t("nav.home"), title: t("nav.home") }, icon("close")))),
		state.scenes.size > 0 && use(Scenes),
		shown.length ? cards(shown, "favourites") : empty(t("home.empty")));
}
