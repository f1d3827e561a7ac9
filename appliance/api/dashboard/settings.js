// Settings: devices and adapters, rooms, keys, hooks, backup, appearance, the hub itself, and diagnostics.

import { AdapterTools, AddFound, AddPage, EditSection } from "./adapter_forms.js";
import { addressOf, download, erase, get, keepToken, post, saveFile, segment } from "./api.js";
import { Arrange } from "./arrange.js";
import { seconds } from "./calendar.js";
import { connect } from "./connection.js";
import { toCopy } from "./copy.js";
import { confirm, Dialog } from "./dialog.js";
import { tags, use, useRef, useState } from "./dom.js";
import { icon } from "./icons.js";
import { stored } from "./storage.js";
import { useLoaded } from "./loading.js";
import { CodePairing, KeyPairing, qrCode } from "./pairing.js";
import { act, changed, mayAdmin, state } from "./store.js";
import { actions, Button, called, card, empty, errorLine, facts, Field, HUB_LANGUAGE, iconButton, line, row, scroll, titled } from "./ui.js";
import { word } from "./values.js";
import { keepScheme, LANGUAGE, LANGUAGES, number, SCHEME, t, time } from "./words.js";

const { a, div, h1, h2, input, option, p, select, small, span, strong } = tags;

const MIB = 1 << 20;
const LEVELS = ["error", "warning", "info", "debug"];
const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\])$/;
const ROLES = ["read", "write", "admin", "automation"];

// The pages of the settings, in the order of the list. Only keys with the role admin see the pages
// for admins. To other keys, `rest` names the content that they see.
const PAGES = {
	devices: { symbol: "adapters", rest: "box.adapters", draw: () => [use(Adapters), mayAdmin() && [use(Discovery), use(AddPage)]] },
	add: { symbol: "add", isForAdmin: true, isHidden: true, draw: () => [use(Discovery), use(AddPage)] },
	rooms: { symbol: "group", draw: () => use(Arrange) },
	keys: { symbol: "keys", isForAdmin: true, draw: () => use(Keys) },
	hooks: { symbol: "hooks", isForAdmin: true, draw: () => use(Hooks) },
	backup: { symbol: "backup", isForAdmin: true, draw: () => use(Backup) },
	look: { symbol: "look", draw: () => use(Look) },
	about: { symbol: "about", rest: "figure.version", draw: () => [mayAdmin() && use(Figures), use(ThisPage)] },
	diagnostics: { symbol: "diagnostics", rest: "box.events", draw: () => [mayAdmin() && use(Log), use(Events)] },
};

export function Settings({ id }) {
	const found = Object.entries(PAGES).filter(([, { isForAdmin }]) => mayAdmin() || !isForAdmin);
	const [, section] = /^adapter:(.+)$/.exec(id ?? "") ?? [];
	if (section && mayAdmin()) return use(EditSection, { key: section, name: section });
	const page = found.find(([name]) => name === id)?.[1];
	if (page) return [a({ class: "back", href: "#/settings" }, icon("back"), t("nav.settings")), h1({ tabindex: "-1" }, t(`settings.${id}`)), page.draw()];
	return [div({ class: "heading" }, h1({ tabindex: "-1" }, t("nav.settings"))), use(Changes),
		card(found.filter(([, { isHidden }]) => !isHidden).map(([name, { symbol, rest }]) =>
			a({ key: name, class: "entry", href: `#/settings/${name}` }, icon(symbol),
				span({ class: "title" }, strong(t(`settings.${name}`)), small(t(rest && !mayAdmin() ? rest : `settings.${name}.what`))), icon("forth"))))];
}

// Changes of the configuration that are not active yet, and how to activate them.
function Changes() {
	const { data } = useLoaded(() => get(mayAdmin() ? "diagnostics/status" : "overview"), [state.faults]);
	return data?.config.map((sentence) => p({ key: sentence, class: "error", lang: HUB_LANGUAGE }, sentence)) ?? null;
}

const textOf = (fields) => Object.values(fields).map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join(" ");

