// The home view: a summary line, scenes, favourites, running executions, and rooms with their devices.

import { get, post, segment } from "./api.js";
import { send, toMany } from "./commands.js";
import { membersOf, roomResults, roomSwitch, shared, together } from "./controls.js";
import { tags, use, useEffect, useRef } from "./dom.js";
import { icon } from "./icons.js";
import { inTurn, useRefreshed } from "./loading.js";
import { obviousOf } from "./appearance.js";
import { favourites, flip, inOrder, isIn, orderedRooms, reorder } from "./preferences.js";
import { act, changed, mayAdmin, mayWrite, note, signOfChanges, state } from "./store.js";
import { Devices, hasTile, inUse, Summary } from "./summary.js";
import { sheetOf, tile, tiles } from "./tiles.js";
import { Button, called, card, empty, errorLine, HUB_LANGUAGE, iconButton, outcomes, row, safeModeReason, titled } from "./ui.js";
import { doing, labelOf, nameOf, word } from "./values.js";
import { t } from "./words.js";

const { a, button, div, h1, h2, header, input, p, section, small, span } = tags;

const MANY = 16; // with more devices than fit on a screen, show active devices first
const MAX_ON = 8;

export function Home() {
	if (state.search !== null) return use(Search);
	const edit = () => {
		state.isEditing = !state.isEditing;
		changed();
	};
	const hidden = [...state.devices.keys()].filter((id) => isIn("hidden", id));
	return [
		div({ class: "heading" }, h1({ tabindex: "-1", class: "title" }, t("nav.home")), state.devices.size > 0 && span({ class: "buttons" },
			iconButton("search", t("search"), () => search("")),
			iconButton("edit", t("edit"), edit, false, { "aria-pressed": String(state.isEditing) }),
			a({ class: "plain", href: "#/wall", "aria-label": t("wall"), title: t("wall") }, icon("wall")))),
		safeModeReason(),
		state.devices.size ? whole(state.isEditing ? [] : hidden) : use(First),
		errorLine("preferences"),
		!state.isEditing && hidden.length > 0 && p({ class: "empty" }, t("hidden.count", { count: hidden.length })),
	];
}

function whole(hidden) {
	const devices = inOrder([...state.devices.values()].filter(({ id }) => !hidden.includes(id)));
	const rooms = orderedRooms()
		.map((room) => ({ room, inside: devices.filter((each) => each.room_id === room.id) }))
		.filter(({ inside }) => inside.length > 0);
	const others = devices.filter((device) => !state.rooms.has(device.room_id));
	const first = favourites();
	const groups = [...state.groups.values()];
	const sections = rooms.map(({ room, inside }) => ({
		drawn: use(Room, { key: `room ${room.id}`, room, devices: inside, order: rooms.map((each) => each.room.id) }),
		height: heightOf(room.id, inside),
	}));
	if (others.length) {
		const name = t(rooms.length ? "home.unassigned" : "home.devices");
		sections.push({ drawn: section({ key: "others", "aria-label": name }, header({ class: "room" }, h2(name)),
			use(Devices, { devices: others })), height: heightOf(null, others) });
	}
	if (groups.length) sections.push({ drawn: section({ key: "groups", "aria-label": t("groups") }, header({ class: "room" }, h2(t("groups"))),
		div({ class: "tiles" }, groups.map((group) => use(Group, { key: group.id, group })))), height: heightOf(null, groups) });
	return [
		use(Summary),
		state.scenes.size > 0 && use(Scenes),
		use(Running),
		first.length > 0 && titled(t("favourites"), tiles(first, { list: "favourites" })),
		!state.isEditing && devices.length > MANY && use(On),
		div({ class: "columns" }, columnsOf(sections).map((column, at) => div({ key: at, class: "column" }, column))),
	];
}

// --- columns without holes -----------------------------------------------------------------------------

const COLUMN_REM = 20;
const GAP_REM = 1.5;

// Estimate a section's height in rows of tiles.
function heightOf(id, devices) {
	if (isIn("folded", id)) return 1;
	const able = devices.filter((each) => each.members || hasTile(each)).length;
	return 1 + Math.ceil(able / 2) + (able < devices.length ? 0.5 : 0);
}

// Arrange the sections in as many columns as fit. Each section goes to the shortest column.
export function columnsOf(sections, columnRem = COLUMN_REM) {
	const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
	const width = (document.querySelector("main")?.clientWidth ?? document.documentElement.clientWidth) / rem;
	const count = Math.max(1, Math.min(sections.length, Math.floor((width - 1) / (columnRem + GAP_REM))));
	const columns = Array.from({ length: count }, () => ({ height: 0, parts: [] }));
	for (const { drawn, height } of sections) {
		const column = columns.reduce((least, each) => (each.height < least.height ? each : least));
		column.height += height;
		column.parts.push(drawn);
	}
	return columns.map(({ parts }) => parts);
}

addEventListener("resize", changed);

// --- parts -----------------------------------------------------------------------------------------------

// The first steps in a home without devices.
function First() {
	return card(p(t("home.empty")), mayAdmin() && div({ class: "actions first" },
		a({ class: "button main", href: "#/settings/devices" }, icon("search"), t("first.search")),
		a({ class: "button", href: "#/settings/add" }, icon("add"), t("first.add"))),
		p({ class: "hint" }, t("first.docs")));
}

function On() {
	const others = inUse().filter(({ id }) => !isIn("favourites", id));
	const all = others.length > MAX_ON && a({ href: "#/list/on" }, t("home.all", { count: others.length }));
	return others.length > 0 && div({ class: "now" }, titled(t("home.on"), tiles(others.slice(0, MAX_ON)), all));
}

