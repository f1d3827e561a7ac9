// History charts: the values of a device in a period from one hour to one year; meters by day and by month; and the
// last day of a room. The data is fetched on demand.

import { get, segment } from "./api.js";
import { date, month, shortDate, shortDay, shortMonth } from "./calendar.js";
import { tags, use, useRef, useState } from "./dom.js";
import { pointsOf, trace } from "./lines.js";
import { inTurn, useLoaded } from "./loading.js";
import { state } from "./store.js";
import { card, line, scroll, titled } from "./ui.js";
import { attributesOf, labelOf, nameOf, numberOf, show } from "./values.js";
import { clock, t, time } from "./words.js";

const { button, dd, details, div, dl, dt, figcaption, figure, li, p, path, small, span, strong, summary, svg, ul } = tags;

const DAY_MS = 86_400_000;
// The length and the resolution of each period. Storage contains hourly values. A chart of a year shows daily values,
// because hourly values would be too many.
const PERIODS = {
	hour: [DAY_MS / 24, "raw"],
	day: [DAY_MS, "raw"],
	week: [7 * DAY_MS, "hour"],
	month: [30 * DAY_MS, "hour"],
	year: [365 * DAY_MS, "day"],
};
const METER_UNITS = ["Wh", "kWh", "MWh", "GWh", "MJ", "GJ", "m³", "L", "gal", "ft³"];
const MAX_ROWS = 200;
const MAX_LINES = 6;
const MAX_ENTRIES = 1000; // in one answer
const WIDTH = 640;
const HEIGHT = 200;
const SERIES_HEIGHT = 160;

// Load the values since `from`, newest first. Load one value per minute if one answer cannot contain all values.
async function loadPast(device, attribute, from, resolution) {
	const path = `devices/${segment(device.id)}/history/${segment(attribute)}`;
	const ask = (of, more = {}) =>
		get(`${path}?${new URLSearchParams({ limit: String(MAX_ENTRIES), start: new Date(from).toISOString(), resolution: of, ...more })}`);
	const found = await ask(resolution);
	if (found.resolution !== "raw" || found.entries.length < MAX_ENTRIES) return found;
	const { entries } = await ask("minute");
	if (entries.length < MAX_ENTRIES) return { ...found, entries };
	const older = await ask("minute", { end: entries.at(-1).observed_at });
	return { ...found, entries: [...entries.slice(0, -1), ...older.entries] };
}

// Return a function that returns the loaded values with all values since the first drawing. Of the values before
// `from`, only the last value is included.
function useLive() {
	const live = useRef(new Map()).current;
	return (device, attribute, entries, from) => {
		const { attributes: { [attribute]: value }, updated_at: at } = state.devices.get(device.id) ?? device;
		const text = JSON.stringify(value);
		const kept = live.get(`${device.id} ${attribute}`) ?? { text, entries: [] };
		live.set(`${device.id} ${attribute}`, kept);
		if (text !== kept.text && text !== undefined) kept.entries = [{ observed_at: new Date(at).toISOString(), value }, ...kept.entries].slice(0, MAX_ENTRIES);
		kept.text = text;
		const newest = Date.parse(entries[0]?.observed_at ?? 0);
		const all = [...kept.entries.filter((each) => Date.parse(each.observed_at) > newest), ...entries];
		const before = all.findIndex((each) => Date.parse(each.observed_at) < from);
		return before < 0 ? all : all.slice(0, before + 1);
	};
}

const pressed = (isPressed, look, label, onclick) =>
	button({ key: label, type: "button", class: look, "aria-pressed": String(isPressed), onclick }, label);

const isMeter = (value) => value?.period !== undefined || METER_UNITS.includes(value?.unit);

export function History({ device }) {
	const attributes = attributesOf(device);
	const [picked, setChosen] = useState([]);
	const [isMany, setMany] = useState(false);
	const [period, setPeriod] = useState("day");
	const chosen = picked.length ? picked : attributes.slice(0, 1).map(([name]) => name);
	if (!chosen.length) return null;
	const choose = (name) => {
		if (!isMany) setChosen([name]);
		else if (!chosen.includes(name)) setChosen([...chosen, name].slice(-MAX_LINES));
		else if (chosen.length > 1) setChosen(chosen.filter((each) => each !== name));
	};
	const compare = () => {
		if (isMany) setChosen(chosen.slice(-1));
		setMany(!isMany);
	};
	const shown = { key: `${chosen} ${period}`, device, period };
	return titled(t("device.history"), card(
		dl({ class: "facts" }, attributes.map(([name, value]) => div({ key: name, class: chosen.includes(name) && "chosen" },
			dt(pressed(chosen.includes(name), "link", labelOf(name, device), () => choose(name))), dd(show(name, value, device))))),
		div({ class: "tabs", role: "group", "aria-label": t("device.history") },
			Object.keys(PERIODS).map((each) => pressed(each === period, "", t(`period.${each}`), () => setPeriod(each))),
			attributes.length > 1 && pressed(isMany, "", t("device.compare"), compare)),
		chosen.length > 1 ? use(Together, { ...shown, attributes: chosen }) : use(Picture, { ...shown, attribute: chosen[0] })));
}

