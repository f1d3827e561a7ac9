// Texts to copy.

import { tags, useState } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./words.js";

const { button, textarea } = tags;

// A read-only field with a text to copy. Focusing the field selects the whole text.
export const toCopy = (label, text) => textarea({ readonly: true, "aria-label": label, rows: text.trim().split("\n").length,
	value: text, onfocus: ({ target }) => target.select() });

// A button that copies text to the clipboard. The button also works over plain HTTP, where browsers offer no
// clipboard.
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
