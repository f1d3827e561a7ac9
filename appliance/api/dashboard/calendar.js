// Formats dates, schedules, and lists for the views that load later.

import { clock, counted, dates, formatterOf, inUtc, locale, time } from "./words.js";

export const date = dates({ dateStyle: "medium" });
export const weekdayAndDate = dates({ weekday: "long", day: "numeric", month: "long" });
export const month = dates({ month: "long", year: "numeric" });
export const shortDay = dates({ weekday: "short" });
export const shortDate = dates({ day: "numeric", month: "short" });
export const shortMonth = dates({ month: "short" });
export const seconds = dates({ timeStyle: "medium" });

// Format an offset in minutes from an event. A negative number means a time before the event.
export const minutes = (count) => counted(count, "minute", { signDisplay: "always" });

// Format days and dates of schedules, which have no time zone: `mon`, a month and a day.
const DAY_MS = 86_400_000;
const MONDAY = Date.UTC(2024, 0, 1);
const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
export const weekday = (name) => inUtc({ weekday: "long" }, MONDAY + DAYS.indexOf(name) * DAY_MS);
export const dayOfYear = (month, day) => inUtc({ month: "long", day: "numeric" }, Date.UTC(2024, month - 1, day));

const ALL = formatterOf(() => new Intl.ListFormat(locale));
export const listOfAll = (names) => ALL().format(names);
export const listOf = (names) => new Intl.ListFormat(locale, { type: "disjunction" }).format(names);

// Return whether a clock in this zone now differs from the browser's clock.
export function hasOtherTime(timeZone) {
	const now = new Date();
	try {
		return now.toLocaleString("en", { timeZone }) !== now.toLocaleString("en");
	} catch {
		return false; // the browser does not know the zone
	}
}

const NEAR = formatterOf(() => new Intl.RelativeTimeFormat(locale, { numeric: "auto" }));

// Format a moment briefly, with "yesterday" and "tomorrow" in words.
export function dayTime(moment) {
	const at = new Date(moment);
	const days = Math.round((new Date(at).setHours(0, 0, 0, 0) - new Date().setHours(0, 0, 0, 0)) / DAY_MS);
	return Math.abs(days) === 1 ? `${NEAR().format(days, "day")} ${clock(at)}` : time(at);
}

const SHORT = dates({ weekday: "short", day: "numeric", month: "short" });

// Format a moment briefly, with seconds.
export function moment(moment) {
	const at = new Date(moment);
	return at.toDateString() === new Date().toDateString() ? seconds(at) : `${SHORT(at)} ${seconds(at)}`;
}