// The chart for one attribute: bars for a meter, otherwise a line.
function Picture({ device, attribute, period, isBare = false }) {
	const until = Date.now();
	const [length, fine] = PERIODS[period];
	const from = until - length;
	const withLive = useLive();
	const counts = length > DAY_MS && isMeter(device.attributes[attribute]);
	const { data, error } = useLoaded(() => loadPast(device, attribute, from, counts ? "day" : fine), [state.isOnline]);
	const away = useLoaded(() => (fine === "raw" ? loadPast(device, "state", from, "raw") : Promise.resolve({ entries: [] })),
		[state.isOnline, device.attributes.state]);
	const entries = data && (fine === "raw" ? withLive(device, attribute, data.entries, from) : data.entries);
	if (!entries?.length) return p({ class: "empty picture" }, error ?? (entries && t("device.no_history")));
	const name = labelOf(attribute, device);
	const told = (value) => show(attribute, value, device);
	const bars = counts && entries.some(({ increase }) => increase !== undefined) && barsOf(entries, period === "year");
	const label = bars ? t(`device.by_${period === "year" ? "month" : "day"}`, { attribute: name })
		: t("device.picture", { attribute: name, count: entries.length });
	const rows = bars ? bars.map((bar, at) => line(at, "", bar.name, told(bar.value))).reverse()
		: entries.slice(0, MAX_ROWS).map((entry, at) => line(at, "", time(entry.observed_at), ofTime(entry, told)));
	return [
		bars ? use(Bars, { bars, from, until, label, told })
			: use(Chart, { entries, from, until, label, told, step: LONGEST_MS[data.resolution],
				gaps: fine === "raw" ? awayOf(away.data?.entries ?? []) : [] }),
		fine === "raw" && data.resolution === "hour" && p({ class: "hint" }, t("device.hours")),
		!isBare && details(summary(t("device.table")), scroll(label, rows)),
	];
}

const LONGEST_MS = { hour: 2.5 * DAY_MS / 24, day: 2.5 * DAY_MS }; // after this time, a value is outdated

// Return the periods in which the device was unreachable. `entries` are the entries of the state, newest first.
function awayOf(entries) {
	const all = [...entries].reverse();
	return all.map(({ observed_at: at, value }, index) => ["offline", "unavailable"].includes(value)
		&& [Date.parse(at), Date.parse(all[index + 1]?.observed_at ?? new Date())]).filter(Boolean);
}

// Format a value with the lowest and highest value of its period.
const ofTime = ({ value, min, max }, told) => (min === undefined ? told(value) : `${told(value)} (${told(min)} – ${told(max)})`);

// Sum up the consumption by day or by month.
function barsOf(entries, isByMonth) {
	const bars = new Map();
	for (const { observed_at: at, increase } of [...entries].reverse()) {
		const begins = Date.parse(at);
		const noon = new Date(begins + DAY_MS / 2); // the home's midnight may have another date in the browser's time zone
		const key = isByMonth ? `${noon.getFullYear()} ${noon.getMonth()}` : at;
		const bar = bars.get(key) ?? { at: begins, name: (isByMonth ? month : date)(noon), sum: 0 };
		bar.sum += numberOf(increase) ?? 0;
		bar.value = { ...increase, value: bar.sum };
		bars.set(key, bar);
	}
	return [...bars.values()];
}

function Bars({ bars, from, until, label, told }) {
	const [chosen, setChosen] = useState(null);
	const most = Math.max(...bars.map(({ sum }) => sum)) || 1;
	const x = (at) => ((WIDTH * (Math.max(at, from) - from)) / (until - from)).toFixed(1);
	const bar = chosen ?? bars.at(-1);
	const edges = (bar, at) => [x(bar.at), x((bars[at + 1]?.at ?? until) - (until - from) / 200)];
	const choose = ({ currentTarget, clientX }) => {
		const box = currentTarget.getBoundingClientRect();
		const at = from + ((clientX - box.left) / box.width) * (until - from);
		setChosen(bars.findLast((each) => each.at <= at) ?? bars[0]);
	};
	return figure({ class: "chart" },
		figcaption(strong(told(bar.value)), small(bar.name)),
		canvas(label, choose, () => setChosen(null), [],
			bars.map((each, at) => {
				const [left, right] = edges(each, at);
				const top = (HEIGHT - (HEIGHT * Math.max(each.sum, 0)) / most).toFixed(1);
				return path({ key: at, class: each === bar ? "bar chosen" : "bar", d: `M${left} ${HEIGHT}V${top}H${right}V${HEIGHT}Z` });
			})),
		div({ class: "axis" }, span(bars[0].name), span(bars.at(-1).name)));
}