export function search(text) {
	state.search = text;
	changed();
}

function Search() {
	const ref = useRef();
	useEffect(() => ref.current.focus(), []);
	const rooms = orderedRooms();
	const hits = find(state.search);
	const onkeydown = (event) => {
		if (event.key === "Enter") {
			const found = find(state.search); // the page may not yet show the hits of the last key
			if (found?.length === 1) location.hash = sheetOf(found[0]);
		}
		if (event.key !== "Escape") return;
		event.preventDefault(); // the browser would only clear the field
		search(null);
	};
	return [
		h1({ tabindex: "-1", class: "hidden" }, t("nav.home")),
		div({ class: "tools", role: "search" },
			icon("search"),
			input({ ref, type: "search", "aria-label": t("search"), placeholder: t("search"), autocomplete: "off", value: state.search,
				onkeydown, oninput: ({ target }) => search(target.value) }),
			iconButton("close", t("search.close"), () => search(null))),
		hits ? titled(t("search.found", { count: hits.length }), hits.length ? tiles(hits) : empty(t("search.none"))) : rooms.length > 0 && titled(t("rooms"), div({ class: "strip wrap" },
			rooms.map(({ id, name }) => a({ key: id, class: "button", dir: "auto", href: `#/room/${segment(id)}` }, name)))),
	];
}

// Normalise a text for a search: `kuche` finds Küche, and `lazienka` finds Łazienka.
const sought = (text) => text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase().replaceAll("ł", "l").replaceAll("ß", "ss");

function find(text) {
	const wanted = sought(text.trim());
	if (!wanted) return null;
	const textOf = (device) => sought(`${nameOf(device)} ${device.id} ${device.alias ?? ""} ${state.rooms.get(device.room_id)?.name ?? ""}`);
	const having = (parts) => [...state.devices.values()].filter((device) => parts.every((part) => textOf(device).includes(part)));
	const exact = having([wanted]);
	return exact.length ? exact : having(wanted.split(/\s+/));
}

async function run(scene) {
	const target = `scene ${scene.id}`;
	note("outcomes", target, null);
	const answer = await act(target, "run", () => post(`scenes/${segment(scene.id)}/execute`));
	if (answer) note("outcomes", target, answer.results);
}

export function Scenes() {
	const all = [...state.scenes.values()];
	return section({ "aria-label": t("scenes") },
		div({ class: "strip" }, all.map((scene) => use(Button, {
			key: scene.id,
			label: scene.name,
			title: scene.description,
			isBusy: state.pending.has(`scene ${scene.id}`),
			isDisabled: !mayWrite(),
			onClick: () => run(scene),
		}))),
		all.map(({ id }) => [errorLine(`scene ${id}`), outcomes(`scene ${id}`)]));
}

async function loadExecutions() {
	({ executions: state.executions } = await inTurn(() => get("executions")));
	changed();
}

// The running executions of this automation, or of all scenes and automations. If none is running, show nothing.
export function Running({ of }) {
	const { reload } = useRefreshed(loadExecutions, signOfChanges(), state.overviewSign);
	const found = state.executions.filter((each) => !of || (each.kind === "automation" && each.of === of));
	return found.length > 0 && titled(t("running"), card(found.map(({ id, name, doing: sentence }) => div({ key: id },
		row(span({ class: "title" }, called(name), small(doing(sentence) ?? span({ lang: HUB_LANGUAGE }, sentence))), mayWrite() && use(Button, {
			label: t("cancel"),
			onClick: () => act(id, "cancel", () => post(`executions/${segment(id)}/cancel`)).then(reload),
		})),
		errorLine(id)))));
}

// A room: a link to its page, a switch, a button to fold it, and its devices. While the home is edited, buttons move
// the room up or down.
function Room({ room: { id, name }, devices, order }) {
	const at = order.indexOf(id);
	const move = (by) => () => reorder("rooms", order.with(at, order[at + by]).with(at + by, id));
	const isFolded = isIn("folded", id) && !state.isEditing;
	const fold = button({ type: "button", class: "plain fold", "aria-expanded": String(!isFolded), "aria-label": t("fold", { name }),
		onclick: () => flip("folded", id) },
		icon(isFolded ? "shut" : "open"));
	return section({ "aria-label": name },
		header({ class: "room" }, h2({ tabindex: "-1", dir: "auto" }, a({ href: `#/room/${segment(id)}` }, name)),
			span({ class: "buttons" }, state.isEditing
				? [iconButton("up", t("arrange.up", { name }), move(-1), at === 0), iconButton("down", t("arrange.down", { name }), move(1), at === order.length - 1)]
				: [roomSwitch({ id, name }, devices), fold])),
		roomResults(id), !isFolded && use(Devices, { devices }));
}

function Group({ group }) {
	const devices = membersOf(group);
	const { power } = shared(devices);
	const to = toMany("groups", group, devices);
	const obvious = mayWrite() && obviousOf({ id: group.id, kind: "Group", attributes: { power }, commands: together(devices) });
	return tile({
		id: group.id, name: group.name,
		href: `#/group/${segment(group.id)}`,
		text: [power && word(power), t("home.members", { count: devices.length })].filter(Boolean).join(" · "),
		look: { symbol: "group", tone: power === "on" && (devices.some(({ kind }) => kind === "Light") ? "light" : "cool") },
		isOn: obvious?.isOn,
		isPending: state.pending.has(to.target),
		label: obvious && `${group.name}: ${labelOf("power")}`,
		onTap: obvious?.capability === "power" && (() => send(to, "power", obvious.action)),
	}, errorLine(to.target), outcomes(to.target));
}
