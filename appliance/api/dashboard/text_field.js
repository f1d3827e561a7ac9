// The editor's text field, with colours, errors in the margin, completion of the home's names, and the state of the
// device under the pointer.

import { get, post } from "./api.js";
import { complete } from "./completion.js";
import { state } from "./store.js";
import { attributesOf, labelOf, nameOf, show } from "./values.js";
import {
	autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap, completionKeymap, defaultKeymap, drawSelection, EditorState, EditorView,
	highlightActiveLine, HighlightStyle, highlightSelectionMatches, history, historyKeymap, hoverTooltip, indentOnInput, indentUnit, keymap,
	lineNumbers, linter, lintGutter, lintKeymap, lua, search, searchKeymap, StreamLanguage, syntaxHighlighting, tags, toml, tooltips,
} from "./vendor/codemirror.js";

const CHECK_DELAY_MS = 500;

const COLORS = HighlightStyle.define([
	{ tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
	{ tag: tags.string, color: "var(--good)" },
	{ tag: [tags.number, tags.bool, tags.atom], color: "var(--cool)" },
	{ tag: [tags.keyword, tags.heading], color: "var(--play)", fontWeight: "600" },
	{ tag: [tags.propertyName, tags.definition(tags.variableName)], color: "var(--light)" },
]);

const THEME = EditorView.theme({
	"&": { color: "var(--text)", backgroundColor: "var(--card)", fontSize: ".875rem" },
	"&.cm-focused": { outline: "3px solid var(--accent)" },
	".cm-scroller": { fontFamily: "ui-monospace, monospace", lineHeight: "1.5", minHeight: "16rem" },
	".cm-content": { caretColor: "var(--text)", padding: "12px 0" },
	".cm-gutters": { backgroundColor: "var(--card)", color: "var(--soft)", border: "0" },
	".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 8%, transparent)" },
	".cm-cursor": { borderLeftColor: "var(--text)" },
	"&.cm-focused .cm-selectionBackground, .cm-selectionBackground, ::selection": { backgroundColor: "color-mix(in srgb, var(--accent) 30%, transparent)" },
	".cm-tooltip, .cm-panels": { backgroundColor: "var(--back)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "8px" },
	".cm-tooltip": { maxWidth: "min(30rem, 90vw)" },
	".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
	".cm-state": { padding: "8px 12px", fontFamily: "system-ui, sans-serif" },
	".cm-diagnostic": { whiteSpace: "pre-wrap" },
	// Replace the library's icons, because they are data URLs, which the page's policy forbids.
	".cm-lint-marker-error": { content: "normal", backgroundColor: "var(--bad)", borderRadius: "50%" },
	".cm-lint-marker-warning": { content: "normal", backgroundColor: "var(--warn)", clipPath: "polygon(50% 0, 100% 100%, 0 100%)" },
	".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
	".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn)" },
	".cm-button, .cm-textfield": { font: "inherit", color: "inherit", backgroundImage: "none", backgroundColor: "var(--card)",
		border: "1px solid var(--edge)", borderRadius: "8px" },
});

// Fill the element `place` with a field for a file's text. `onType` receives each new text, and `onFaults` receives
// the marks in the margin.
export async function write(place, path, text, { onType, onSave, onFaults }) {
	const names = get("completions").catch(() => null); // without names, there are no completions
	const root = place.shadowRoot ?? place.attachShadow({ mode: "open" }); // the page's policy allows styles in a shadow tree
	root.replaceChildren();
	const isLua = path.endsWith(".lua");
	const run = () => {
		onSave();
		return true;
	};
	return new EditorView({
		parent: root,
		root,
		state: EditorState.create({
			doc: text,
			extensions: [
				lineNumbers(), lintGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(),
				highlightActiveLine(), highlightSelectionMatches(),
				indentUnit.of(isLua ? "  " : ""), EditorView.lineWrapping, THEME, syntaxHighlighting(COLORS), tooltips({ parent: root }), search({ top: true }),
				StreamLanguage.define(isLua ? lua : toml),
				autocompletion({ override: [isLua ? async (context) => complete(context, await names) : () => null] }),
				linter((view) => faultsOf(view, path, onFaults), { delay: CHECK_DELAY_MS }),
				hoverTooltip((view, at) => stateAt(view, at, place)),
				EditorView.domEventHandlers({ beforeinput: replaceSelection }),
				EditorView.contentAttributes.of({ "aria-label": path, spellcheck: "false", autocapitalize: "off", autocorrect: "off" }),
				EditorView.updateListener.of((update) => update.docChanged && onType(update.state.doc.toString())),
				keymap.of([{ key: "Mod-s", run }, ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
			],
		}),
	});
}

// Replace the selection. Otherwise, the browser replaces a whole line itself and adds inline styles, and the page's
// policy forbids inline styles.
function replaceSelection(event, view) {
	const { from, to } = view.state.selection.main, typed = event.data;
	if (event.inputType !== "insertText" || !typed || view.composing || from === to) return false;
	event.preventDefault();
	const insert = () => view.state.update(view.state.replaceSelection(typed), { userEvent: "input.type", scrollIntoView: true });
	const isHandled = view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, typed, insert)); // such as a quote around a word
	if (!isHandled) view.dispatch(insert());
	return true;
}

// Return the hub's errors and warnings. Return an empty list if the hub does not answer.
async function faultsOf(view, path, onFaults) {
	const { doc } = view.state;
	const { errors, warnings } = await post("files/check", { path, text: doc.toString() }).catch(() => ({ errors: [], warnings: [] }));
	const at = (severity) => ({ line: stated, message }) => {
		const line = Math.min(Math.max(stated, 1), doc.lines);
		return { ...doc.line(line), line, severity, message };
	};
	const faults = [...errors.map(at("error")), ...warnings.map(at("warning"))];
	onFaults(faults);
	return faults.map(({ from, to, severity, message }) => ({ from, to, severity, message }));
}

function stateAt(view, at, place) {
	const { from, text } = view.state.doc.lineAt(at);
	const before = /["']([^"']*)$/.exec(text.slice(0, at - from))?.[1];
	if (before === undefined) return null;
	const word = before + /^[^"']*/.exec(text.slice(at - from))[0];
	const device = state.devices.get(word) ?? [...state.devices.values()].find(({ alias }) => alias === word);
	if (!device) return null;
	return { pos: at - before.length, end: at - before.length + word.length, above: true, create: () => ({ dom: describe(device, place) }) };
}

function describe(device, place) {
	const dom = place.ownerDocument.createElement("div");
	dom.className = "cm-state";
	const room = state.rooms.get(device.room_id)?.name;
	const lines = [[nameOf(device), room].filter(Boolean).join(" · "),
		...attributesOf(device).map(([name, value]) => `${labelOf(name, device)}: ${show(name, value, device)}  (${name})`)];
	for (const line of lines) dom.appendChild(place.ownerDocument.createElement("div")).textContent = line;
	return dom;
}
