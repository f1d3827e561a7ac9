// Small components that all views use.

import { tags, use, useEffect, useRef, useState } from "./dom.js";
import { icon } from "./icons.js";
import { note, state } from "./store.js";
import { nameOf, word } from "./values.js";
import { t } from "./words.js";

const { button, dd, div, dialog, dl, dt, form, h2, header, input, li, ol, p, section, span, strong, textarea, time, ul } = tags;

// The busy state, for assistive technology and the style sheet.
export const busy = (isBusy) => (isBusy ? "true" : null);

export function Button({ label, isBusy, isDisabled, isMain, title, onClick }) {
	const props = { type: "button", dir: "auto", class: isMain && "main", "aria-busy": busy(isBusy), disabled: isDisabled, title };
	return button({ ...props, onclick: () => isBusy || onClick() }, label);
}

export const iconButton = (name, label, onclick, disabled, more = {}) =>
	button({ type: "button", class: "plain", "aria-label": label, title: label, disabled, onclick, ...more }, icon(name));

// A name. The script of the name determines the text direction.
export const called = (name) => strong({ dir: "auto" }, name);

// A switch that shows the present state. The switch is in its middle position while it waits for the device.
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

// A scrolling list of lines, each with a time, a word, and a text.
export const line = (key, look, at, head, text) => li({ key, class: look }, time(at), strong(head), span(text));
export const scroll = (label, lines) => div({ class: "card scroll", tabindex: "0", role: "group", "aria-label": label },
	lines?.length ? ol({ class: "lines" }, lines) : empty(t("nothing")));

// A list of names and values without the empty values.
export const facts = (entries, look = "") =>
	dl({ class: `facts ${look}` }, entries.map(([name, value]) => value !== null && value !== undefined && value !== "" &&
		div({ key: name }, dt(name), dd(value))));

// The target's last error, until a person repeats the action or dismisses the error, or the target's last success.
export const errorLine = (target, sentence = state.errors.get(target)) =>
	sentence && p({ class: "error", role: "alert" }, span(sentence),
		iconButton("close", t("dismiss"), () => note("errors", target, null)));

// A text to copy. Focus selects the whole text.
export const toCopy = (label, text) => textarea({ readonly: true, "aria-label": label, rows: text.trim().split("\n").length,
	value: text, onfocus: ({ target }) => target.select() });

// A button that copies a text. It also works over plain HTTP, where browsers offer no clipboard.
export function Copy({ text, name }) {
	const [isDone, setDone] = useState(false);
	const copy = async () => {
		if (navigator.clipboard) await navigator.clipboard.writeText(text);
		else copyBySelection(text);
		setDone(true);
		setTimeout(() => setDone(false), 1500);
	};
	return button({ type: "button", class: "plain", title: t("copy.what", { name }),
		"aria-label": t(isDone ? "copy.done" : "copy.what", { name }), onclick: copy }, icon(isDone ? "check" : "copy"));
}

function copyBySelection(text) {
	const place = /** @type {Element} */ (document.querySelector("dialog[open]") ?? document.body);
	const field = place.appendChild(Object.assign(document.createElement("textarea"), { value: text, readOnly: true }));
	field.select();
	document.execCommand("copy");
	field.remove();
}

export const HUB_LANGUAGE = "en"; // of the hub's own sentences, for screen readers

// In safe mode, a sentence with the reason why the hub runs no automation, and with the remedy.
export const safeModeReason = () => state.safe && p({ class: "error", lang: HUB_LANGUAGE }, state.safe);

export function outcomes(target, results = state.outcomes.get(target)) {
	if (!results) return null;
	const done = results.filter((each) => each.status === "ok").length;
	const close = iconButton("close", t("dismiss"), () => note("outcomes", target, null));
	return div({ class: "outcomes", role: "status" },
		p(span(t("outcome", { done, all: results.length })), close),
		ul(results.map(({ target: id, device_id: deviceId = id, status, message }) => li({ class: status },
			span(nameOf(state.devices.get(deviceId) ?? { id: deviceId })), span(message ? `${word(status)}: ${message}` : word(status))))));
}

// A modal dialog. The browser keeps the focus inside the dialog. Escape closes it.
export function Dialog({ label, content, look, onClose }) {
	const ref = useRef();
	// Handle the dialog's closing, because browsers close a dialog at the second Escape, even if the page prevented the
	// first.
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
	const isOutside = ({ target, clientX, clientY }) => {
		const { left, right, top, bottom } = target.getBoundingClientRect();
		return target === ref.current && (clientX < left || clientX > right || clientY < top || clientY > bottom);
	};
	const onpointerdown = (event) => look && isOutside(event) && onClose();
	return dialog({ ref, class: look, "aria-label": label, oncancel, onclose, onpointerdown }, content);
}

export const actions = (...buttons) => div({ class: "actions" }, ...buttons);

export const question = ({ text, yes, field, close }) => use(Dialog, { key: close, label: text, onClose: () => close(false), content: [
	p(text),
	field && use(Field, { label: field, action: yes, type: "password", isFocused: true, onSend: close }),
	actions(use(Button, { label: t("cancel"), onClick: () => close(false) }),
		!field && use(Button, { label: yes, isMain: true, onClick: () => close(true) })),
] });

// A form with one field and a button. `onSend` receives the trimmed text.
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

// A text with a button that replaces the text by a field. Escape restores the text.
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

// Return the last result of `load`, and a sentence if the last attempt failed. Load again after a change of
// `reasons`, and after an outage.
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

// Like `useLoaded`, but load every few seconds while the page is visible and the hub is reachable. Also load soon
// after `sign` changes, at most twice per second. An error does not clear the last result.
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

// Run at most three `work` functions at a time, so that pictures do not delay commands.
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
