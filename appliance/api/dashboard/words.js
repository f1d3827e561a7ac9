// Translates texts, and formats dates and numbers. Each language has one table of texts; the page fetches only the
// table of the chosen language.

import { stored } from "./storage.js";

export const LANGUAGES = { en: "English", de: "Deutsch", es: "Español", fr: "Français", it: "Italiano", nl: "Nederlands", pl: "Polski" };
export const LANGUAGE = "lares_language";
export const SCHEME = "lares_scheme";

const isKnown = (tag) => Object.hasOwn(LANGUAGES, tag.split("-")[0]);
export const locale = [stored(LANGUAGE), ...navigator.languages].find((each) => each && isKnown(each)) ?? "en";

// Use light or dark colours. If `scheme` is empty, use the browser's setting.
export function keepScheme(scheme) {
	stored(SCHEME, scheme || null);
	if (scheme) document.documentElement.dataset.scheme = scheme;
	else delete document.documentElement.dataset.scheme;
}

if (stored(SCHEME)) keepScheme(stored(SCHEME));

export const language = locale.split("-")[0];

const table = new Map();

// Resolves when the words are loaded.
export const ready = import(`./words_${language}.js`).then(({ words }) => {
	let section = "";
	for (const line of words.trim().split("\n")) {
		const [key, text] = line.split(/: (.*)/);
		if (text) table.set(section + key, text);
		else section = key.slice(1).replace("]", ".");
	}
});

// Return the text for this key, with the values in place of `{name}`. If the key has no text, return the fallback.
export function t(key, values = {}, fallback = key) {
	return table.get(key)?.replace(/\{(\w+)\}/g, (_, name) => values[name]) ?? fallback;
}

// Return the words for a name that the hub uses.
export function plain(name) {
	const words = String(name).replaceAll("_", " ");
	return words.charAt(0).toUpperCase() + words.slice(1);
}

// The creation of a formatter is slow, so each formatter is created once, at its first use.
export function formatterOf(make) {
	let made;
	return () => (made ??= make());
}

function formatter(make) {
	const made = formatterOf(make);
	return (value) => made().format(value);
}

export const dates = (options) => formatter(() => new Intl.DateTimeFormat(locale, options));
export const clock = dates({ timeStyle: "short" });
const DAY = dates({ weekday: "short", hour: "numeric", minute: "2-digit" });
const DATE = dates({ dateStyle: "medium", timeStyle: "short" });
const WEEK_MS = 6 * 86_400_000;

const NUMBERS = [0, 1, 2].map((digits) => formatter(() => new Intl.NumberFormat(locale, { maximumFractionDigits: digits })));
const SMALL = formatter(() => new Intl.NumberFormat(locale, { maximumSignificantDigits: 2 }));

// Format a number. Integers below 10,000 need no formatter, because their format is the same in all supported
// languages. Small numbers keep two digits.
export function number(value, digits = 1) {
	if (Number.isInteger(value) && Math.abs(value) < 10_000) return String(value);
	return (digits && Math.abs(value) < 0.1 ? SMALL : NUMBERS[digits])(value);
}

// Return the suffix for a unit: `80%`, `80 %`. `Intl` writes `180 deg` in English and `20 st. C` in Polish, and
// creating formatters is slow.
function suffixOf(unit) {
	if (unit === "%") return t("unit.percent");
	if (unit === "°C" || unit === "°F") return t("unit.degree", { of: unit[1] });
	return unit && unit !== "°" ? ` ${unit}` : unit;
}

export const withUnit = (value, unit, digits = 1) => `${number(value, digits)}${suffixOf(unit)}`;

export const counted = (count, unit, more = {}) =>
	new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "short", ...more }).format(count);

// Format seconds in the largest unit for which the count is a whole number above 1: `60 s`, `2 min`, `3 hr`. A count
// of 1 would need another sentence: "every hour".
export function duration(secs) {
	if (secs > 3600 && secs % 3600 === 0) return counted(secs / 3600, "hour");
	return secs > 60 && secs % 60 === 0 ? counted(secs / 60, "minute") : counted(secs, "second");
}

// Format a moment of a schedule, which has no time zone.
export const inUtc = (options, moment) => new Intl.DateTimeFormat(locale, { ...options, timeZone: "UTC" }).format(moment);
export const timeOfDay = (text) => inUtc({ timeStyle: text.length > 5 ? "medium" : "short" }, Date.parse(`2024-01-01T${text}Z`));

// Format a moment briefly: the time with the weekday or, for moments outside of this week, with the date.
export function time(moment) {
	const at = new Date(moment);
	if (Number.isNaN(Number(at))) return "–";
	if (at.toDateString() === new Date().toDateString()) return clock(at);
	return (Math.abs(Number(at) - Date.now()) < WEEK_MS ? DAY : DATE)(at);
}
