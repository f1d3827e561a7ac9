// Values of devices as people read them.

import { state } from "./store.js";
import { duration, plain, t, timeOfDay, withUnit } from "./words.js";

const UNITS = { celsius: "°C", fahrenheit: "°F", percent: "%", kelvin: "K" };
const NAME = /^[a-z_]+$/;
const AWAY = ["offline", "unavailable"];

export const nameOf = (device) => device.name || device.id;
export const classOf = (device) => device.info?.class ?? device.kind.toLowerCase();
export const isAway = (device) => AWAY.includes(device.attributes.state);
export const unitOf = (unit) => UNITS[unit] ?? unit ?? "";

// The displayed name of an attribute: the device's name for the attribute, otherwise the attribute's name in the
// page's language. If a device defines an attribute with a capability's name, the label contains a mark.
export function labelOf(attribute, device) {
	const name = attribute in COLORS ? "color" : attribute.split(".").pop();
	const called = device?.metadata?.vendor_specific?.labels?.[attribute] ?? t(`attribute.${name}`, {}, plain(name));
	const twin = attribute.includes(".") && device?.commands?.find(({ capability }) => capability === name);
	return twin && !isCovered(twin, device) ? t("label.own", { name: called }) : called;
}

// Return whether another command of the device has the same name and offers all options of this command.
export function isCovered({ capability, schema: { values = [] } }, { commands }) {
	const own = commands.find((each) => each.capability !== capability && each.capability.split(".").pop() === capability);
	return values.length > 0 && values.every((value) => own?.schema.values?.includes(value));
}

// The unit for a number without a unit: from the device's commands, otherwise from the capability.
function unitAt(attribute, device) {
	const schema = device?.commands?.find(({ capability }) => capability === attribute)?.schema;
	return unitOf(schema?.unit ?? (schema?.type === "percentage" ? "%" : state.units[attribute]));
}

// Format a value of this device with its unit.
export function show(attribute, value, device) {
	if (value === null || value === undefined) return "–";
	if (typeof value === "boolean") return t(`${attribute}.${value}`, {}, t(value ? "yes" : "no"));
	if (typeof value === "number") return withUnit(value, unitAt(attribute, device), 2);
	if (attribute in COLORS) return colorOf(COLORS[attribute].read(value));
	if (typeof value === "string") return isText(attribute, device) ? value : t(`value.${value}`, {}, NAME.test(value) ? plain(value) : value);
	if (typeof value.value === "number") return withUnit(value.value, unitOf(value.unit));
	if ("installed" in value && "latest" in value) return [...new Set([value.installed, value.latest])].join(" → ");
	return Object.values(value).map((each) => show(attribute, each, device)).join(" · ");
}

// Attributes whose values are free texts of the device, unless a command lists the possible values.
const TEXTS = ["weather_condition", "wind_direction", "fan_mode", "swing_mode", "preset_mode", "media_source", "media_app", "media_title"];

function isText(attribute, device) {
	const command = device?.commands?.find(({ capability }) => capability === attribute);
	if (command?.schema.values?.length) return false;
	return TEXTS.includes(attribute) || attribute.startsWith("custom.");
}

const colorOf = ({ hue, saturation }) => `${hue}° · ${withUnit(saturation, "%")}`;

// The word for a status, or for another term of the hub.
export const word = (name) => t(`value.${name}`, {}, plain(name));
export const actionWord = (name) => t(`action.${name}`, {}, plain(name));

const DOING = /^(sleep until|computing for|command) (\S+)(?: (\S+) (\w+))?(?: (.*))?$/;

// Translate the description of an execution. Return null if the page cannot translate the description.
export function doing(sentence) {
	const [, kind, first, capability, action, value = null] = DOING.exec(sentence) ?? [];
	if (kind === "sleep until") return t("doing.sleep", { time: timeOfDay(first) });
	if (kind === "computing for") return t("doing.computing", { duration: duration(Number(first)) });
	return action && !value?.startsWith("{") ? commandOf({ device_id: first, capability, action, value }) : null;
}

