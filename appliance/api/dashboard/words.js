// Every sentence from one table for each language; dates and numbers as that language writes them.

import { de } from "./words_de.js";
import { en } from "./words_en.js";

const TABLES = { en, de };

const locale = navigator.languages.find((each) => each.slice(0, 2) in TABLES) ?? "en";

export const language = locale.slice(0, 2);

const table = new Map();
let section = "";
for (const line of TABLES[language].trim().split("\n")) {
	const [key, text] = line.split(/: (.*)/);
	if (text) table.set(section + key, text);
	else section = key.slice(1).replace("]", ".");
}

// The text of this key with `{name}` filled in; without a text the fallback.
export function t(key, values = {}, fallback = key) {
	return table.get(key)?.replace(/\{(\w+)\}/g, (_, name) => values[name]) ?? fallback;
}

// A name of the hub's as words.
export function plain(name) {
	const words = String(name).replaceAll("_", " ");
	return words.charAt(0).toUpperCase() + words.slice(1);
}

const dates = (options) => new Intl.DateTimeFormat(locale, options);
const CLOCK = dates({ timeStyle: "short" });
const SECONDS = dates({ timeStyle: "medium" });
const DAY = dates({ weekday: "short", hour: "numeric", minute: "2-digit" });
const DATE = dates({ dateStyle: "medium", timeStyle: "short" });
const WEEK_MS = 6 * 86_400_000;

export const number = (value, digits = 1) => value.toLocaleString(locale, { maximumFractionDigits: digits });
export const seconds = (moment) => SECONDS.format(moment);

// A moment as short as it can be told: the time today, with the weekday this week, else with the date.
export function time(moment) {
	const at = new Date(moment);
	if (Number.isNaN(Number(at))) return "–";
	if (at.toDateString() === new Date().toDateString()) return CLOCK.format(at);
	return (Math.abs(at - Date.now()) < WEEK_MS ? DAY : DATE).format(at);
}
