// The editor for one file: shows errors in the margin, saves the file, runs it with a trace, simulates the next day,
// and shows earlier versions. The browser never runs the file.

import { erase, get, post, replace, saveFile, segment } from "./api.js";
import { dayTime } from "./calendar.js";
import { confirm } from "./dialog.js";
import { tags, use, useEffect, useRef, useState } from "./dom.js";
import { icon } from "./icons.js";
import { useLoaded, useRefreshed } from "./loading.js";
import { runItem } from "./executions.js";
import { act, mayAdmin, state } from "./store.js";
import { TrialResult } from "./trial.js";
import { actions, Button, card, empty, errorLine, HUB_LANGUAGE, titled } from "./ui.js";
import { commandOf } from "./values.js";
import { number, t } from "./words.js";

const { a, button, code, details, div, h1, input, label, li, ol, p, pre, span, strong, summary, textarea, ul } = tags;

export const fileAddress = (path) => `#/file/${segment(path)}`;
const requestOf = (path) => `files/${segment(path)}`;

const drafts = new Map(); // path → unsaved text, kept until the page is closed

addEventListener("beforeunload", (event) => drafts.size && event.preventDefault());

export const listDrafts = () => [...drafts.keys()];

// Open a new file, which is not saved yet.
export function begin(path, text) {
	drafts.set(path, text);
	location.hash = fileAddress(path).slice(1);
}

export function FilePage({ id: path }) {
	if (mayAdmin()) return use(File, { key: path, path });
	return [a({ class: "back", href: "#/automations" }, icon("back"), t("nav.automations")), h1({ tabindex: "-1" }, path),
		empty(t("error.insufficient_permissions"))];
}

function File({ path }) {
	const loaded = useRefreshed(() => get(requestOf(path)).catch((error) => {
		if (error.status === 404) return { path, text: "", version: "", isNew: true };
		throw error;
	}));
	const back = a({ class: "back", href: "#/automations" }, icon("back"), t("nav.automations"));
	const heading = h1({ tabindex: "-1", class: "path" }, path.split("/").pop());
	if (!loaded.data) return [back, heading, empty(loaded.error ?? "…")];
	return [back, heading, p({ class: "hint" }, path), use(Editor, { key: path, path, loaded })];
}

const ID = /\bid\s*=\s*["']([^"']+)["']/;
const adapterOf = (path) => /^config\/adapters\/([a-z][a-z0-9_]*)\.lua$/.exec(path)?.[1];
const kindOf = (path) => /^config\/(scenes|automations)\//.exec(path)?.[1];