/** @type {(command: any) => string} */
// A command: device, attribute, action, and value.
export function commandOf({ device_id: id, ...command }) {
	const device = state.devices.get(id);
	return `${device ? nameOf(device) : id}, ${orderOf(command, device)}`;
}

/** @type {(command: any, device: any) => string} */
export const orderOf = ({ capability, action, value = null }, device) =>
	`${labelOf(capability, device)}: ${actionWord(action)}${value === null ? "" : ` ${show(capability, value, device)}`}`;

// The number to draw for a value, or null.
export function numberOf(value) {
	const found = typeof value === "boolean" ? Number(value) : (value?.value ?? value);
	return typeof found === "number" ? found : null;
}

const FIRST = ["temperature", "humidity", "motion", "contact", "presence", "power_consumption", "weather_condition"];

// Names and values of a device, in the usual order.
export function attributesOf(device) {
	const rank = (name) => (FIRST.indexOf(name) + 1 || 50) + (name.startsWith("custom.") ? 50 : 0);
	const shown = Object.entries(device.attributes).filter(([name]) => name !== "state");
	return shown.sort(([one], [other]) => rank(one) - rank(other) || (one < other ? -1 : 1));
}

// Controls use hue (0..360) and saturation (0..100), regardless of the device's colour space.
export const COLORS = {
	color_hs: { read: (hs) => hs, write: (hs) => hs },
	color_rgb: { read: ({ r, g, b }) => toHs(r, g, b), write: (hs) => toRgb(hs) },
	color_xy: { read: xyToHs, write: hsToXy },
	color_hex: {
		read: (hex) => toHs(...[1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16))),
		write: (hs) => `#${Object.values(toRgb(hs)).map((part) => part.toString(16).padStart(2, "0")).join("")}`,
	},
};

// CIE 1931 chromaticity from and to sRGB (IEC 61966-2-1, white point D65).
function hsToXy(hs) {
	const [r, g, b] = Object.values(toRgb(hs)).map((part) => {
		const share = part / 255;
		return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
	});
	const [x, y, z] = [0.4124 * r + 0.3576 * g + 0.1805 * b, 0.2126 * r + 0.7152 * g + 0.0722 * b, 0.0193 * r + 0.1192 * g + 0.9505 * b];
	const sum = x + y + z || 1;
	return { x: Number((x / sum).toFixed(4)), y: Number((y / sum).toFixed(4)) };
}

function xyToHs({ x, y }) {
	const [X, Z] = [x / (y || 1e-6), (1 - x - y) / (y || 1e-6)];
	const linear = [3.2406 * X - 1.5372 - 0.4986 * Z, -0.9689 * X + 1.8758 + 0.0415 * Z, 0.0557 * X - 0.204 + 1.057 * Z];
	const most = Math.max(...linear, 1e-6);
	return toHs(...linear.map((part) => {
		const share = Math.max(part / most, 0);
		return 255 * (share <= 0.0031308 ? 12.92 * share : 1.055 * share ** (1 / 2.4) - 0.055);
	}));
}

function toRgb({ hue, saturation }) {
	const part = (offset) => {
		const k = (offset + hue / 60) % 6;
		return Math.round(255 * (1 - (saturation / 100) * Math.max(0, Math.min(k, 4 - k, 1))));
	};
	return { r: part(5), g: part(3), b: part(1) };
}

function toHs(r, g, b) {
	const max = Math.max(r, g, b);
	const span = max - Math.min(r, g, b);
	const sector = max === r ? (g - b) / span : max === g ? 2 + (b - r) / span : 4 + (r - g) / span;
	return { hue: span ? Math.round(sector * 60 + 360) % 360 : 0, saturation: max ? Math.round((100 * span) / max) : 0 };
}
