// Small components that all views use.

import { tags, use, useEffect, useRef, useState } from "./dom.js";
import { icon } from "./icons.js";
import { note, state } from "./store.js";
import { nameOf, word } from "./values.js";
import { t } from "./words.js";

const { button, dd, div, dl, dt, form, h2, header, input, li, ol, p, section, span, strong, time, ul } = tags;

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

// The name of a control, with "unknown" if the control has no value.
export const nameOfControl = (label, isKnown) => (isKnown ? label : `${label}, ${word("unknown")}`);

// The role and state of a switch. A switch without a known state (`isOn` is null) is a plain button.
export const switchState = (isOn) => (isOn === null ? {} : { role: "switch", "aria-checked": String(isOn) });

// A switch that shows the present state. The switch is in its middle position while it waits for the device, or if
// `isOn` is null.
/** @param {any} props */
export const toggle = ({ label, isOn, isPending, isDisabled, onSwitch }) =>
	button({
		type: "button",
		class: "switch",
		...switchState(isOn),
		"aria-label": nameOfControl(label, isOn !== null),
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

// A list of names and values. Empty values are omitted.
export const facts = (entries, look = "") =>
	dl({ class: `facts ${look}` }, entries.map(([name, value]) => value !== null && value !== undefined && value !== "" &&
		div({ key: name }, dt(name), dd(value))));

// The target's last success or last error. An error remains until a person repeats the action or dismisses the error.
export const errorLine = (target, sentence = state.errors.get(target)) =>
	sentence && p({ class: "error", role: "alert" }, span(sentence),
		iconButton("close", t("dismiss"), () => note("errors", target, null)));

export const HUB_LANGUAGE = "en"; // the language of the hub's sentences, for screen readers

// In safe mode, a sentence that explains why the hub runs no automation, and what to do.
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

export const actions = (...buttons) => div({ class: "actions" }, ...buttons);

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
		field.defaultValue = field.value; // from now on, drawing may replace the text
		// a person may have typed another text meanwhile
		if ((await onSend(text)) === true && field.value === field.defaultValue) field.value = field.defaultValue = "";
	};
	return form({ class: "field", onsubmit },
		input({ ref, type, initial, "aria-label": label, placeholder: label, autocomplete: "off", ...more }),
		children, button({ class: "main", disabled: more.disabled }, action));
}

// A text with a button that replaces the text with a field. Escape restores the text.
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
