// Pictures: the newest still of a camera, and what devices showed over time as a line, with the small one on a card.

import { download, get, segment } from "./api.js";
import { tags, use, useEffect, useRef, useState } from "./dom.js";
import { inTurn } from "./ui.js";
import { classOf, nameOf, numberOf } from "./values.js";
import { t } from "./words.js";

const { div, img, p, path, svg } = tags;

const REFRESH_MS = 10_000;
const TYPES = /^image\/(jpeg|png|gif|webp)$/;
const CAMERAS = ["camera", "image"];
const TREND_MS = 2 * 86_400_000;
const TREND_STEP_MS = 600_000; // about a pixel

export const isPicture = (value) => TYPES.test(value);

// The newest picture is fetched with the key while somebody can see it, and again every few seconds: a still for each attribute that stands for a picture; for a camera without any, that there is none.
export function stills(device) {
	const shown = Object.keys(device.attributes).filter((name) => isPicture(device.attributes[name]));
	const attributes = shown.length || !CAMERAS.includes(classOf(device)) ? shown : [null];
	return attributes.map((attribute) => use(Still, { key: `still ${attribute}`, device, attribute }));
}

export const cameraStills = (device) => CAMERAS.includes(classOf(device)) && stills(device);

function Still({ device, attribute }) {
	const ref = useRef();
	const [address, setAddress] = useState(undefined); // null: there is none
	useEffect(() => {
		if (!attribute) return setAddress(null);
		let [isInSight, isLoading, isGone, kept] = [false, false, false, null];
		const keep = (blob) => {
			if (kept) URL.revokeObjectURL(kept);
			kept = blob && !isGone ? URL.createObjectURL(blob) : null;
			if (!isGone) setAddress(kept);
		};
		const load = async () => {
			if (!isInSight || isLoading || document.hidden) return;
			isLoading = true;
			const path = `devices/${segment(device.id)}/picture?attribute=${segment(attribute)}`;
			await inTurn(() => download(path)).then(keep, ({ status }) => status === 404 && keep(null)); // else the last one stays
			isLoading = false;
		};
		const observer = new IntersectionObserver((seen) => {
			isInSight = seen.at(-1).isIntersecting;
			load();
		});
		observer.observe(ref.current);
		const timer = setInterval(load, REFRESH_MS);
		return () => {
			isGone = true;
			observer.disconnect();
			clearInterval(timer);
			keep(null);
		};
	}, []);
	return div({ class: "still", ref },
		address && img({ src: address, alt: t("device.still", { name: nameOf(device) }) }),
		address === null && p({ class: "empty" }, t("device.no_picture")));
}

// --- lines -----------------------------------------------------------------------------------------

// Entries newest first become points oldest first; words become levels in the order in which they came. What stands for an
// hour or a day lies between its low and its high.
export function pointsOf(entries) {
	const words = [];
	const level = (value) => {
		const known = numberOf(value);
		if (known !== null) return known;
		const text = JSON.stringify(value);
		if (!words.includes(text)) words.push(text);
		return words.indexOf(text);
	};
	return [...entries].reverse().map(({ observed_at: at, value, min, max }) => {
		const known = level(value);
		return { at: Date.parse(at), value, min, max, level: known, low: numberOf(min) ?? known, high: numberOf(max) ?? known };
	});
}

const boundsOf = (points) => ({ low: Math.min(...points.map(({ low }) => low)), high: Math.max(...points.map(({ high }) => high)) });

// A line in a box of this size that keeps each value until the next, and where a moment and a level lie in it.
export function trace(points, from, until, width, height, { low, high } = boundsOf(points)) {
	const x = (at) => ((width * (Math.max(at, from) - from)) / (until - from || 1)).toFixed(1);
	const y = (level) => (high === low ? height / 2 : height - (height * (level - low)) / (high - low)).toFixed(1);
	const steps = points.map(({ at, level }, index) => (index ? `H${x(at)}V${y(level)}` : `M${x(at)} ${y(level)}`));
	return { line: `${steps.join("")}H${width}`, x, y, low, high };
}

function sparkline(entries, now) {
	const points = pointsOf(entries);
	const until = Date.now();
	const level = numberOf(now);
	if (level !== null) points.push({ ...points.at(-1), at: until, level, low: level, high: level });
	if (points.length < 2) return null;
	const { line } = trace(points, points[0].at, until, 240, 28);
	return svg({ viewBox: "0 -2 240 32", preserveAspectRatio: "none", "aria-hidden": "true" }, path({ d: line }));
}

// The latest values of a sensor's first number as a line: fetched while the card is in sight, and anew with the first value
// that comes a while later.
export function Trend({ device, readings }) {
	const ref = useRef();
	const [entries, setEntries] = useState([]);
	const attribute = readings.find(([, value]) => numberOf(value) !== null)?.[0];
	const period = Math.floor(Number(new Date(device.updated_at)) / TREND_STEP_MS);
	useEffect(() => {
		const observer = new IntersectionObserver(([seen]) => {
			if (!seen.isIntersecting || !attribute) return;
			observer.disconnect();
			const start = new Date(Date.now() - TREND_MS).toISOString();
			const path = `devices/${segment(device.id)}/history/${segment(attribute)}?limit=120&start=${start}`;
			inTurn(() => get(path)).then((history) => setEntries(history.entries), () => {}); // then without a picture
		});
		observer.observe(ref.current);
		return () => observer.disconnect();
	}, [attribute, period]);
	return div({ class: "trend", ref }, attribute && sparkline(entries, device.attributes[attribute]));
}