function Editor({ path, loaded }) {
	const { data, reload } = loaded;
	const [base, setBase] = useState(data); // the text and version from which the draft began
	const [text, setText] = useState(drafts.get(path) ?? data.text);
	const [told, setTold] = useState(null);
	const [part, setPart] = useState(null);
	const target = `file ${path}`;
	const isChanged = text !== base.text || base.isNew;
	const isOther = data.version !== base.version;
	const latest = useRef({ text }).current; // a key press may save the text before the next frame is drawn
	const type = (now) => {
		latest.text = now;
		setText(now);
		setTold(null);
		if (now === base.text) drafts.delete(path);
		else drafts.set(path, now);
	};
	useEffect(() => {
		if (isOther && !drafts.has(path)) take(data);
	}, [data.version]);

	function take(found) {
		drafts.delete(path);
		setBase(found);
		latest.text = found.text;
		setText(found.text);
	}

	const save = async (version = base.version) => {
		const done = await act(target, "save", () => replace(requestOf(path), { text: latest.text, version }).catch((error) => {
			if (error.status === 409) reload();
			throw error;
		}));
		if (!done) return false;
		drafts.delete(path);
		const saved = await act(target, "save", () => get(requestOf(path))); // in the saved text, secrets are hidden
		if (saved) take(saved);
		reload();
		setTold(done.warnings.length ? t("editor.saved_warned", { count: done.warnings.length }) : t("editor.saved"));
		return true;
	};
	const remove = async () => {
		if (!(await confirm(t("confirm.delete", { name: path }), t("delete")))) return;
		if (await act(target, "delete", () => erase(requestOf(path)).then(() => true))) {
			drafts.delete(path);
			location.hash = "#/automations";
		}
	};
	const pending = state.pending.get(target) ?? {};
	const kind = kindOf(path);
	const open = (name) => setPart(part === name ? null : name);
	const tool = (name) => button({ type: "button", "aria-pressed": String(part === name), onclick: () => open(name) }, t(`editor.${name}`));
	return [
		div({ class: "tabs toolbar" },
			use(Button, { label: t("save"), isMain: true, isDisabled: !isChanged, isBusy: "save" in pending, onClick: () => save() }),
			kind && tool("try"), kind === "automations" && tool("simulate"), adapterOf(path) && tool("test"), !base.isNew && tool("versions"),
			!base.isNew && path.endsWith(".lua") && use(Button, { label: t("delete"), isBusy: "delete" in pending, onClick: remove })),
		p({ role: "status", class: "hint" }, told ?? (isChanged ? t("editor.unsaved") : "")),
		errorLine(target),
		isOther && drafts.has(path) && card(p({ class: "problem" }, t("editor.other")), use(Difference, { old: data.text, fresh: text }),
			actions(use(Button, { label: t("editor.theirs"), onClick: () => take(data) }), use(Button, { label: t("editor.mine"), onClick: () => save(data.version) }))),
		use(FileText, { path, text, onType: type, onSave: save }),
		part === "try" && use(Try, { path, text, isChanged, kind, onSave: save }),
		part === "simulate" && use(Simulation, { path, text }),
		part === "test" && use(Test, { path, text }),
		part === "versions" && use(Versions, { path, text, onTake: type }),
	];
}

// The text field, with its styles in a shadow tree, because the page's policy forbids other inline styles.
function FileText({ path, text, onType, onSave }) {
	const place = useRef();
	const hand = useRef({}).current;
	Object.assign(hand, { onType, onSave });
	const [problem, setProblem] = useState(null);
	const [faults, setFaults] = useState([]);
	useEffect(() => {
		let isGone = false;
		import("./text_field.js").then(({ write }) => write(place.current, path, text, {
			onType: (now) => hand.onType(now),
			onSave: () => hand.onSave(),
			onFaults: setFaults,
		})).then((view) => {
			hand.view = view;
			if (isGone) view.destroy();
		}, ({ message }) => isGone || setProblem(message));
		return () => {
			isGone = true;
			hand.view?.destroy();
		};
	}, []);
	useEffect(() => {
		const { view } = hand;
		if (view && view.state.doc.toString() !== text) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
	}, [text]);
	return [div({ class: "editor", ref: place }), problem && p({ class: "error" }, problem),
		faults.map(({ line, message, severity }, key) => p({ key, class: severity === "error" ? "problem" : "warning",
			lang: HUB_LANGUAGE }, strong(t("editor.line", { line })), ` ${message}`)),
		p({ class: "hint" }, t("editor.keys"))];
}

// --- a run ---------------------------------------------------------------------------------------------------

function Try({ path, text, isChanged, kind, onSave }) {
	const id = ID.exec(text)?.[1];
	const [entry, setEntry] = useState(null);
	const target = `try ${path}`;
	const run = async () => {
		if (isChanged && !(await onSave())) return;
		await act(target, "run", async () => {
			const failed = await post(`${kind}/${segment(id)}/execute`, {}).then(() => null, (error) => error);
			const { entries } = await get(`${kind}/${segment(id)}/history?limit=1`);
			if (failed && !entries[0]) throw failed;
			setEntry(entries[0] ?? null);
		});
	};
	return titled(t("editor.try"), card(
		id ? actions(use(Button, { label: t(isChanged ? "editor.save_and_run" : "automation.run"), isMain: true,
			isBusy: state.pending.has(target), onClick: run })) : p(t("editor.no_id")),
		errorLine(target),
		entry && ol({ class: "runs" }, runItem([])(entry, 0))));
}