const Adapters = () => titled(t("box.adapters"), card(state.adapters.length
	? state.adapters.map((each) => use(Adapter, { key: each.name, ...each })) : empty(t("nothing"))));

const Events = () => titled(t("box.events"), scroll(t("box.events"),
	state.events.map(({ at, number: key, type, ...more }) => line(key, "", seconds(at), type, textOf(more)))));

function ThisPage() {
	const forget = () => {
		keepToken(null);
		connect();
	};
	return titled(t("box.page"), card(row(span(`Lares ${state.version} · ${t("box.role", { role: t(`role.${state.role}`) })}`),
		use(Button, { label: t("box.forget"), onClick: forget }))));
}

// Colours and language for this browser.
function Look() {
	const choose = (label, now, options, onChoose) => div({ class: "row" }, span(label),
		select({ "aria-label": label, value: now, onchange: ({ target }) => onChoose(target.value) },
		options.map(([value, name]) => option({ key: value, value }, name))));
	const setScheme = (scheme) => {
		keepScheme(scheme);
		changed();
	};
	const speak = (chosen) => {
		stored(LANGUAGE, chosen || null);
		location.reload();
	};
	return card(
		choose(t("look.scheme"), stored(SCHEME) ?? "", ["", "light", "dark"].map((each) => [each, t(`look.${each || "auto"}`)]), setScheme),
		choose(t("look.language"), stored(LANGUAGE) ?? "", [["", t("look.browser")], ...Object.entries(LANGUAGES)], speak),
		p({ class: "hint" }, t("look.hint")));
}

function Adapter({ name, status }) {
	const { data } = useLoaded(() => get(`adapters/${segment(name)}`), [status, state.faults]);
	const told = status !== "running" && (data?.health.message ?? data?.last_error);
	const problems = [told, data?.file_fault !== told && data?.file_fault, ...(data?.dropped ?? []).map(textOf)];
	return div(row(strong(name), span({ class: `badge ${status}` }, word(status)), use(AdapterTools, { name })),
		data?.last_success && small(t("box.last_success", { time: time(data.last_success) })),
		problems.map((each) => each && p({ class: "problem", lang: HUB_LANGUAGE }, each)),
		mayAdmin() && data?.operations.includes("pair") && use(data.operations.includes("unpair") ? CodePairing : KeyPairing, { adapter: name }));
}

function Figures() {
	const { data, error } = useLoaded(() => get("diagnostics"), [state.isOnline]);
	const { hub = {}, store = {}, process = {} } = data ?? {};
	const size = (bytes) => bytes && (bytes < MIB ? `${number(bytes / 1024, 0)} KiB` : `${number(bytes / MIB)} MiB`);
	const uptime = hub.started_at && time(hub.started_at);
	const told = {
		version: hub.version, uptime, memory: size(process.resident_bytes), written: size(store.bytes_written),
	};
	return titled(t("box.figures"), error ? empty(error) : facts(Object.entries(told).map(([name, value]) => [t(`figure.${name}`), value]), "card figures"));
}

function Log() {
	const [level, setLevel] = useState("info");
	const { data, error, reload } = useLoaded(() => get(`diagnostics/log?level=${level}&limit=100`), [level]);
	const levels = select({ "aria-label": t("box.log"), value: level, onchange: ({ target }) => setLevel(target.value) },
		LEVELS.map((each) => option({ value: each }, each)));
	const lines = data?.entries.map((entry, key) =>
		line(key, entry.level, time(entry.at), `${entry.level} ${entry.part}`, `${entry.message} ${textOf(entry.fields)}`));
	return titled(t("box.log"), error ? empty(error) : scroll(t("box.log"), lines),
		span({ class: "buttons" }, levels, use(Button, { label: t("refresh"), onClick: reload })));
}

