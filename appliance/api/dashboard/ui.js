// The small parts of every view.

import { tags, use, useEffect, useRef, useState } from "./dom.js";
import { note, state } from "./store.js";
import { classOf, nameOf, word } from "./values.js";
import { t } from "./words.js";

const { article, button, dd, div, dialog, dl, dt, form, h2, header, input, li, ol, p, path, section, span, strong, svg, textarea, time, ul } = tags;

const PATHS = {
	light: "M9 18h6M10 21h4M8.5 15a6 6 0 1 1 7 0c-.6.5-.9 1-1 1.7h-5c-.1-.7-.4-1.2-1-1.7Z",
	switch: "M12 4v7M7.5 6.5a7 7 0 1 0 9 0",
	plug: "M9 3v5M15 3v5M7 8h10v4a5 5 0 0 1-10 0ZM12 17v4",
	media_player: "M4 6h16v11H4ZM9 21h6",
	sensor: "M10 13.5V5a2 2 0 1 1 4 0v8.5a4 4 0 1 1-4 0ZM12 9v7",
	cover: "M4 4h16M6 4v14M18 4v14M6 8h12M6 12h12M12 12v6",
	climate: "M12 4v16M5 8l14 8M19 8 5 16",
	lock: "M6 11h12v9H6ZM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
	virtual: "M12 3l8 4.5v9L12 21l-8-4.5v-9Z",
	fan: "M12 12c-5-1-6-8-2-9 4 0 3 6 2 9Zm0 0c1-5 8-6 9-2 0 4-6 3-9 2Zm0 0c5 1 6 8 2 9-4 0-3-6-2-9Zm0 0c-1 5-8 6-9 2 0-4 6-3 9-2Z",
	valve: "M4 10h5v6H4ZM15 10h5v6h-5ZM9 13h6M12 13V6M8 6h8",
	siren: "M6 20h12M8 20v-7a4 4 0 0 1 8 0v7M12 3v3M4 7l2 2M20 7l-2 2",
	vacuum: "M12 3a9 9 0 1 0 .01 0ZM12 8a4 4 0 1 0 .01 0ZM4 9h4",
	lawn_mower: "M4 15V9l9-3 7 9ZM7 19a2 2 0 1 0 .01 0M17 19a2 2 0 1 0 .01 0",
	humidifier: "M12 3c4 5 6 8 6 11a6 6 0 0 1-12 0c0-3 2-6 6-11Z",
	water_heater: "M7 3h10v14H7ZM10 21v-4M14 21v-4M12 7c2 2 3 3 3 4.5a3 3 0 0 1-6 0C9 10 10 9 12 7Z",
	alarm_control_panel: "M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6ZM9 12l2 2 4-4",
	image: "M4 5h16v14H4ZM4 16l5-5 4 4 3-3 4 4M15 9h.01",
	camera: "M4 7h4l2-3h4l2 3h4v12H4ZM12 10a3 3 0 1 0 .01 0Z",
	door: "M6 21V3h12v18M4 21h16M14.5 12h.01",
	gauge: "M4 17a8.5 8.5 0 1 1 16 0M12 15l4-5",
	person: "M12 4a4 4 0 1 0 .01 0ZM4 21c0-5 3-8 8-8s8 3 8 8",
	update: "M12 4v11M7 11l5 5 5-5M5 20h14",
	button: "M12 5a7 7 0 1 0 .01 0ZM12 9a3 3 0 1 0 .01 0Z",
	notify: "M6 17V11a6 6 0 0 1 12 0v6l2 2H4ZM10 21h4",
	open: "M6 14l6-6 6 6",
	shut: "M6 10l6 6 6-6",
	stop: "M7 7h10v10H7Z",
	play: "M8 5l11 7-11 7Z",
	pause: "M8 5v14M16 5v14",
	next: "M6 5l9 7-9 7ZM18 5v14",
	previous: "M18 5l-9 7 9 7ZM6 5v14",
	star: "M12 3l2.8 5.7 6.2.9-4.5 4.4 1.1 6.2-5.6-2.9-5.6 2.9 1.1-6.2L3 9.6l6.2-.9Z",
	hide: "M3 12c3-5 6-7 9-7s6 2 9 7c-3 5-6 7-9 7s-6-2-9-7ZM4 4l16 16",
	drag: "M9 5v.01M15 5v.01M9 12v.01M15 12v.01M9 19v.01M15 19v.01",
	search: "M10.5 4a6.5 6.5 0 1 0 .01 0ZM15.5 15.5 21 21",
	wall: "M4 5h16v11H4ZM8 20h8",
	home: "M4 11l8-7 8 7v9H4ZM10 20v-6h4v6",
	automations: "M13 3 5 14h6l-1 7 8-11h-6Z",
	arrange: "M4 5h7v6H4ZM13 5h7v6h-7ZM4 13h7v6H4ZM16.5 13v6M13.5 16h6",
	box: "M4 6h16v5H4ZM4 13h16v5H4ZM7 8.5h.01M7 15.5h.01",
	edit: "M5 19l1-4L16 5l3 3L9 18Z",
	close: "M6 6l12 12M18 6 6 18",
	up: "M12 19V5M6 11l6-6 6 6",
	down: "M12 5v14M6 13l6 6 6-6",
	back: "M15 5l-7 7 7 7",
	remove: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
};

