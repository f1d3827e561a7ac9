// Values of devices as people read them.

import { number, plain, t } from "./words.js";

const UNITS = { celsius: "°C", fahrenheit: "°F", percent: "%", kelvin: "K" };
const NAME = /^[a-z_]+$/;
const PERCENTAGES = ["brightness", "battery", "volume", "cover_position", "cover_tilt"];

export const nameOf = (device) => device.name || device.id;
export const classOf = (device) => device.info?.class ?? device.kind.toLowerCase();
export const labelOf = (attribute, device) =>
	device?.metadata?.vendor_specific?.labels?.[attribute] ?? t(`attribute.${attribute}`, {}, plain(attribute.split(".").pop()));
export const unitOf = (unit) => UNITS[unit] ?? unit ?? "";

// The value as text, with its unit.
export function show(attribute, value) {
	if (value === null || value === undefined) return "–";
	if (typeof value === "boolean") return t(`${attribute}.${value}`, {}, t(value ? "yes" : "no"));
	if (typeof value === "number") return number(value, 2) + (PERCENTAGES.includes(attribute) ? " %" : "");
	if (typeof value === "string") return t(`value.${value}`, {}, NAME.test(value) ? plain(value) : value);
	if (typeof value.value === "number") return `${number(value.value)} ${unitOf(value.unit)}`;
	return Object.values(value).join(" · ");
}

// What a status or a name of the hub's is called.
export const word = (name) => t(`value.${name}`, {}, plain(name));
export const actionWord = (name) => t(`action.${name}`, {}, plain(name));

// The number by which a value can be drawn, or null.
export function numberOf(value) {
	const found = typeof value === "boolean" ? Number(value) : (value?.value ?? value);
	return typeof found === "number" ? found : null;
}

const FIRST = ["temperature", "humidity", "motion", "contact", "presence", "power_consumption", "weather_condition"];

// Name and value of what a device shows, in the order in which people look for it.
export function attributesOf(device) {
	const rank = (name) => (FIRST.indexOf(name) + 1 || 50) + (name.startsWith("custom.") ? 50 : 0);
	const shown = Object.entries(device.attributes).filter(([name]) => name !== "state");
	return shown.sort(([one], [other]) => rank(one) - rank(other) || (one < other ? -1 : 1));
}

// Colours are shown and chosen as hue (0..360) and saturation (0..100); devices know one of these two.
export const COLORS = {
	color_hs: { read: (hs) => hs, write: (hs) => hs },
	color_rgb: { read: ({ r, g, b }) => toHs(r, g, b), write: (hs) => toRgb(hs) },
};

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
