// The home: search, favourites, scenes, what runs, rooms with their devices, groups.

import { get, post, segment } from "./api.js";
import { cards, controls } from "./cards.js";
import { commandsOf, control, toMany } from "./controls.js";
import { tags, use } from "./dom.js";
import { act, changed, favourites, flip, inOrder, isIn, mayWrite, note, state } from "./store.js";
import { Button, called, card, empty, errorLine, HUB, icon, iconButton, inTurn, outcomes, row, thing, titled, unsafe, useRefreshed } from "./ui.js";
import { doing, nameOf } from "./values.js";
import { t } from "./words.js";

const { a, button, div, h1, h2, header, input, nav, p, section, small, span } = tags;

const MIN_ROOMS = 3; // fewer need no bar to jump to them

export function Home() {
	const hidden = state.isEditing ? [] : [...state.devices.keys()].filter((id) => isIn("hidden", id));
	const devices = inOrder([...state.devices.values()].filter(({ id }) => !hidden.includes(id)));
	const wanted = sought(state.search.trim());
	return [
		h1({ tabindex: "-1", class: "hidden" }, t("nav.home")),
		unsafe(),
		state.devices.size > 0 && tools(),
		wanted ? found(wanted) : whole(devices),
		!wanted && hidden.length > 0 && p({ class: "empty" }, t("hidden.count", { count: hidden.length })),
	];
}

function tools() {
	const setSearch = (text) => {
		state.search = text;
		changed();
	};
	const edit = () => {
		state.isEditing = !state.isEditing;
		changed();
	};
	return div({ class: "tools", role: "search" },
		icon("search"),
		input({ type: "search", "aria-label": t("search"), placeholder: t("search"), autocomplete: "off", value: state.search, oninput: ({ target }) => setSearch(target.value) }),
		a({ class: "plain", href: "#/wall", "aria-label": t("wall"), title: t("wall") }, icon("wall")),
		iconButton("edit", t("edit"), edit, false, { "aria-pressed": String(state.isEditing) }));
}

function whole(devices) {
	const rooms = [...state.rooms.values()]
		.map((room) => ({ room, inside: devices.filter((each) => each.room_id === room.id) }))
		.filter(({ inside }) => inside.length > 0);
	const others = devices.filter((device) => !state.rooms.has(device.room_id));
	const first = favourites();
	const groups = [...state.groups.values()];
	return [
		rooms.length >= MIN_ROOMS && bar(rooms),
		first.length > 0 && titled(t("favourites"), cards(first, "favourites")),
		state.scenes.size > 0 && use(Scenes),
		use(Running),
		rooms.map(({ room, inside }) => use(Room, { key: room.id, room, devices: inside })),
		others.length > 0 && titled(t(rooms.length ? "home.unassigned" : "home.devices"), cards(others)),
		groups.length > 0 && titled(t("groups"), div({ class: "cards" }, groups.map((group) => use(Group, { key: group.id, group })))),
		state.devices.size === 0 && empty(t("home.empty")),
		errorLine("preferences"),
	];
}

// As it is searched for: `kuche` finds the Küche, and `lazienka` the Łazienka.
const LETTERS = { ł: "l", ø: "o", đ: "d", ß: "ss", æ: "ae", œ: "oe", ı: "i" };
const sought = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/[łøđßæœı]/g, (each) => LETTERS[each]);

// Devices whose name, id or room has this text, or else all of its words; hidden ones too.
function found(wanted) {
	const text = (device) => sought(`${nameOf(device)} ${device.id} ${state.rooms.get(device.room_id)?.name ?? ""}`);
	const having = (parts) => [...state.devices.values()].filter((device) => parts.every((part) => text(device).includes(part)));
	const exact = having([wanted]);
	const devices = exact.length ? exact : having(wanted.split(/\s+/));
	return titled(t("search.found", { count: devices.length }), devices.length ? cards(devices) : empty(t("search.none")));
}

const headingOf = (id) => `room ${id}`;