// --- the next day ----------------------------------------------------------------------------------------------

const MAX_LINES = 200;

function Simulation({ path, text }) {
	const [found, setFound] = useState(null);
	const [runs, setRuns] = useState(true);
	const [events, setEvents] = useState("");
	const target = `simulate ${path}`;
	const id = ID.exec(text)?.[1];
	const look = async () => setFound(await act(target, "run", () => post("simulate", { path, text, events, hours: 24, run: runs })) ?? null);
	const lines = found?.lines.filter(({ automation }) => !id || automation === id) ?? [];
	const flip = () => setRuns(!runs);
	return titled(t("editor.simulate"), card(
		label(span({ class: "hint" }, t("editor.events")), textarea({ rows: "3", spellcheck: "false", value: events,
			oninput: ({ target: { value } }) => setEvents(value) })),
		actions(button({ type: "button", "aria-pressed": String(runs), onclick: flip }, t("editor.with_commands")),
			use(Button, { label: t("editor.look"), isMain: true, isBusy: state.pending.has(target), onClick: look })),
		errorLine(target),
		found && (lines.length ? ol({ class: "runs" }, lines.slice(0, MAX_LINES).map(simulated)) : empty(t("editor.never"))),
		found && !found.is_complete && p({ class: "hint" }, t("editor.cut", { time: dayTime(found.until) }))));
}

// A line of a simulation: a run, a step of a run, or the reason why a run does not begin.
const simulated = ({ at, fired, error, command, ...more }, key) => {
	if (command) return li({ key, class: "trace" }, commandOf(command));
	if (fired === undefined) return li({ key, class: "trace", lang: HUB_LANGUAGE }, JSON.stringify({ ...more, automation: undefined }));
	return li({ key }, strong(dayTime(at)), ` ${fired ? t("editor.runs") : ""}`, !fired && span({ lang: HUB_LANGUAGE }, error));
};

// --- an adapter kind ----------------------------------------------------------------------------------------

// Parse lines `key = value`. A value is JSON, or otherwise a text.
function settingsIn(text) {
	return Object.fromEntries(text.split("\n").map((line) => /^\s*(\w+)\s*=\s*(.*?)\s*$/.exec(line)).filter(Boolean).map(([, key, value]) => {
		try {
			return [key, JSON.parse(value)];
		} catch {
			return [key, value];
		}
	}));
}

// With the unsaved text, poll the device or a recording once.
function Test({ path, text }) {
	const kind = adapterOf(path);
	const [settings, setSettings] = useState("");
	const [recording, setRecording] = useState(null);
	const [trial, setTrial] = useState(null);
	const target = `test ${path}`;
	const pending = state.pending.get(target) ?? {};
	const run = (what, replay) => act(target, what, async () => {
		const values = { ...replay?.settings, ...settingsIn(settings) };
		const found = await post(`files/sections/${segment(kind)}/try`, { kind, values, text, replay });
		setTrial(found);
		if (!replay) setRecording(found.recording);
	});
	const load = ({ target: { files } }) => act(target, "load", async () => files[0] && setRecording(JSON.parse(await files[0].text())));
	const keep = () => saveFile(`${kind}.json`, new Blob([JSON.stringify(recording, null, 2)]));
	return titled(t("editor.test"), card(
		label(span({ class: "hint" }, t("editor.settings")), textarea({ rows: "3", spellcheck: "false", value: settings,
			placeholder: "base_url = …", oninput: ({ target: { value } }) => setSettings(value) })),
		label(span({ class: "hint" }, t("editor.recording")), input({ type: "file", accept: ".json", onchange: load })),
		actions(recording && use(Button, { label: t("editor.record"), onClick: keep }),
			recording && use(Button, { label: t("editor.replay"), isBusy: "replay" in pending, onClick: () => run("replay", recording) }),
			use(Button, { label: t("editor.test"), isMain: true, isBusy: "test" in pending, onClick: () => run("test") })),
		errorLine(target),
		trial && use(TrialResult, { trial })));
}