// A chart with the highest and lowest value on the left, and times below.
const plot = (edges, ticks, picture) => div({ class: "plot" },
	div({ class: edges.length === 1 ? "edges level" : "edges" }, edges), picture,
	div({ class: "axis times" }, ticks.map(({ share, text }) => span({ key: share, style: { left: `${share}%` } }, text))));

const HOUR_MS = DAY_MS / 24;
const STEPS = [HOUR_MS / 4, HOUR_MS, 6 * HOUR_MS, DAY_MS, 7 * DAY_MS, 61 * DAY_MS];
const MAX_TICKS = 7;

// Return round times between `from` and `until`, with their positions in percent.
function ticksOf(from, until) {
	const step = STEPS.find((each) => (until - from) / each <= MAX_TICKS) ?? STEPS.at(-1);
	const midnight = new Date(from).setHours(0, 0, 0, 0);
	const written = step < DAY_MS ? clock : step < 7 * DAY_MS ? shortDay : step < 60 * DAY_MS ? shortDate : shortMonth;
	const ticks = [];
	for (let at = midnight; at < until; at = step < DAY_MS ? at + step : new Date(at + step + HOUR_MS * 2).setHours(0, 0, 0, 0)) {
		const share = (100 * (at - from)) / (until - from);
		if (share > 3 && share < 97) ticks.push({ share: share.toFixed(2), text: written(at) });
	}
	return ticks;
}

const canvas = (label, choose, leave, ticks, ...drawn) => svg({
	viewBox: `0 -8 ${WIDTH} ${HEIGHT + 16}`,
	preserveAspectRatio: "none",
	role: "img",
	"aria-label": label,
	onpointermove: choose,
	onpointerdown: choose,
	onpointerleave: leave,
}, gridOf(HEIGHT, ticks), ...drawn);

const gridOf = (height, ticks) => {
	const lines = [0, height / 2, height].map((y) => `M0 ${y}H${WIDTH}`);
	return path({ class: "grid", d: [...lines, ...ticks.map(({ share }) => `M${(share * WIDTH) / 100} 0V${height}`)].join("") });
};

// A stepped line of values. If the values are means, a band shows the range from the lowest to the highest value.
function Chart({ entries, from, until, label, told, step, gaps }) {
	const [chosen, setChosen] = useState(null);
	const points = pointsOf(entries);
	const { line, area, x, y, low, high } = trace(points, from, until, WIDTH, HEIGHT, undefined, { step, gaps });
	const band = bandOf(points, x, y);
	const choose = ({ currentTarget, clientX }) => {
		const box = currentTarget.getBoundingClientRect();
		const at = from + ((clientX - box.left) / box.width) * (until - from);
		setChosen(points.findLast((point) => point.at <= at) ?? points[0]);
	};
	const point = chosen ?? points.at(-1);
	const edge = (level) => {
		const { value, min, max, low: lowest } = points.find((each) => [each.low, each.level, each.high].includes(level));
		if (min === undefined) return span(told(value));
		return span(told(level === lowest ? min : max));
	};
	return figure({ class: "chart" },
		figcaption(strong(told(point.value)), small(point.min === undefined ? time(point.at) : `${told(point.min)} – ${told(point.max)}, ${time(point.at)}`)),
		plot(high === low ? [edge(high)] : [edge(high), edge(low)], ticksOf(from, until), canvas(label, choose, () => setChosen(null), ticksOf(from, until),
			path({ class: "area", d: band ?? area }),
			path({ class: "line", d: line }),
			chosen && path({ class: "cursor", d: `M${x(chosen.at)} -8V${HEIGHT + 8}` }),
			chosen && path({ class: "dot", d: `M${x(chosen.at)} ${y(chosen.level)}h.01` }))),
		band && ul({ class: "legend" }, li({ class: "mean" }, t("chart.mean")), li({ class: "span" }, t("chart.span"))));
}

// Return the outline of the band between the lowest and highest values. Return null if there are no lowest and
// highest values.
function bandOf(points, x, y) {
	if (points.every(({ min }) => min === undefined)) return null;
	const there = points.map(({ at, high }, index) => `${index ? "H" : "M"}${x(at)}${index ? "V" : " "}${y(high)}`);
	const back = [...points].reverse().map(({ at, low }) => `V${y(low)}H${x(at)}`);
	return `${there.join("")}H${WIDTH}${back.join("")}Z`;
}

