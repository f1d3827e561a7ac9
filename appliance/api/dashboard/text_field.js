// The editor's text field, with colours, errors in the margin, completion of the home's names, and the state of the
// device under the pointer.

import { get, post } from "./api.js";
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
				EditorView.domEventHandlers({ beforeinput: replaceLines }),
				EditorView.contentAttributes.of({ "aria-label": path, spellcheck: "false", autocapitalize: "off", autocorrect: "off" }),
				EditorView.updateListener.of((update) => update.docChanged && onType(update.state.doc.toString())),
				keymap.of([{ key: "Mod-s", run }, ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
			],
		}),
	});
}

// Replace a selection of several lines. Otherwise, the browser joins these lines itself and adds inline styles, and the
// page's policy forbids inline styles.
function replaceLines(event, view) {
	const { from, to } = view.state.selection.main;
	if (event.inputType !== "insertText" || !event.data || view.composing || view.state.doc.lineAt(from).to >= to) return false;
	event.preventDefault();
	view.dispatch(view.state.replaceSelection(event.data));
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

// --- completion ------------------------------------------------------------------------------------------------

const DEVICE = ["device_id", "attribute", "equals", "above", "below"];
const LASTING = ["at_start", "for_secs", "debounce_secs", "duration_secs"];
const FIELDS = {
	device_state_change: [...DEVICE, "room_id", "group_id", ...LASTING],
	device_event: ["device_id", "room_id", "group_id", "event"],
	weather_state: [...DEVICE, ...LASTING],
	wall_clock: ["time", "weekdays"],
	date: ["on", "time"],
	cron: ["expression", "timezone"],
	sunrise: ["offset_mins", "weekdays"],
	sunset: ["offset_mins", "weekdays"],
	interval: ["every_secs"],
	variable_change: ["name", "equals", "above", "below"],
	timer: ["name"],
	webhook: ["hook"],
	adapter_lifecycle: ["adapter"],
	system_error: ["contains"],
	device_state: [...DEVICE, "for_secs"],
	presence: DEVICE,
	room_state: ["room_id", "attribute", "equals", "above", "below", "min_devices", "max_devices"],
	group_state: ["group_id", "attribute", "equals", "above", "below", "min_devices", "max_devices"],
	variable: ["name", "equals", "above", "below"],
	time_window: ["start", "end"],
	weekday: ["days"],
	date_range: ["from", "to"],
	sun_position: ["after", "before", "after_offset_mins", "before_offset_mins"],
	all: ["conditions"],
	any: ["conditions"],
	none: ["conditions"],
};
const TOP = ["id", "name", "description", "enabled", "trigger", "triggers", "conditions", "mode", "cooldown_secs", "execute"];
const AROUND = 600; // number of characters before the cursor to search for a device

const option = (label, detail, more = {}) => ({ label: String(label), detail: detail || undefined, ...more });
const named = (things) => things.map(({ id, name }) => option(id, name, { type: "variable" }));
const plain = (texts, type = "constant") => [...new Set(texts)].sort().map((text) => option(text, "", { type }));

function complete(context, names) {
	if (!names) return null;
	const line = context.state.doc.lineAt(context.pos);
	const before = line.text.slice(0, context.pos - line.from);
	const around = context.state.sliceDoc(Math.max(0, context.pos - AROUND), context.pos);
	const method = /\bctx:(\w*)$/.exec(before);
	if (method) return { from: context.pos - method[1].length, options: names.ctx.map(methodOf), validFor: /^\w*$/ };
	const text = /["']([^"']*)$/.exec(before);
	const isInside = text && (before.match(/["']/g).length % 2 === 1);
	if (isInside) {
		const options = optionsIn(before.slice(0, -text[0].length), around, names);
		return options.length ? { from: context.pos - text[1].length, options, validFor: /^[^"']*$/ } : null;
	}
	const word = /\w*$/.exec(before)[0];
	if (!word && !context.explicit) return null;
	const kind = /type\s*=\s*["'](\w+)["'][^{}]*$/.exec(around)?.[1];
	const fields = kind ? FIELDS[kind] ?? [] : /^\s*\w*$/.test(before) ? TOP : [];
	return fields.length ? { from: context.pos - word.length, options: fields.map((field) => option(field, "",
		{ type: "property", apply: `${field} = ` })), validFor: /^\w*$/ } : null;
}

const methodOf = ({ name, arguments: args, description }) => option(name, `(${args.join(", ")})`, { type: "method", info: description, apply: `${name}(` });

function optionsIn(lead, around, names) {
	const devices = names.devices.map(({ id, alias, name, room }) => option(alias ?? id, [name, room].filter(Boolean).join(" · "),
		{ type: "variable", info: alias ? id : undefined }));
	const mentioned = deviceIn(around, names.devices);
	const able = mentioned ? [mentioned] : names.devices;
	const capability = /capability\s*=\s*["']([\w.]+)["'][^}]*$/.exec(around)?.[1];
	const commands = able.flatMap((each) => each.commands).filter((each) => !capability || each.capability === capability);
	if (/\btype\s*=\s*$/.test(lead)) return plain(Object.keys(FIELDS), "type");
	if (/\battribute\s*=\s*$/.test(lead)) return plain(able.flatMap(({ attributes }) => attributes), "property");
	if (/\bcapability\s*=\s*$/.test(lead)) return plain(able.flatMap((each) => each.commands.map((one) => one.capability)), "property");
	if (/\baction\s*=\s*$/.test(lead)) return plain(commands.flatMap(({ actions }) => actions), "keyword");
	if (/\bevent\s*=\s*$/.test(lead)) return plain(able.flatMap(({ events }) => events));
	if (/\b(value|equals)\s*=\s*$/.test(lead)) return plain(commands.flatMap(({ schema }) => schema.values ?? []));
	if (/\broom_id\s*=\s*$|command_room\(\s*$|get_room\(\s*$/.test(lead)) return named(names.rooms);
	if (/\bgroup_id\s*=\s*$|command_group\(\s*$|get_group\(\s*$/.test(lead)) return named(names.groups);
	if (/scene\w*\(\s*$/.test(lead)) return named(names.scenes);
	if (/:(get|set)\(\s*$/.test(lead)) return plain(names.variables);
	if (/timer\w*\(\s*$/.test(lead)) return plain(names.timers);
	if (/invoke\(\s*$/.test(lead)) return plain(names.operations);
	if (/\bmode\s*=\s*$/.test(lead)) return plain(["single", "restart", "queued", "parallel"]);
	return [...devices, ...named(names.rooms), ...named(names.groups)];
}

// Return the last device that the text names.
function deviceIn(text, devices) {
	const at = (each) => Math.max(text.lastIndexOf(`"${each.id}"`), each.alias ? text.lastIndexOf(`"${each.alias}"`) : -1);
	const last = devices.reduce((best, each) => (best === null || at(each) > at(best) ? each : best), null);
	return last && at(last) >= 0 ? last : null;
}
