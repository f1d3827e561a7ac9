// Every sentence from one table for each language, of which only the one that is spoken is fetched; dates and numbers as
// that language writes them.

const LANGUAGES = ["en", "de", "es", "fr", "it", "nl", "pl"];

const locale = navigator.languages.find((each) => LANGUAGES.includes(each.split("-")[0])) ?? "en";

export const language = locale.split("-")[0];

const table = new Map();

// Settled once there are words; nothing is told before.
export const ready = import(`./words_${language}.js`).then(({ words }) => {
	let section = "";
	for (const line of words.trim().split("\n")) {
		const [key, text] = line.split(/: (.*)/);
		if (text) table.set(section + key, text);
		else section = key.slice(1).replace("]", ".");
	}
});

// The text of this key with `{name}` filled in; without a text the fallback.
export function t(key, values = {}, fallback = key) {
	return table.get(key)?.replace(/\{(\w+)\}/g, (_, name) => values[name]) ?? fallback;
}

// A name of the hub's as words.
export function plain(name) {
	const words = String(name).replaceAll("_", " ");
	return words.charAt(0).toUpperCase() + words.slice(1);
}

// A formatter takes long to make, so each is made once, when it is first needed.
function formatter(make) {
	let made;
	return (value) => (made ??= make()).format(value);
}

const dates = (options) => formatter(() => new Intl.DateTimeFormat(locale, options));
const CLOCK = dates({ timeStyle: "short" });
const SECONDS = dates({ timeStyle: "medium" });
const DAY = dates({ weekday: "short", hour: "numeric", minute: "2-digit" });
const DATE = dates({ dateStyle: "medium", timeStyle: "short" });
const WEEK_MS = 6 * 86_400_000;

const NUMBERS = [0, 1, 2].map((digits) => formatter(() => new Intl.NumberFormat(locale, { maximumFractionDigits: digits })));

// Whole numbers of up to four digits are written alike in every language here, and need no formatter.
export const number = (value, digits = 1) => (Number.isInteger(value) && Math.abs(value) < 10_000 ? String(value) : NUMBERS[digits](value));
export const clock = CLOCK;
export const date = dates({ dateStyle: "medium" });
export const month = dates({ month: "long", year: "numeric" });
export const seconds = SECONDS;

// A moment as short as it can be told: the time today, with the weekday this week, else with the date.
export function time(moment) {
	const at = new Date(moment);
	if (Number.isNaN(Number(at))) return "–";
	if (at.toDateString() === new Date().toDateString()) return CLOCK(at);
	return (Math.abs(Number(at) - Date.now()) < WEEK_MS ? DAY : DATE)(at);
}