// List, create, and revoke keys or hooks.
function useKeys(target, isHook) {
	const [made, setMade] = useState(null);
	const { data, error, reload } = useLoaded(() => get("auth/keys"), []);
	const make = async (fields) => {
		const key = await act(target, "make", () => post("auth/keys", fields));
		if (key) setMade(key);
		reload();
		return key !== undefined;
	};
	const revoke = async ({ id, label }) => {
		if (!(await confirm(t("confirm.revoke", { name: label }), t("key.revoke")))) return;
		await act(target, id, () => erase(`auth/keys/${segment(id)}`));
		reload();
	};
	const shown = (key) => div({ key: key.id, class: "row" },
		span({ class: "title" }, strong(key.label), small(`${isHook ? hookAddress(key).href : t(`role.${key.role}`, {}, key.role)} · ${time(key.created_at)}`)),
		iconButton("remove", t("key.revoke.what", { name: key.label }), () => revoke(key)));
	const rows = data?.filter((key) => (key.role === "hook") === isHook).map(shown) ?? [];
	return { make, rows, error: error && empty(error), secret: made && newKey(made, () => setMade(null)) };
}

function Keys() {
	const role = useRef();
	const { make, rows, error, secret } = useKeys("keys", false);
	const roles = select({ ref: role, "aria-label": t("key.role") }, ROLES.map((each) => option({ value: each }, t(`role.${each}`))));
	return [
		titled(t("settings.keys"), card(error, rows,
			use(Field, { label: t("key.label"), action: t("create"), maxlength: "100", children: roles,
				onSend: (label) => make({ label, role: role.current.value }) }), errorLine("keys"))),
		use(ThisPage),
		secret,
	];
}

function Hooks() {
	const { make, rows, error, secret } = useKeys("hooks", true);
	return [titled(t("settings.hooks"), card(error, rows.length ? rows : p(t("hook.what")),
		use(Field, { label: t("hook.label"), action: t("create"), maxlength: "263",
			onSend: (hook) => make({ label: hook.slice(0, 100), role: "hook", hook }) }), errorLine("hooks"))), secret];
}

const hookAddress = ({ hook }) => addressOf(`hooks/${segment(hook)}`);

// Show the new secret once: as text, and as an address that opens the page or calls the hook from a phone.
function newKey({ label, key, hook, warning }, onClose) {
	const address = hook ? hookAddress({ hook }) : addressOf("dashboard/");
	if (hook) address.search = `token=${key}`;
	else address.hash = `token=${key}`;
	const title = t("key.made", { name: label });
	return use(Dialog, { label: title, onClose, content: [
		h2(title),
		p(t(hook ? "hook.once" : "key.once")),
		warning && p({ class: "error" }, t("hook.unheard")),
		LOOPBACK.test(address.hostname) && p({ class: "error" }, t("key.loopback", { host: address.hostname })),
		qrCode(address.href, t(hook ? "hook.qr" : "key.qr")),
		input({ readonly: true, "aria-label": t(hook ? "hook.address" : "key.secret"), value: hook ? address.href : key,
			onfocus: ({ target }) => target.select() }),
		actions(use(Button, { label: t("done"), isMain: true, onClick: onClose })),
	] });
}

// The devices that announce themselves in the local network, each with a section for the configuration.
function Discovery() {
	const [found, setFound] = useState(null);
	const search = async () => setFound((await act("discovery", "search", () => get("discovery")))?.found ?? null);
	return titled(t("box.discovery"), card(
		row(span(t("discovery.what")), use(Button, { label: t("discovery.search"), isBusy: state.pending.has("discovery"), onClick: search })),
		errorLine("discovery"),
		found?.length === 0 && p(t("discovery.none")),
		found?.map(foundDevice)));
}

const foundDevice = ({ kind, name, address, serial, section }) => div({ key: `${kind} ${address}` },
	span({ class: "title" }, called(name), small([kind, address, serial].filter(Boolean).join(" · "))),
	toCopy(t("discovery.section", { name }), section),
	use(AddFound, { section }));

function Backup() {
	const save = () => act("backup", "download", async () => saveFile(`lares-backup-${new Date().toISOString().slice(0, 10)}.tar`,
		await download("diagnostics/backup")));
	return titled(t("settings.backup"), card(
		row(span(t("backup.what")), use(Button, { label: t("backup.download"), isBusy: state.pending.has("backup"), onClick: save })),
		errorLine("backup")));
}
