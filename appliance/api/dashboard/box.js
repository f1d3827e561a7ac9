// The box: how the hub does, what happens, its log, its keys, its backup; and what is in the network.

import { addressOf, download, erase, get, keepToken, post, segment } from "./api.js";
import { connect } from "./connection.js";
import { tags, use, useRef, useState } from "./dom.js";
import { CodePairing, KeyPairing, qrCode } from "./pairing.js";
import { act, confirm, mayAdmin, state } from "./store.js";
import { actions, Button, called, card, Dialog, empty, errorLine, facts, Field, HUB, iconButton, line, row, scroll, titled, toCopy, useLoaded } from "./ui.js";
import { word } from "./values.js";
import { number, seconds, t, time } from "./words.js";

const { div, h1, h2, input, option, p, select, small, span, strong } = tags;

const MIB = 1 << 20;
const LEVELS = ["error", "warning", "info", "debug"];
const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\])$/;
const ROLES = ["read", "write", "admin", "automation"];

export function Box() {
	const forget = () => {
		keepToken(null);
		connect();
	};
	return [
		h1({ tabindex: "-1" }, t("nav.box")),
		titled(t("box.adapters"), card(state.adapters.length ? state.adapters.map((each) => use(Adapter, { key: each.name, ...each })) : empty(t("nothing")))),
		mayAdmin() && use(Figures),
		titled(t("box.events"), scroll(t("box.events"), state.events.map(({ at, number: key, type, ...more }) => line(key, "", seconds(at), type, textOf(more))))),
		mayAdmin() && [use(Discovery), use(Log), use(Keys), use(Backup)],
		titled(t("box.page"), card(row(span(`Lares ${state.version} · ${t("box.role", { role: t(`role.${state.role}`) })}`),
			use(Button, { label: t("box.forget"), onClick: forget })))),
	];
}

const textOf = (fields) => Object.values(fields).map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join(" ");

function Adapter({ name, status }) {
	const { data } = useLoaded(() => get(`adapters/${segment(name)}`), [status, state.faults]);
	const told = status !== "running" && (data?.health.message ?? data?.last_error);
	const problems = [told, data?.file_fault !== told && data?.file_fault, ...(data?.dropped ?? []).map(textOf)];
	return div(row(strong(name), span({ class: `badge ${status}` }, word(status))),
		data?.last_success && small(t("box.last_success", { time: time(data.last_success) })),
		problems.map((each) => each && p({ class: "problem", lang: HUB }, each)),
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

function Keys() {
	const [made, setMade] = useState(null);
	const role = useRef();
	const { data, error, reload } = useLoaded(() => get("auth/keys"), []);
	const make = (part, fields) => async (text) => {
		const key = await act(part, "make", () => post("auth/keys", fields(text)));
		if (key) setMade(key);
		reload();
		return key !== undefined;
	};
	const onSend = make("keys", (label) => ({ label, role: role.current.value }));
	const onHook = make("hooks", (hook) => ({ label: hook.slice(0, 100), role: "hook", hook }));
	const revoke = async ({ id, label }) => {
		if (!(await confirm(t("confirm.revoke", { name: label }), t("key.revoke")))) return;
		await act("keys", id, () => erase(`auth/keys/${segment(id)}`));
		reload();
	};
	const roles = select({ ref: role, "aria-label": t("key.role") }, ROLES.map((each) => option({ value: each }, t(`role.${each}`))));
	const shown = (key, what) => div({ key: key.id, class: "row" },
		span({ class: "title" }, strong(key.label), small(`${what} · ${time(key.created_at)}`)),
		iconButton("remove", t("key.revoke.what", { name: key.label }), () => revoke(key)));
	const keys = data?.filter((key) => key.role !== "hook").map((key) => shown(key, t(`role.${key.role}`, {}, key.role)));
	const hooks = data?.filter((key) => key.role === "hook").map((key) => shown(key, hookAddress(key).href));
	return [
		titled(t("box.keys"), card(error && empty(error), keys,
			use(Field, { label: t("key.label"), action: t("create"), maxlength: "100", onSend, children: roles }), errorLine("keys"))),
		titled(t("box.hooks"), card(hooks?.length ? hooks : p(t("hook.what")),
			use(Field, { label: t("hook.label"), action: t("create"), maxlength: "263", onSend: onHook }), errorLine("hooks"))),
		made && newKey(made, () => setMade(null)),
	];
}

const hookAddress = ({ hook }) => addressOf(`hooks/${segment(hook)}`);

// The one time that the secret is shown: as text, and as an address; a phone opens the page there, or calls the hook.
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

// What announces itself in the local network, with the section to paste for each.
function Discovery() {
	const [found, setFound] = useState(null);
	const search = async () => setFound((await act("discovery", "search", () => get("discovery")))?.found ?? null);
	return titled(t("box.discovery"), card(
		row(span(t("discovery.what")), use(Button, { label: t("discovery.search"), isBusy: state.pending.has("discovery"), onClick: search })),
		errorLine("discovery"),
		found?.length === 0 && p(t("discovery.none")),
		found?.length > 0 && p(t("discovery.paste")),
		found?.map(foundDevice)));
}

const foundDevice = ({ kind, name, address, serial, section }) => div({ key: `${kind} ${address}` },
	span({ class: "title" }, called(name), small([kind, address, serial].filter(Boolean).join(" · "))),
	toCopy(t("discovery.section", { name }), section));

function Backup() {
	const save = () => act("backup", "download", async () => {
		const link = document.createElement("a");
		link.href = URL.createObjectURL(await download("diagnostics/backup"));
		link.download = `lares-${new Date().toISOString().slice(0, 10)}.tar.gz`;
		link.click();
		setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
	});
	return titled(t("box.backup"), card(
		row(span(t("backup.what")), use(Button, { label: t("backup.download"), isBusy: state.pending.has("backup"), onClick: save })),
		errorLine("backup")));
}