function bar(rooms) {
	const jump = (id) => {
		if (isIn("folded", id)) flip("folded", id);
		document.body.classList.remove("first"); // what lies between has to have its height
		const heading = document.getElementById(headingOf(id));
		heading.scrollIntoView();
		heading.focus({ preventScroll: true });
	};
	return nav({ class: "strip bar", "aria-label": t("rooms") },
		rooms.map(({ room: { id, name } }) => button({ key: id, type: "button", dir: "auto", onclick: () => jump(id) }, name)));
}

async function run(scene) {
	const target = `scene ${scene.id}`;
	note("outcomes", target, null);
	const answer = await act(target, "run", () => post(`scenes/${segment(scene.id)}/execute`));
	if (answer) note("outcomes", target, answer.results);
}

export function Scenes() {
	const all = [...state.scenes.values()];
	return titled(t("scenes"), [
		div({ class: "strip" }, all.map((scene) => use(Button, {
			key: scene.id,
			label: scene.name,
			title: scene.description,
			isBusy: state.pending.has(`scene ${scene.id}`),
			isDisabled: !mayWrite(),
			onClick: () => run(scene),
		}))),
		all.map(({ id }) => [errorLine(`scene ${id}`), outcomes(`scene ${id}`)]),
	]);
}

// What runs of this automation, or of all scenes and automations; nothing where nothing does.
export function Running({ of }) {
	const { data, reload } = useRefreshed(() => inTurn(() => get("executions")), `${state.eventCount} ${state.pending.size}`);
	const found = data?.executions.filter((each) => !of || (each.kind === "automation" && each.of === of)) ?? [];
	return found.length > 0 && titled(t("running"), card(found.map(({ id, name, doing: sentence }) => div({ key: id },
		row(span({ class: "title" }, called(name), small(doing(sentence) ?? span({ lang: HUB }, sentence))), mayWrite() && use(Button, {
			label: t("cancel"),
			onClick: () => act(id, "cancel", () => post(`executions/${segment(id)}/cancel`)).then(reload),
		})),
		errorLine(id)))));
}

// A room's name, which leads to its page, a button that folds it, and its switch.
function Room({ room: { id, name }, devices }) {
	const isFolded = isIn("folded", id) && !state.isEditing;
	const fold = button({ type: "button", class: "plain fold", "aria-expanded": String(!isFolded), "aria-label": t("fold", { name }), onclick: () => flip("folded", id) },
		icon(isFolded ? "shut" : "open"));
	return section({ "aria-label": name },
		header(h2({ id: headingOf(id), tabindex: "-1", dir: "auto" }, a({ href: `#/room/${segment(id)}` }, name)),
			span({ class: "buttons" }, roomSwitch({ id, name }, devices), fold)),
		roomResults(id), !isFolded && cards(devices));
}

export function roomSwitch(room, devices) {
	const power = mayWrite() && together(devices).find(({ capability }) => capability === "power");
	return power && control(toMany("rooms", room, devices), power, shared(devices), { isBare: true });
}

export const roomResults = (id) => [errorLine(`rooms/${id}`), outcomes(`rooms/${id}`)];

// The commands that any of these devices takes, each once; and what they show together. Where there are lights, they alone say
// whether it is on: the switch acts on them, and a plug that stays on would keep it from ever switching them on.
const together = (devices) => [...new Map(devices.flatMap(commandsOf).reverse().map((each) => [each.capability, each])).values()].reverse();

function shared(devices) {
	const lights = devices.filter(({ kind }) => kind === "Light");
	const isOn = (lights.length ? lights : devices).some(({ attributes }) => attributes.power === "on");
	const shown = Object.assign({}, ...devices.map((each) => each.attributes).reverse());
	return "power" in shown ? { ...shown, power: isOn ? "on" : "off" } : shown;
}

function Group({ group }) {
	const devices = group.members.map((id) => state.devices.get(id)).filter(Boolean);
	const to = toMany("groups", group, devices);
	const attributes = shared(devices);
	const [corner, others] = controls(to, mayWrite() ? together(devices) : [], attributes);
	const title = span({ class: "title" }, called(group.name), small(t("home.members", { count: devices.length })));
	const look = attributes.power === "on" ? "on" : "";
	return thing({ look, symbol: icon("virtual"), title, control: corner },
		others, errorLine(to.target), outcomes(to.target));
}
