// The sheet of a device or group, with controls, the last day, and the reasons for its state. The sheet opens over
// the previous view.

import { get, segment } from "./api.js";
import { toDevice, toMany } from "./commands.js";
import { commandsOf, control, membersOf, shared, together } from "./controls.js";
import { Dialog } from "./dialog.js";
import { tags, use, useState } from "./dom.js";
import { icon } from "./icons.js";
import { useLoaded } from "./loading.js";
import { lookOf, stateOf } from "./appearance.js";
import { Today } from "./history.js";
import { isPicture, stills } from "./pictures.js";
import { mayWrite, state } from "./store.js";
import { marks, tiles } from "./tiles.js";
import { empty, errorLine, HUB_LANGUAGE, iconButton, outcomes } from "./ui.js";
import { attributesOf, isAway, labelOf, nameOf, show } from "./values.js";
import { t, time } from "./words.js";

const { a, dd, details, div, dl, dt, fieldset, h2, header, li, p, small, span, summary, ul } = tags;

const MAX_READINGS = 6;
const INSTANT = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

const sheet = (label, onClose, ...content) => use(Dialog, { label, onClose, look: "sheet", content: [
	...content.slice(0, 1), fieldset({ disabled: !state.isOnline }, content.slice(1)),
] });

/** @type {(look: any, ...all: any[]) => any} */
const top = ({ symbol, tone }, name, text, more, onClose) => header({ class: tone || "off" }, span({ class: "symbol" }, icon(symbol)),
	div({ class: "title" }, h2({ dir: "auto", tabindex: "-1", autofocus: true }, name), text && small({ dir: "auto" }, text)), more,
		iconButton("close", t("sheet.close"), onClose));

export function Sheet({ id, onClose }) {
	const device = state.devices.get(id);
	if (!device) return sheet(t("device.gone"), onClose, top({ symbol: "away" }, t("device.gone"), id, null, onClose), []);
	const name = nameOf(device);
	return sheet(name, onClose,
		top(lookOf(device), name, stateOf(device), marks(device), onClose),
		panelOf(device),
		use(Today, { key: `today ${id}`, device }),
		use(Why, { key: `why ${id}`, id }),
		a({ class: "more", href: `#/device/${segment(id)}` }, span(t("sheet.more")), icon("forth")));
}

export function GroupSheet({ id, onClose }) {
	const group = state.groups.get(id);
	if (!group) return sheet(t("nothing"), onClose, top({ symbol: "group" }, t("nothing"), id, null, onClose), []);
	const devices = membersOf(group);
	const to = toMany("groups", group, devices);
	const attributes = shared(devices);
	return sheet(group.name, onClose,
		top({ symbol: "group", tone: attributes.power === "on" && "light" }, group.name, t("home.members", { count: devices.length }), null, onClose),
		mayWrite() && together(devices).map((each) => control(to, each, attributes)),
		errorLine(to.target), outcomes(to.target),
		tiles(devices));
}

// The picture, readings, and controls of a device.
export function panelOf(device, hasReadings = true) {
	const commands = mayWrite() ? commandsOf(device) : [];
	return [
		isAway(device) && p({ class: "hint" }, t("away.hint")),
		errorLine(device.id),
		stills(device),
		hasReadings && readingList(device, readingsOf(device, commands)),
		commands.map((each) => control(toDevice(device), each, device.attributes)),
	];
}

const SAID_OTHERWISE = ["power", "color_mode"]; // the switch and the colour control show these

const readingsOf = (device, commands) => attributesOf(device)
	.filter(([name, value]) => !SAID_OTHERWISE.includes(name) && !isPicture(value) && !commands.some(({ capability }) => capability === name))
	.slice(0, MAX_READINGS);

const readingList = (device, readings) => readings.length > 0 && dl({ class: "values" }, readings.map(([name, value]) =>
	div({ key: name }, dt(labelOf(name, device)), dd({ dir: "auto" }, show(name, value, device)))));

// The hub's reasons for the state. The reasons are fetched when a person opens them.
function Why({ id }) {
	const [isOpen, setOpen] = useState(false);
	return details({ ontoggle: ({ target }) => setOpen(target.open) }, summary(t("sheet.why")), isOpen && use(Reasons, { id }));
}

function Reasons({ id }) {
	const { data, error } = useLoaded(() => get(`why?id=${segment(id)}`), [state.devices.get(id)?.updated_at]);
	if (!data) return empty(error ?? "…");
	const told = [...data.summary, ...data.decisions.map(({ at, sentence }) => `${time(at)}: ${sentence}`)];
	return ul({ class: "runs", lang: HUB_LANGUAGE, dir: "auto" }, told.map((sentence, at) => li({ key: at }, sentence.replace(INSTANT, time))));
}
