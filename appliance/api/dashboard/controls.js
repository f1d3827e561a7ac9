// What a person can do with a device, a room or a group, drawn from its `commands` alone.

import { get, post, segment } from "./api.js";
import { tags, use, useRef, useState } from "./dom.js";
import { act, confirm, note, put, state } from "./store.js";
import { Button, busy, Field, toggle } from "./ui.js";
import { actionWord, COLORS, labelOf, nameOf, numberOf, show, unitOf, word } from "./values.js";
import { t } from "./words.js";

const { button, div, input, option, output, select, span } = tags;

const ASK_FIRST = ["lock", "garage_door"];
const KEY_REPEAT_MS = 250; // one command for a row of key presses

// Whom commands go to, and under what name their pending and their errors are noted.
export const toDevice = (device) =>
	({ target: device.id, path: `devices/${segment(device.id)}`, name: nameOf(device), isDevice: true });
export const toMany = (kind, { id, name }, devices) => ({ target: `${kind}/${id}`, path: `${kind}/${segment(id)}`, name, devices });

const queued = new Map();

// Send a command; while one of the same capability is under way, the latest waits and goes after it.
async function send(to, capability, action, value, wish = value ?? action) {
	if (ASK_FIRST.includes(capability) && !to.simulate) {
		const what = actionWord(action);
		if (!(await confirm(t("confirm.command", { action: what, name: to.name }), what))) return;
	}
	const ids = to.isDevice ? null : await choose(to, capability, action);
	if (ids?.length === 0) return;
	const key = `${to.target}|${capability}`;
	if (state.pending.get(to.target)?.[capability] !== undefined) {
		queued.set(key, [to, capability, action, value, wish]);
		return;
	}
	await act(to.target, capability, () => deliver(to, { capability, action, value }, ids), wish);
	const next = queued.get(key);
	queued.delete(key);
	if (next) await send(...next);
}

// The devices of a room or group that a command is for: its lights, and what else takes it where somebody says so.
async function choose({ devices }, capability, action) {
	const able = devices.filter((each) => each.commands?.some((one) => one.capability === capability && one.actions.includes(action)));
	const others = able.filter((each) => each.kind !== "Light");
	const what = actionWord(action);
	const names = others.map(nameOf).join(", ");
	const isAll = others.length > 0 && (await confirm(t("confirm.others", { action: what, names }), what));
	return able.filter((each) => isAll || !others.includes(each)).map(({ id }) => id);
}

const one = (id, command) => post(`devices/${segment(id)}/command`, command)
	.then(({ status }) => ({ device_id: id, status }), ({ message }) => ({ device_id: id, status: "error", message }));

// It ends when the page knows what the device shows since.
async function deliver({ target, path, isDevice, simulate }, command, ids) {
	const before = state.devices.get(target);
	if (!isDevice) {
		note("outcomes", target, null);
		const results = await Promise.all(ids.map((id) => one(id, command)));
		return note("outcomes", target, results.every((each) => each.status === "ok") ? null : results);
	}
	if (simulate) await post(simulate, { device_id: target, attributes: { [command.capability]: command.value } });
	else await post(`${path}/command`, command);
	if (state.devices.get(target) === before) put("devices", await get(`${path}?include=commands`));
}

const PAIRS = [["on", "off"], ["mute", "unmute"]];
const pairOf = ({ actions }) => PAIRS.find((pair) => pair.every((action) => actions.includes(action)));
const actionsOf = ({ actions }) => actions.filter((action) => !["get", "set", "increase", "decrease"].includes(action));

const BY_TYPE = { percentage: range, number: range, integer: range, measurement: stepper, boolean: booleanSwitch, quantity: quantityField, string: textField, integer_or_string: textField, color_temperature: warmth };

// The function that draws a command, or undefined.
function kindOf(command) {
	const { capability, actions, schema } = command;
	if (capability in COLORS) return tint;
	if (pairOf(command)) return pairSwitch;
	if (!actions.includes("set")) return actionsOf(command).length ? buttons : undefined;
	return schema.values?.length && schema.type !== "boolean" ? choice : BY_TYPE[schema.type];
}

const FIRST = ["power", "lock", "brightness", "color_temperature", ...Object.keys(COLORS), "target_temperature"];

// The commands of a device as they are drawn: one colour, however many ways there are to state it.
export function commandsOf({ commands = [] }) {
	const color = Object.keys(COLORS).find((each) => commands.some(({ capability }) => capability === each));
	const rank = ({ capability }) => FIRST.indexOf(capability) + 1 || 50;
	const drawn = commands.filter((each) => kindOf(each) && (!(each.capability in COLORS) || each.capability === color));
	return drawn.sort((one, other) => rank(one) - rank(other));
}

// One control; `isBare` is without its label, for the corner of a card.
export function control(to, command, attributes, { isBare, isDisabled } = {}) {
	const { capability } = command;
	const label = labelOf(capability, state.devices.get(to.target));
	const wish = state.pending.get(to.target)?.[capability];
	const drawn = kindOf(command)({
		to, command, attributes, wish, isDisabled,
		schema: command.schema,
		value: attributes[capability],
		isPending: wish !== undefined,
		label: `${to.name}: ${label}`,
		send: (action, value, shown) => send(to, capability, action, value, shown),
	});
	return isBare ? drawn : div({ key: capability, class: "control" }, span({ class: "label" }, label), drawn);
}

function pairSwitch({ command, value, send, ...more }) {
	const [on, off] = pairOf(command);
	return toggle({ ...more, isOn: value === "on" || value === true, onSwitch: (isOn) => send(isOn ? on : off) });
}

