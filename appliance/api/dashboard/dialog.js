// Modal dialogs, and questions to confirm an action.

import { tags, use, useEffect, useRef } from "./dom.js";
import { changed, state } from "./store.js";
import { actions, Button, Field } from "./ui.js";
import { t } from "./words.js";

const { dialog, p } = tags;

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
			opened.close(); // elements below an open modal dialog cannot get the focus
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

export const question = ({ text, yes, field, close }) => use(Dialog, { key: close, label: text, onClose: () => close(false), content: [
	p(text),
	field && use(Field, { label: field, action: yes, type: "password", isFocused: true, onSend: close }),
	actions(use(Button, { label: t("cancel"), onClick: () => close(false) }),
		!field && use(Button, { label: yes, isMain: true, onClick: () => close(true) })),
] });

let asked = Promise.resolve(false);

// Ask in a dialog, after earlier questions are closed. Return true for yes. If `field`, the label of a text field, is
// given, return the typed text, or false if the text is empty. If `isValid` returns false, the question is obsolete:
// close the dialog and return false.
export function confirm(text, yes, field = null, isValid = () => true) {
	const ask = () => new Promise((resolve) => {
		const close = (answer) => {
			if (state.question?.close !== close) return; // a second answer must not close the next question
			state.question = null;
			changed();
			resolve(answer);
		};
		state.question = { text, yes, field, isValid, close };
		changed();
	});
	asked = asked.then(ask);
	return asked;
}
