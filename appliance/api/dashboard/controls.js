// Controls for a device, a room, or a group. The controls depend only on the `commands` of the target.

import { send, toMany } from "./commands.js";
import { tags, use, useRef, useState } from "./dom.js";
import { mayWrite, state } from "./store.js";
import { busy, errorLine, Field, iconButton, outcomes, toggle } from "./ui.js";
import { classOf, COLORS, isAway, isCovered, labelOf, numberOf, show, unitOf, word } from "./values.js";
import { t, withUnit } from "./words.js";

const { button, div, input, option, output, select, span } = tags;

const MAX_SEGMENTS = 4; // maximum number of options in a row; more options form a list
const KEY_REPEAT_MS = 250; // consecutive key presses send one command

const PAIRS = [["on", "off"], ["mute", "unmute"]];
const pairOf = ({ actions }) => PAIRS.find((pair) => pair.every((action) => actions.includes(action)));
const actionsOf = ({ actions }) => actions.filter((action) => !["get", "set", "increase", "decrease"].includes(action))
	.sort((one, other) => IN_ORDER.indexOf(one) - IN_ORDER.indexOf(other));

const SYMBOLS = { open: "open", close: "shut", stop: "stop", play: "play", pause: "pause", next: "next", previous: "previous",
	start: "play", start_mowing: "play", dock: "home", return_to_base: "home" };
const DONE = { open: ["open", 100], close: ["closed", 0] }; // without `stop`, because the device may be moving
const IN_ORDER = ["previous", "open", "start", "start_mowing", "play", "pause", "stop", "close", "next"];
const BY_TYPE = { percentage: range, number: range, integer: range, measurement: stepper, boolean: booleanSwitch,
	quantity: quantityField, string: textField, integer_or_string: textField, color_temperature: warmth };

// Return the function that draws a command for this class of device, or undefined.
function kindOf(command, look) {
	const { capability, actions } = command;
	if (capability in COLORS) return (drawn) => use(Tint, drawn);
	if (capability === "lock") return lockButtons;
	if (pairOf(command)) return pairSwitch;
	const hasButtons = actionsOf(command).length > 0;
	if (!actions.includes("set")) return hasButtons ? buttons : undefined;
	const setting = settingOf(command, look);
	return hasButtons ? (drawn) => span({ class: "shutter" }, buttons({ ...drawn, value: undefined }), setting?.(drawn)) : setting;
}

// Return the function that draws the control for a value. If a command is pending, the present value is shown
// separately.
function settingOf({ schema: { type, values = [] } }, look) {
	if (!values.length || type === "boolean") return BY_TYPE[type];
	if (values.some((value) => value in SYMBOLS)) return orders;
	return values.length <= MAX_SEGMENTS || look === "alarm_control_panel" ? segments : choice;
}

const FIRST = ["power", "lock", "brightness", "color_temperature", ...Object.keys(COLORS), "target_temperature"];

const drawable = new WeakMap();

// Return the commands to draw. Include only one colour command, even if the device accepts several colour formats.
export function commandsOf(device) {
	if (!drawable.has(device)) drawable.set(device, findDrawable(device));
	return drawable.get(device);
}

function findDrawable(device) {
	const { commands = [] } = device;
	const color = Object.keys(COLORS).find((each) => commands.some(({ capability }) => capability === each));
	const rank = ({ capability }) => FIRST.indexOf(capability) + 1 || 50;
	const drawn = commands.filter((each) => kindOf(each, classOf(device)) && (!(each.capability in COLORS) || each.capability === color)
		&& !isCovered(each, device));
	return drawn.sort((one, other) => rank(one) - rank(other));
}

// A control. If `isBare` is true, the control has no label and fits into a card's corner.
export function control(to, command, attributes, { isBare = false } = {}) {
	const { capability } = command;
	const device = state.devices.get(to.target);
	const label = labelOf(capability, device);
	const wish = state.pending.get(to.target)?.[capability];
	const drawn = kindOf(command, device && classOf(device))({
		to, command, attributes, wish, device, isBare,
		isDisabled: !to.simulate && device !== undefined && isAway(device),
		schema: command.schema,
		value: attributes[capability],
		isPending: wish !== undefined,
		label: `${to.name}: ${label}`,
		send: (action, value, shown) => send(to, capability, action, value, shown),
	});
	return isBare ? drawn : div({ key: capability, class: "control" }, span({ class: "label" }, label), drawn);
}

