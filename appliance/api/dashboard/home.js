// The home: scenes, rooms with their devices, groups.

import { get, post, segment } from "./api.js";
import { sparkline } from "./chart.js";
import { commandsOf, control, toDevice, toMany } from "./controls.js";
import { memo, tags, use, useEffect, useRef, useState } from "./dom.js";
import { act, mayWrite, note, state } from "./store.js";
import { Running } from "./executions.js";
import { Button, empty, errorLine, inTurn, outcomes, thing, titled } from "./ui.js";
import { attributesOf, classOf, labelOf, nameOf, numberOf, show, word } from "./values.js";
import { t } from "./words.js";

const { a, dd, div, dl, dt, h1, section, small, span, strong } = tags;

const MAX_CONTROLS = 4;
const MAX_READINGS = 3;

export function Home() {
	const devices = [...state.devices.values()];
	const rooms = [...state.rooms.values()];
	const others = devices.filter((device) => !state.rooms.has(device.room_id));
	const groups = [...state.groups.values()];
	return [
		h1({ tabindex: "-1", class: "hidden" }, t("nav.home")),
		state.scenes.size > 0 && use(Scenes),
		use(Running),
		rooms.map((room) => use(Room, { key: room.id, room, devices: devices.filter((each) => each.room_id === room.id) })),
		others.length > 0 && titled(t(rooms.length ? "home.unassigned" : "home.devices"), cards(others)),
		groups.length > 0 && titled(t("groups"), div({ class: "cards" }, groups.map((group) => use(Group, { key: group.id, group })))),
		devices.length === 0 && empty(t("home.empty")),
	];
}

async function run(scene) {
	const target = `scene ${scene.id}`;
	note("outcomes", target, null);
	const answer = await act(target, "run", () => post(`scenes/${segment(scene.id)}/execute`));
	if (answer) note("outcomes", target, answer.results);
}

function Scenes() {
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

function Room({ room, devices }) {
	const to = toMany("rooms", room, devices);
	const power = mayWrite() && together(devices).find(({ capability }) => capability === "power");
	const content = [errorLine(to.target), outcomes(to.target), devices.length ? cards(devices) : empty(t("nothing"))];
	return titled(room.name, content, power && control(to, power, shared(devices), { isBare: true }));
}

const cards = (devices) => div({ class: "cards" }, devices.map((device) => use(DeviceCard, {
	key: device.id,
	device,
	pending: state.pending.get(device.id),
	error: state.errors.get(device.id) ?? null,
	mayCommand: mayWrite(),
})));

// The commands that any of these devices takes, each once; and what they show together.
const together = (devices) => [...new Map(devices.flatMap(commandsOf).reverse().map((each) => [each.capability, each])).values()].reverse();

function shared(devices) {
	const isOn = devices.some((device) => device.attributes.power === "on");
	return { ...Object.assign({}, ...devices.map((each) => each.attributes).reverse()), ...(isOn && { power: "on" }) };
}

// The switch in the corner and the controls below it.
function controls(to, commands, attributes) {
	const power = commands.find(({ capability }) => capability === "power");
	const others = commands.filter((each) => each !== power).slice(0, MAX_CONTROLS);
	return [power && control(to, power, attributes, { isBare: true }), others.map((each) => control(to, each, attributes))];
}

function Group({ group }) {
	const devices = group.members.map((id) => state.devices.get(id)).filter(Boolean);
	const to = toMany("groups", group, devices);
	const attributes = shared(devices);
	const [corner, others] = controls(to, mayWrite() ? together(devices) : [], attributes);
	const title = span({ class: "title" }, strong(group.name), small(t("home.members", { count: devices.length })));
	const look = attributes.power === "on" ? "on" : "";
	return thing({ look, symbol: "virtual", title, control: corner },
		others, errorLine(to.target), outcomes(to.target));
}

const DeviceCard = memo(({ device, error, mayCommand }) => {
	const { power, state: presence = "online" } = device.attributes;
	const isAway = presence !== "online";
	const commands = mayCommand ? commandsOf(device) : [];
	const [corner, others] = controls(toDevice(device), commands, device.attributes);
	const readings = attributesOf(device)
		.filter(([name]) => name !== "power" && !commands.some(({ capability }) => capability === name))
		.slice(0, MAX_READINGS);
	const title = a({ class: "title", href: `#/device/${segment(device.id)}` },
		strong(nameOf(device)), small(isAway ? word(presence) : summary(device)));
	return thing({ look: isAway ? "away" : power, symbol: classOf(device), title, control: corner },
		others,
		readings.length > 0 && dl({ class: "readings" }, readings.map(([name, value]) =>
			div({ key: name }, dt(labelOf(name, device)), dd(show(name, value))))),
		device.kind === "Sensor" && use(Trend, { device, readings }),
		errorLine(device.id, error));
});

function summary(device) {
	const { power, brightness, lock } = device.attributes;
	const parts = [power, lock].filter(Boolean).map(word);
	if (power === "on" && brightness !== undefined) parts.push(show("brightness", brightness));
	return parts.join(" · ") || device.info?.model;
}

// The latest values of a sensor's first number as a line, fetched once the card comes into sight.
function Trend({ device, readings }) {
	const ref = useRef();
	const [entries, setEntries] = useState([]);
	const attribute = readings.find(([, value]) => numberOf(value) !== null)?.[0];
	useEffect(() => {
		const observer = new IntersectionObserver(([seen]) => {
			if (!seen.isIntersecting || !attribute) return;
			observer.disconnect();
			const path = `devices/${segment(device.id)}/history/${segment(attribute)}?limit=120`;
			inTurn(() => get(path)).then((history) => setEntries(history.entries), () => {}); // then without a picture
		});
		observer.observe(ref.current);
		return () => observer.disconnect();
	}, [attribute]);
	return div({ class: "trend", ref }, attribute && sparkline(entries, device.attributes[attribute]));
}