// Return `series` (`{device, attribute, entries}`), the series that are loaded so far; `isWhole`, which is true once all
// series are loaded; and `error`, a sentence if loading failed.
function useSeries(wanted, from, resolution) {
	const [series, setSeries] = useState([]);
	const withLive = useLive();
	const { data, error } = useLoaded(() => Promise.all(wanted.map(async ({ device, attribute }) => {
		const { entries } = await inTurn(() => loadPast(device, attribute, from, resolution));
		const isOther = (each) => each.device !== device || each.attribute !== attribute;
		if (entries.length) setSeries((old) => [...old.filter(isOther), { device, attribute, entries }]);
	})), [state.isOnline]);
	const shown = resolution === "raw" ? series.map((each) => ({ ...each, entries: withLive(each.device, each.attribute, each.entries, from) })) : series;
	return { series: shown, isWhole: data !== undefined, error };
}

const without = ({ isWhole, error }) => p({ class: "empty picture" }, error ?? (isWhole && t("device.no_history")));

// Several attributes of a device in one chart, each with a separate scale.
function Together({ device, attributes, period }) {
	const until = Date.now();
	const [length, fine] = PERIODS[period];
	const from = until - length;
	const loaded = useSeries(attributes.map((attribute) => ({ device, attribute })), from, fine);
	const { series } = loaded;
	if (!series.length) return without(loaded);
	const found = attributes.flatMap((name) => series.filter(({ attribute }) => attribute === name));
	const lines = found.map(({ attribute, entries }) => ({
		name: labelOf(attribute, device),
		entries,
		text: (value) => show(attribute, value, device),
	}));
	return use(SeriesChart, { label: lines.map(({ name }) => name).join(", "), lines, from, until, hasOwnScales: true });
}

// A chart of the last day for the device's main attribute: the level, the first number, or the power.
export function Today({ device }) {
	const [name] = attributesOf(device).filter(([each]) => !["battery", "color_mode"].includes(each))
		.sort(([one], [other]) => rankOf(one) - rankOf(other))[0] ?? [];
	return name ? titled(t("sheet.today"), use(Picture, { key: name, device, attribute: name, period: "day", isBare: true })) : null;
}

const rankOf = (name) => ["brightness", "temperature", "power_consumption", "power", "lock", "cover_position", "contact", "motion",
	"occupancy"].indexOf(name) >>> 0;

// Charts of a room's readings over a day: one chart per attribute, with one line per device.
export function Day({ measured }) {
	const until = Date.now();
	const from = until - DAY_MS;
	const loaded = useSeries(measured, from, "raw");
	const { series } = loaded;
	const kinds = [...new Set(measured.map(({ attribute }) => attribute))].filter((kind) => series.some((each) => each.attribute === kind));
	const linesOf = (kind) => series.filter(({ attribute }) => attribute === kind)
		.map(({ device, entries }) => ({ name: nameOf(device), entries, text: (value) => show(kind, value, device) }));
	return titled(t("room.day"), kinds.length ? kinds.map((kind) => div({ key: kind }, card(use(SeriesChart, {
		label: labelOf(kind, series.find((each) => each.attribute === kind).device), lines: linesOf(kind), from, until,
	})))) : without(loaded));
}

// Several series in one chart, over the same time and scale. Each of the `lines` has a name, entries (newest first),
// and `text`, which formats a value. If the scales are separate, each series fills the chart's height.
function SeriesChart({ label, lines, from, until, hasOwnScales = false }) {
	const drawn = lines.map(({ name, entries, text }) => ({ name, text, points: pointsOf(entries), now: entries[0].value }));
	const all = drawn.flatMap(({ points, text }) => points.map((point) => ({ ...point, text })));
	const lineOf = (points) => trace(points, from, until, WIDTH, SERIES_HEIGHT, bounds(hasOwnScales ? points : all)).line;
	const { low, high } = bounds(all);
	const ticks = ticksOf(from, until);
	const edge = (sought) => {
		const { value, text } = all.find(({ level }) => level === sought);
		return span(text(value));
	};
	return figure({ class: "chart" },
		figcaption(strong(label)),
		plot(hasOwnScales ? [] : high === low ? [edge(high)] : [edge(high), edge(low)], ticks,
			svg({ viewBox: `0 -8 ${WIDTH} ${SERIES_HEIGHT + 16}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
				gridOf(SERIES_HEIGHT, ticks),
				drawn.map(({ points }, at) => path({ key: at, class: `line line${at % 6}`, d: lineOf(points) })))),
		ul({ class: "legend" }, drawn.map(({ name, now, text }, at) => li({ key: at, class: `line${at % 6}` }, span({ dir: "auto" }, name), strong(text(now))))));
}

function bounds(points) {
	const levels = points.map((point) => point.level);
	return { low: Math.min(...levels), high: Math.max(...levels) };
}