// --- earlier texts ------------------------------------------------------------------------------------------------

function Versions({ path, text, onTake }) {
	const { data, error } = useLoaded(() => get(`${requestOf(path)}/versions`), []);
	const [chosen, setChosen] = useState(null);
	const old = useLoaded(async () => (chosen === null ? null : get(`${requestOf(path)}/versions/${chosen}`)), [chosen]).data;
	return titled(t("editor.versions"), card(
		error && empty(error), data?.versions.length === 0 && empty(t("nothing")),
		ul({ class: "tabs" }, data?.versions.map(({ n, saved_at: at, size }) => li({ key: n },
			button({ type: "button", "aria-pressed": String(chosen === n), onclick: () => setChosen(n) }, `${dayTime(at)} · ${number(size)} B`)))),
		old?.n === chosen && old && [use(Difference, { key: chosen, old: old.text, fresh: text }),
			actions(use(Button, { label: t("editor.restore"), onClick: () => onTake(old.text) }))]));
}

const MAX_COMPARED = 1500; // lines

// Compare two texts line by line: common lines, removed lines, and added lines.
export function compare(old, fresh) {
	const [one, other] = [old.split("\n"), fresh.split("\n")];
	let first = 0;
	while (first < one.length && first < other.length && one[first] === other[first]) first += 1;
	let last = 0;
	while (last < one.length - first && last < other.length - first && one.at(-1 - last) === other.at(-1 - last)) last += 1;
	const [left, right] = [one.slice(first, one.length - last), other.slice(first, other.length - last)];
	const same = (lines) => lines.map((line) => [" ", line]);
	const middle = left.length > MAX_COMPARED || right.length > MAX_COMPARED
		? [...left.map((line) => ["-", line]), ...right.map((line) => ["+", line])] : longest(left, right);
	return [...same(one.slice(0, first)), ...middle, ...same(one.slice(one.length - last))];
}

function longest(left, right) {
	const width = right.length + 1;
	const table = new Uint16Array((left.length + 1) * width);
	for (let i = left.length - 1; i >= 0; i -= 1) {
		for (let j = right.length - 1; j >= 0; j -= 1) {
			table[i * width + j] = left[i] === right[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
		}
	}
	const lines = [];
	let [i, j] = [0, 0];
	while (i < left.length || j < right.length) {
		if (i < left.length && j < right.length && left[i] === right[j]) {
			lines.push([" ", left[i]]);
			i += 1;
			j += 1;
		} else if (j >= right.length || (i < left.length && table[(i + 1) * width + j] >= table[i * width + j + 1])) lines.push(["-", left[i++]]);
		else lines.push(["+", right[j++]]);
	}
	return lines;
}

const AROUND = 3; // number of lines shown around a difference

function Difference({ old, fresh }) {
	const lines = compare(old, fresh);
	const near = (at) => lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(([sign]) => sign !== " ");
	const shown = lines.map(([sign, line], at) => near(at) && span({ key: at, class: { "+": "added", "-": "removed" }[sign] ?? "" }, `${sign} ${line}\n`));
	return shown.some(Boolean) ? pre({ class: "difference", tabindex: "0", "aria-label": t("editor.difference") }, shown) : empty(t("editor.equal"));
}

// --- the files --------------------------------------------------------------------------------------------------

// The files of the home, by folder.
export function FileList() {
	const { data, error } = useLoaded(() => get("files"), [state.automations.size, state.scenes.size]);
	const files = data?.files ?? [];
	return details({ class: "card" }, summary(`${t("files")} (${files.length})`), error && empty(error),
		files.map(({ path, modified_at: at }) => div({ key: path, class: "row" },
		a({ class: "title", href: fileAddress(path) }, code(path.replace(/^config\//, ""))), span({ class: "hint" }, dayTime(at)))));
}
