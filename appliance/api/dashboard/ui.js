// The small parts of every view.

import { tags, use, useEffect, useRef, useState } from "./dom.js";
import { note, state } from "./store.js";
import { nameOf, word } from "./values.js";
import { t } from "./words.js";

const { article, button, dd, div, dialog, dl, dt, form, h2, header, input, li, ol, p, path, section, span, strong, svg, time, ul } = tags;

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

export const icon = (name) =>
	svg({ class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, path({ d: PATHS[name] ?? PATHS.virtual }));

// What waits for the hub, as assistive technology and the style sheet hear of it.
export const busy = (isBusy) => (isBusy ? "true" : null);

export function Button({ label, isBusy, isDisabled, isMain, title, onClick }) {
	const props = { type: "button", class: isMain && "main", "aria-busy": busy(isBusy), disabled: isDisabled, title };
	return button({ ...props, onclick: () => isBusy || onClick() }, label);
}

export const iconButton = (name, label, onclick, disabled) =>
	button({ type: "button", class: "plain", "aria-label": label, title: label, disabled, onclick }, icon(name));

// A switch that shows what is, and stands in the middle while it waits for the device.
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
	section({ "aria-label": name }, header(h2(name), aside), content);

export const card = (...content) => div({ class: "card" }, ...content);
export const empty = (text) => p({ class: "empty" }, text);
export const row = (...content) => div({ class: "row" }, ...content);

// A card about one thing: what it is, its switch, and all else.
export const thing = ({ key, look = "", symbol, title, control }, ...content) =>
	article({ key, class: `card ${look}` }, header(icon(symbol), title, control), ...content);

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

export function outcomes(target, results = state.outcomes.get(target)) {
	if (!results) return null;
	const done = results.filter((each) => each.status === "ok").length;
	const close = iconButton("close", t("dismiss"), () => note("outcomes", target, null));
	return div({ class: "outcomes", role: "status" },
		p(span(t("outcome", { done, all: results.length })), close),
		ul(results.map(({ target: id, device_id: deviceId = id, status, message }) => li({ class: status },
			span(nameOf(state.devices.get(deviceId) ?? { id: deviceId })), span(message ?? word(status))))));
}

// A modal dialog; the browser holds the focus inside, and Escape closes it.
export function Dialog({ label, content, onClose }) {
	const ref = useRef();
	useEffect(() => ref.current.showModal(), []);
	const oncancel = (event) => {
		event.preventDefault();
		onClose?.();
	};
	return dialog({ ref, "aria-label": label, oncancel }, content);
}

export const actions = (...buttons) => div({ class: "actions" }, ...buttons);

export const question = ({ text, yes, close }) => use(Dialog, { label: text, onClose: () => close(false), content: [
	p(text),
	actions(use(Button, { label: t("cancel"), onClick: () => close(false) }),
		use(Button, { label: yes, isMain: true, onClick: () => close(true) })),
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
		if ((text || canBeEmpty) && (await onSend(text)) === true) ref.current.value = "";
	};
	return form({ class: "field", onsubmit },
		input({ ref, type, initial, "aria-label": label, placeholder: label, autocomplete: "off", ...more }),
		children, button({ class: "main", disabled: more.disabled }, action));
}

// A text that becomes a field when its button is pressed; Escape leaves it as it was.
export function Editable({ text, level, label, canEdit, onSave }) {
	const [isOpen, setOpen] = useState(false);
	if (!isOpen) {
		return span({ class: "editable" }, tags[level]({ tabindex: "-1" }, text),
			canEdit && iconButton("edit", label, () => setOpen(true)));
	}
	const onSend = (value) => {
		setOpen(false);
		if (value !== text) onSave(value);
	};
	const onkeydown = (event) => event.key === "Escape" && setOpen(false);
	return use(Field, { label, action: t("save"), initial: text, canBeEmpty: true, isFocused: true, onSend, onkeydown });
}

// What `load` gives, or the sentence if it failed; loaded anew when one of `reasons` is another value.
export function useLoaded(load, reasons) {
	const [loaded, setLoaded] = useState({});
	const [round, setRound] = useState(0);
	useEffect(() => {
		let isCurrent = true;
		const keep = (value) => isCurrent && setLoaded(value);
		load().then((data) => keep({ data }), ({ message }) => keep({ error: message }));
		return () => (isCurrent = false);
	}, [...reasons, round]);
	return { ...loaded, reload: () => setRound((count) => count + 1) };
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
