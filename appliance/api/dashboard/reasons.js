// Describes triggers and conditions of automations in words.

import { dayOfYear, listOf, minutes, weekday } from "./calendar.js";
import { state } from "./store.js";
import { labelOf, nameOf, show, word } from "./values.js";
import { duration, t, timeOfDay } from "./words.js";

const SIGNS = { equals: "=", above: ">", below: "<" };

const deviceOf = (id) => state.devices.get(id) ?? { id };
const nameIn = (kind, id) => state[kind].get(id)?.name ?? id;
const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// Parse JSON, or return the text itself.
export function valueOf(text) {
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}

// Format a value of this attribute. A number without a unit gets the unit of the device's value.
function measured(attribute, value, device) {
	const unit = device?.attributes?.[attribute]?.unit;
	return show(attribute, typeof value === "number" && unit ? { value, unit } : value, device);
}

// Format a comparison: `= on`, `> 20 °C < 25 °C`. Return an empty string if every value matches.
const wanted = (fields, told) => Object.entries(SIGNS).filter(([name]) => name in fields)
	.map(([name, sign]) => `${sign} ${told(fields[name])}`).join(" ");

const inDays = (what, days = []) => [what, days.length && listOf(days.map(weekday))].filter(Boolean).join(", ");
const lasting = (what, secs) => (secs ? t("trigger.lasting", { what, duration: duration(secs) }) : what);

function whoOf({ device_id: given, device_count: count, room_id: room, group_id: group }) {
	if (room) return t("trigger.room", { name: nameIn("rooms", room) });
	if (group) return t("trigger.group", { name: nameIn("groups", group) });
	const ids = [given ?? []].flat();
	const more = count > ids.length ? [`+${count - ids.length}`] : [];
	return given ? listOf([...ids.map((id) => nameOf(deviceOf(id))), ...more]) : t("trigger.any_device");
}

// A condition about an attribute of a device.
function attributeOf(fields, isChange) {
	const { attribute, device_id: ids = [], for_secs: held, debounce_secs: rested, duration_secs: matched } = fields;
	const who = whoOf(fields);
	const devices = [ids].flat().map(deviceOf);
	if (!attribute) return t("trigger.change", { what: who });
	const name = `${who}: ${labelOf(attribute, devices[0])}`;
	const compared = wanted(fields, (value) => measured(attribute, value, devices[0]));
	const what = compared || !isChange ? `${name} ${compared}` : t("trigger.change", { what: name });
	return lasting(what, held ?? rested ?? matched);
}

/** @type {(fields: any, what: string) => string} */
const sun = ({ offset_mins: offset, weekdays }, what) => inDays(offset ? `${what} ${minutes(offset)}` : what, weekdays);
const placeOf = (fields) => {
	const bounds = [["least", fields.min_devices], ["most", fields.max_devices]].filter(([, count]) => count !== undefined);
	return `${whoOf(fields)}: ${bounds.map(([name, count]) => t(`condition.${name}`, { count })).join(", ")}`;
};
const edgeOf = (fields, side) => fields[side] && sun({ offset_mins: fields[`${side}_offset_mins`] }, t(`condition.${side}_${fields[side]}`));
const variableOf = (fields) => `${t("trigger.variable", fields)} ${wanted(fields, asText)}`;

// The words for each kind of trigger and condition.
const KINDS = {
	device_state_change: (fields) => attributeOf(fields, true),
	weather_state: (fields) => attributeOf(fields, true),
	device_event: (fields) => t(fields.event ? "trigger.event" : "trigger.any_event", { who: whoOf(fields), event: fields.event && word(fields.event) }),
	wall_clock: ({ time, weekdays }) => inDays(t("trigger.at", { time: timeOfDay(time) }), weekdays),
	date: ({ year, month, day, time }) => `${dayOfYear(month, day)}${year ? ` ${year}` : ""}, ${timeOfDay(time)}`,
	cron: ({ expression, timezone = "UTC" }) => t("trigger.cron", { expression, zone: timezone }),
	sunrise: (fields) => sun(fields, t("cause.sunrise")),
	sunset: (fields) => sun(fields, t("cause.sunset")),
	interval: ({ every_secs: secs }) => t("trigger.interval", { duration: duration(secs) }),
	variable_change: (fields) => (wanted(fields, asText) ? variableOf(fields) : t("trigger.change", { what: t("trigger.variable", fields) })),
	timer: (fields) => t("trigger.timer", fields),
	webhook: (fields) => t("trigger.webhook", fields),
	adapter_lifecycle: ({ adapter }) => t(adapter ? "trigger.adapter" : "trigger.any_adapter", { name: adapter }),
	system_error: ({ contains }) => [t("trigger.fails"), contains].filter(Boolean).join(": "),
	device_state: (fields) => attributeOf(fields, false),
	presence: (fields) => attributeOf(fields, false),
	room_state: placeOf,
	group_state: placeOf,
	variable: variableOf,
	time_window: ({ start, end }) => [start, end].map(timeOfDay).join(" – "),
	weekday: ({ days }) => inDays("", days),
	date_range: ({ from, to }) => [from, to].map((each) => dayOfYear(...each.split("-").map(Number))).join(" – "),
	sun_position: (fields) => ["after", "before"].map((side) => edgeOf(fields, side)).filter(Boolean).join(", "),
	all: () => t("condition.all"),
	any: () => t("condition.any"),
	none: () => t("condition.none"),
};

// A trigger or condition in words. For an unknown kind, list the fields.
export const inWords = (fields) => (KINDS[fields.type] ?? JSON.stringify)(fields);

// A trigger or condition in words, with the present value of its device, if any.
export function inWordsNow(fields) {
	const { attribute, device_id: ids } = fields;
	const [device, ...others] = [ids ?? []].flat().map(deviceOf);
	const now = others.length ? undefined : device?.attributes?.[attribute];
	return now === undefined ? inWords(fields) : `${inWords(fields)} (${t("trigger.now", { value: show(attribute, now, device) })})`;
}

const WAS = /^(?:variable '.*?'|\S+) was ('?)(.*)\1, (?:needs .*|must not be)$/s;

// From the hub's sentence, extract the value that did not meet a condition. Return null for other sentences.
export function foundBy({ attribute, device_id: id }, said) {
	const [, quote, text] = WAS.exec(said) ?? [];
	if (text === undefined) return null;
	const value = quote ? text : valueOf(text);
	return t("reason.was", { value: attribute ? measured(attribute, value, deviceOf(id)) : asText(value) });
}

// Return the condition with this number, `2` or `2.1`, if it exists.
export const conditionAt = (conditions, number) =>
	String(number).split(".").reduce((found, at) => (found?.conditions ?? [])[Number(at) - 1], { conditions });