// Whether a value means on, or null if the value is unknown.
const isValueOn = (value) => (value === undefined || value === null ? null : value === "on" || value === true);

function pairSwitch({ command, value, send, ...more }) {
	const [on, off] = pairOf(command);
	return toggle({ ...more, isOn: isValueOn(value), onSwitch: (isOn) => send(isOn ? on : off) });
}

function booleanSwitch({ value, send, ...more }) {
	return toggle({ ...more, isOn: isValueOn(value), onSwitch: (isOn) => send("set", isOn) });
}

// A slider that sends the value on release. Afterwards, the slider shows the device's value again.
function Slider({ label, value, wish, min = 0, max = 100, step = 1, look, isDisabled, text, onChoose }) {
	const [held, setHeld] = useState(null);
	const hand = useRef({ timer: 0, isKey: false }).current;
	const known = held ?? wish ?? value;
	const isKnown = known !== undefined;
	const shown = known ?? min;
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
			type: "range", class: isKnown ? look : `unknown ${look ?? ""}`, min, max, step,
			value: shown,
			disabled: isDisabled,
			"aria-label": label,
			"aria-valuetext": isKnown ? text(shown) : word("unknown"),
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
	const { min, max } = schema;
	if (schema.type !== "percentage" && (min === undefined || max === undefined)) return textField({ command, schema, send, ...more });
	const step = schema.step ?? (schema.type === "number" && max - min <= 2 ? 0.01 : 1);
	const text = (shown) => show(command.capability, shown, more.device);
	return use(Slider, { ...more, min, max, step, text, onChoose: (chosen) => send("set", chosen) });
}

function warmth({ schema: { min = 2200, max = 7000 }, value, wish, send, ...more }) {
	const kelvin = (each) => (each?.unit === "mireds" ? Math.round(1e6 / each.value) : each?.value);
	const onChoose = (chosen) => send("set", { value: chosen, unit: "kelvin" });
	const text = (shown) => show("", { value: shown, unit: "kelvin" });
	return use(Slider, { ...more, min, max, step: 50, look: "warmth", value: kelvin(value), wish: kelvin(wish), text, onChoose });
}

function Tint({ command, value, wish, label, send, ...more }) {
	const { read, write } = COLORS[command.capability];
	const color = wish ?? (value && read(value));
	const latest = useRef({}).current; // both sliders send later, so each needs the other's latest value
	latest.color = color;
	const choose = (part) => {
		latest.color = { hue: 0, saturation: 100, ...latest.color, ...part };
		send("set", write(latest.color), latest.color);
	};
	const slider = (look, max, unit, name) => use(Slider, {
		...more, label: name, max, look,
		value: color?.[look],
		wish: wish?.[look],
		text: (shown) => withUnit(shown, unit),
		onChoose: (chosen) => choose({ [look]: chosen }),
	});
	const { hue = 0, saturation = 0 } = color ?? {};
	return span({ class: "tint", style: { "--hue": hue, "--saturation": `${saturation}%` } },
		slider("hue", 360, "°", label), slider("saturation", 100, "%", `${label}, ${t("saturation")}`));
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
		step1("−", -step), output(now === null ? "–" : withUnit(now, unitOf(unit), 2)), step1("+", step));
}

function choice({ schema: { values }, value = "", isPending, isDisabled, label, send }) {
	const onchange = ({ target }) => {
		const wanted = target.value;
		target.value = value; // show the present value until the device reports a change
		send("set", wanted);
	};
	const options = values.includes(value) ? values : [value, ...values];
	return select({ "aria-label": label, "aria-busy": busy(isPending), disabled: isDisabled, value, onchange },
		options.map((each) => option({ key: each, value: each }, word(each))));
}