export const icon = (name, instead = "virtual") =>
	svg({ class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, path({ d: PATHS[name] ?? PATHS[instead] }));

// Of a sensor that is no more than that, what it measures first.
const SENSED = { temperature: "sensor", motion: "person", occupancy: "person", presence: "person", contact: "door", water_leak: "humidifier", smoke: "siren", co2: "fan", power_consumption: "plug" };

export function iconOf(device) {
	if (device.kind !== "Sensor" || (PATHS[classOf(device)] && classOf(device) !== "sensor")) return icon(classOf(device));
	const sensed = Object.keys(SENSED).find((name) => name in device.attributes);
	return icon(sensed ? SENSED[sensed] : "gauge");
}

// What waits for the hub, as assistive technology and the style sheet hear of it.
export const busy = (isBusy) => (isBusy ? "true" : null);

export function Button({ label, isBusy, isDisabled, isMain, title, onClick }) {
	const props = { type: "button", dir: "auto", class: isMain && "main", "aria-busy": busy(isBusy), disabled: isDisabled, title };
	return button({ ...props, onclick: () => isBusy || onClick() }, label);
}

export const iconButton = (name, label, onclick, disabled, more = {}) =>
	button({ type: "button", class: "plain", "aria-label": label, title: label, disabled, onclick, ...more }, icon(name));

// A name that somebody gave, in whatever direction it is written.
export const called = (name) => strong({ dir: "auto" }, name);

// A switch that shows what is, and stands in the middle while it waits for the device.
/** @param {any} props */
export const toggle = ({ label, isOn, isPending, isDisabled, onSwitch }) =>
	button({
		type: "button",
		class: "switch",
		role: "switch",
		"aria-checked": String(isOn),
		"aria-label": label,
		"aria-busy": busy(isPending),
		disabled: isDisabled,
		onclick: () => isPending || onSwitch(!isOn),
	}, span());

export const titled = (name, content, aside) =>
	section({ "aria-label": name }, header(h2({ dir: "auto" }, name), aside), content);

export const card = (...content) => div({ class: "card" }, ...content);
export const empty = (text) => p({ class: "empty" }, text);
export const row = (...content) => div({ class: "row" }, ...content);

// A card about one thing: what it is, its switch, and all else.
/** @param {any} props */
export const thing = ({ key, id, look = "", symbol, title, control }, ...content) =>
	article({ key, id, class: `card ${look}` }, header(symbol, title, control), ...content);

// Lines of a time, a word and a text, in a box that scrolls.
export const line = (key, look, at, head, text) => li({ key, class: look }, time(at), strong(head), span(text));
export const scroll = (label, lines) => div({ class: "card scroll", tabindex: "0", role: "group", "aria-label": label },
	lines?.length ? ol({ class: "lines" }, lines) : empty(t("nothing")));

// Names and values; what has none is left out.
export const facts = (entries, look = "") =>
	dl({ class: `facts ${look}` }, entries.map(([name, value]) => value !== null && value !== undefined && value !== "" &&
		div({ key: name }, dt(name), dd(value))));

// What went wrong with the target until it is tried again or put away, and what came of it.
export const errorLine = (target, sentence = state.errors.get(target)) =>
	sentence && p({ class: "error", role: "alert" }, span(sentence),
		iconButton("close", t("dismiss"), () => note("errors", target, null)));

// A text to be copied, all of which is chosen at once.
export const toCopy = (label, text) => textarea({ readonly: true, "aria-label": label, rows: text.trim().split("\n").length,
	value: text, onfocus: ({ target }) => target.select() });

export const HUB = "en"; // the language of the hub's own sentences, for those who hear them

// Why the hub runs no automation, and how to end that.
export const unsafe = () => state.safe && p({ class: "error", lang: HUB }, state.safe);

export function outcomes(target, results = state.outcomes.get(target)) {
	if (!results) return null;
	const done = results.filter((each) => each.status === "ok").length;
	const close = iconButton("close", t("dismiss"), () => note("outcomes", target, null));
	return div({ class: "outcomes", role: "status" },
		p(span(t("outcome", { done, all: results.length })), close),
		ul(results.map(({ target: id, device_id: deviceId = id, status, message }) => li({ class: status },
			span(nameOf(state.devices.get(deviceId) ?? { id: deviceId })), span(message ? `${word(status)}: ${message}` : word(status))))));
}

// A modal dialog; the browser holds the focus inside, and Escape closes it.
export function Dialog({ label, content, onClose }) {
	const ref = useRef();
	// A browser closes it at a second Escape, whatever is said to the first.
	const onclose = () => ref.current.isConnected && (onClose ? onClose() : ref.current.showModal());
	useEffect(() => {
		const before = /** @type {HTMLElement} */ (document.activeElement);
		const opened = ref.current;
		opened.showModal();
		return () => {
			opened.close(); // what lies below a modal dialog takes no focus
			before?.focus?.();
		};
	}, []);
	const oncancel = (event) => {
		event.preventDefault();
		onClose?.();
	};
	return dialog({ ref, "aria-label": label, oncancel, onclose }, content);
}

export const actions = (...buttons) => div({ class: "actions" }, ...buttons);

export const question = ({ text, yes, field, close }) => use(Dialog, { key: close, label: text, onClose: () => close(false), content: [
	p(text),
	field && use(Field, { label: field, action: yes, type: "password", isFocused: true, onSend: close }),
	actions(use(Button, { label: t("cancel"), onClick: () => close(false) }),
		!field && use(Button, { label: yes, isMain: true, onClick: () => close(true) })),
] });

// A form of one field and its button; `onSend` gets the text, trimmed.
export function Field({ label, action, initial, type = "text", canBeEmpty, isFocused, onSend, children, ...more }) {
	const ref = useRef();
	useEffect(() => {
		if (!isFocused) return;
		ref.current.focus();
		ref.current.select();
	}, []);
	const onsubmit = async (event) => {
		event.preventDefault();
		const text = ref.current.value.trim();
		if (!text && !canBeEmpty) return;
		const field = ref.current;
		field.defaultValue = field.value; // from now on it follows what is shown
		if ((await onSend(text)) === true) field.value = field.defaultValue = "";
	};
	return form({ class: "field", onsubmit },
		input({ ref, type, initial, "aria-label": label, placeholder: label, autocomplete: "off", ...more }),
		children, button({ class: "main", disabled: more.disabled }, action));
}

// A text that becomes a field when its button is pressed; Escape leaves it as it was.
export function Editable({ text, level, label, canEdit, onSave }) {
	const [isOpen, setOpen] = useState(false);
	if (!isOpen) {
		return span({ class: "editable" }, tags[level]({ tabindex: "-1", dir: "auto" }, text),
			canEdit && iconButton("edit", label, () => setOpen(true)));
	}
	const onSend = (value) => {
		setOpen(false);
		if (value !== text) onSave(value);
	};
	const onkeydown = (event) => event.key === "Escape" && setOpen(false);
	return use(Field, { label, action: t("save"), initial: text, canBeEmpty: true, isFocused: true, onSend, onkeydown });
}

// What `load` gave last, and the sentence if it failed since; loaded anew when one of `reasons` is another value, and what
// failed once the hub is there again.
export function useLoaded(load, reasons) {
	const [loaded, setLoaded] = useState({});
	const [round, setRound] = useState(0);
	useEffect(() => {
		let isCurrent = true;
		const keep = (value) => isCurrent && setLoaded(value);
		load().then((data) => keep({ data }), ({ message }) => keep((old) => ({ ...old, error: message })));
		return () => (isCurrent = false);
	}, [...reasons, round]);
	const reload = () => setRound((count) => count + 1);
	useEffect(() => void (state.isOnline && loaded.error && reload()), [state.isOnline]);
	return { ...loaded, reload };
}

const REFRESH_MS = 5000;
const SOON_MS = 500;

// As `useLoaded`, asked for again every few seconds while somebody looks and the hub is there, and soon after `sign` is another
// value, twice a second at most: what it said last stays.
export function useRefreshed(load, sign) {
	const way = useRef({ loads: 0, timer: undefined }).current;
	const loaded = useLoaded(() => {
		way.loads += 1;
		return load().finally(() => (way.loads -= 1));
	}, []);
	const refresh = () => document.hidden || !state.isOnline || way.loads || loaded.reload(); // an answer that takes longer is waited for
	useEffect(() => {
		const timer = setInterval(refresh, REFRESH_MS);
		return () => clearInterval(timer);
	}, []);
	useEffect(() => {
		if (way.timer === 0) way.timer = setTimeout(() => {
			way.timer = 0;
			refresh();
		}, SOON_MS);
		way.timer ??= 0; // the first value is no change
	}, [sign]);
	return loaded;
}

const MAX_LOADS = 3;
const waiting = [];
let running = 0;

// Run `work` beside at most two others, so that a page full of pictures leaves room for commands.
export async function inTurn(work) {
	if (running >= MAX_LOADS) await new Promise((go) => waiting.push(go));
	else running += 1;
	try {
		return await work();
	} finally {
		if (waiting.length) waiting.shift()();
		else running -= 1;
	}
}
