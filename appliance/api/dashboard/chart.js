// What devices showed over time as a line: its points, and the small one on a card.

import { tags } from "./dom.js";
import { numberOf } from "./values.js";

const { path, svg } = tags;

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

export function sparkline(entries, now) {
	const points = pointsOf(entries);
	const until = Date.now();
	const level = numberOf(now);
	if (level !== null) points.push({ ...points.at(-1), at: until, level, low: level, high: level });
	if (points.length < 2) return null;
	const { line } = trace(points, points[0].at, until, 240, 28);
	return svg({ viewBox: "0 -2 240 32", preserveAspectRatio: "none", "aria-hidden": "true" }, path({ d: line }));
}