// Buttons in a row after the present value. If an action has a symbol, its button shows the symbol.
function inRow({ command, attributes, value, isPending, isDisabled, label, device, isBare }, names, call, isPressed) {
	const shown = value !== undefined && typeof value !== "number" && !isPressed && !isBare;
	return span({ class: isPressed ? "buttons segments" : "buttons", role: "group", "aria-label": label, "aria-busy": busy(isPending) },
		shown && output(show(command.capability, value, device)),
		names.map((name) => {
			const called = isPressed ? word(name) : t(`action.${name}`, {}, word(name));
			const onclick = () => call(name);
			const isOff = isDisabled || (!isPending && DONE[name]?.includes(attributes[command.capability]));
			if (SYMBOLS[name] && !isPressed) return iconButton(SYMBOLS[name], `${label}: ${called}`, onclick, isOff, { key: name });
			return button({ key: name, type: "button", disabled: isDisabled, "aria-pressed": isPressed && String(isPressed(name)), onclick }, called);
		}));
}

const buttons = (drawn) => inRow(drawn, actionsOf(drawn.command), (action) => drawn.send(action));
const orders = (drawn) => (drawn.schema.values.includes(drawn.value) ? segments(drawn)
	: inRow(drawn, drawn.schema.values, (order) => drawn.send("set", order)));

// A row of options, in which the present option is pressed. An alarm panel shows its state before the options.
function segments(drawn) {
	const { schema: { values }, value, send } = drawn;
	if (value !== undefined && !values.includes(value)) return inRow(drawn, values, (option) => send("set", option));
	return inRow(drawn, values, (option) => option === value || send("set", option), (option) => option === value);
}

// The actions of a lock that are possible now.
function lockButtons(drawn) {
	const { command: { actions }, value, send } = drawn;
	const done = { locked: "lock", unlocked: "unlock" }[value];
	return inRow(drawn, actions.filter((action) => action !== done && action !== "get"), (action) => send(action));
}

// A number field for a measured value, with the unit.
function quantityField({ value, isDisabled, label, send }) {
	const onSend = (text) => send("set", { ...value, value: Number(text) });
	return use(Field, { label, action: t("set"), initial: value.value, type: "number", step: "any", disabled: isDisabled, onSend });
}

/** @param {any} drawn */
function textField({ schema, value, isDisabled, label, device, send }) {
	const isNumber = ["number", "integer"].includes(schema.type);
	const onSend = (text) => send("set", isNumber ? Number(text) : text);
	const step = isNumber ? (schema.step ?? "any") : null;
	const { min, max, unit } = schema;
	const called = unit ? `${label} (${unitOf(unit)})` : label;
	const isMessage = device && classOf(device) === "notify";
	return use(Field, { label: called, action: t(isMessage ? "simulate.send" : "set"), initial: value,
		type: isNumber ? "number" : "text", step, min, max, disabled: isDisabled, onSend });
}

// --- rooms and groups -------------------------------------------------------------------------------------

// Return the commands that at least one device accepts, and the common state of the devices. If the devices include
// lights, only the lights determine the state, because the switch acts only on lights.
export const together = (devices) => [...new Map(devices.flatMap(commandsOf).reverse().map((each) => [each.capability, each])).values()].reverse();

export function shared(devices) {
	const lights = devices.filter(({ kind }) => kind === "Light");
	const isOn = (lights.length ? lights : devices).some(({ attributes }) => attributes.power === "on");
	const shown = Object.assign({}, ...devices.map((each) => each.attributes).reverse());
	return "power" in shown ? { ...shown, power: isOn ? "on" : "off" } : shown;
}

export const membersOf = (group) => group.members.map((id) => state.devices.get(id)).filter(Boolean);

export function roomSwitch(room, devices) {
	const power = mayWrite() && together(devices).find(({ capability }) => capability === "power");
	return power && control(toMany("rooms", room, devices), power, shared(devices), { isBare: true });
}

export const roomResults = (id) => [errorLine(`rooms/${id}`), outcomes(`rooms/${id}`)];