function booleanSwitch({ value, send, ...more }) {
	return toggle({ ...more, isOn: value === true, onSwitch: (isOn) => send("set", isOn) });
}

// A slider that follows the finger, sends when it is let go, and goes back to what the device shows.
function Slider({ label, value, wish, min = 0, max = 100, step = 1, look, isDisabled, text, onChoose }) {
	const [held, setHeld] = useState(null);
	const hand = useRef({ timer: 0, isKey: false }).current;
	const shown = held ?? wish ?? value ?? min;
	const oninput = ({ target }) => {
		clearTimeout(hand.timer);
		hand.timer = 0;
		setHeld(Number(target.value));
	};
	const onchange = ({ target }) => {
		const chosen = Number(target.value);
		clearTimeout(hand.timer);
		hand.timer = setTimeout(() => {
			hand.timer = 0;
			onChoose(chosen);
			setHeld(null);
		}, hand.isKey ? KEY_REPEAT_MS : 0);
	};
	const letGo = () => setTimeout(() => hand.timer || setHeld(null), 50);
	const position = `${(100 * (shown - min)) / (max - min)}%`;
	return span({ class: "slider", "aria-busy": busy(wish !== undefined) },
		input({
			type: "range", class: look, min, max, step,
			value: shown,
			disabled: isDisabled,
			"aria-label": label,
			"aria-valuetext": text(shown),
			style: { "--position": position },
			oninput,
			onchange,
			onkeydown: () => (hand.isKey = true),
			onpointerdown: () => (hand.isKey = false),
			onpointerup: letGo,
			onblur: letGo,
		}),
		output(value === undefined && held === null ? "–" : text(shown)));
}

function range({ command, schema, send, ...more }) {
	const { min, max, step, unit } = schema;
	if (schema.type !== "percentage" && (min ?? max) === undefined) return textField({ command, schema, send, ...more });
	const text = (shown) => (unit ? show("", { value: shown, unit }) : show(command.capability, shown));
	return use(Slider, { ...more, min, max, step, text, onChoose: (chosen) => send("set", chosen) });
}

function warmth({ schema: { min = 2200, max = 7000 }, value, wish, send, ...more }) {
	const kelvin = (each) => (each?.unit === "mireds" ? Math.round(1e6 / each.value) : each?.value);
	const onChoose = (chosen) => send("set", { value: chosen, unit: "kelvin" });
	const text = (shown) => show("", { value: shown, unit: "kelvin" });
	return use(Slider, { ...more, min, max, step: 50, look: "warmth", value: kelvin(value), wish: kelvin(wish), text, onChoose });
}

function tint({ command, value, wish, label, send, ...more }) {
	const { read, write } = COLORS[command.capability];
	const color = wish ?? (value && read(value));
	const choose = (part) => {
		const wanted = { hue: 0, saturation: 100, ...color, ...part };
		send("set", write(wanted), wanted);
	};
	const slider = (look, max, unit, name) => use(Slider, {
		...more, label: name, max, look,
		value: color?.[look],
		wish: wish?.[look],
		text: (shown) => `${shown}${unit}`,
		onChoose: (chosen) => choose({ [look]: chosen }),
	});
	return span({ class: "tint", style: { "--hue": color?.hue ?? 0 } },
		slider("hue", 360, "°", label), slider("saturation", 100, " %", `${label}, ${t("saturation")}`));
}

function stepper({ schema, value, wish, isPending, isDisabled, label, send }) {
	const { min = -Infinity, max = Infinity, step = 0.5, unit = value?.unit } = schema;
	const now = numberOf(wish ?? value);
	const step1 = (sign, by) => button({
		type: "button",
		"aria-label": `${label} ${sign}`,
		disabled: isDisabled || now === null || now + by < min || now + by > max,
		onclick: () => send("set", { value: Number((now + by).toFixed(3)), unit }),
	}, sign);
	return span({ class: "stepper", role: "group", "aria-label": label, "aria-busy": busy(isPending) },
		step1("−", -step), output(now === null ? "–" : `${show("", now)} ${unitOf(unit)}`), step1("+", step));
}

function choice({ schema: { values }, value = "", isPending, isDisabled, label, send }) {
	const onchange = ({ target }) => {
		const wanted = target.value;
		target.value = value; // it shows what is, until the device says otherwise
		send("set", wanted);
	};
	const options = values.includes(value) ? values : [value, ...values];
	return select({ "aria-label": label, "aria-busy": busy(isPending), disabled: isDisabled, value, onchange },
		options.map((each) => option({ key: each, value: each }, word(each))));
}

function buttons({ command, value, isPending, isDisabled, label, send }) {
	return span({ class: "buttons", role: "group", "aria-label": label, "aria-busy": busy(isPending) },
		value !== undefined && output(show(command.capability, value)),
		actionsOf(command).map((action) => use(Button, {
			key: action,
			label: actionWord(action),
			isDisabled,
			onClick: () => isPending || send(action),
		})));
}

// A measured value that is stated as a number, in the unit that it has.
function quantityField({ value, isDisabled, label, send }) {
	const onSend = (text) => send("set", { ...value, value: Number(text) });
	return use(Field, { label, action: t("set"), initial: value.value, type: "number", step: "any", disabled: isDisabled, onSend });
}

function textField({ schema, value, isDisabled, label, send }) {
	const isNumber = ["number", "integer"].includes(schema.type);
	const onSend = (text) => send("set", isNumber ? Number(text) : text);
	const step = isNumber ? (schema.step ?? "any") : null;
	return use(Field, { label, action: t("set"), initial: value, type: isNumber ? "number" : "text", step, disabled: isDisabled, onSend });
}
