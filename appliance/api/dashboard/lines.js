// Values over time as a line.

import { numberOf } from "./values.js";

// Convert entries (newest first) to points (oldest first). Words become levels in the order of their first
// appearance. A point for an hour or a day has a lowest and a highest value.
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

// Return a stepped line in a box of this size, the area below the line, and functions for the position of a time and
// of a level. The line keeps each value for at most `step` ms, and is interrupted within `gaps`.
/** @type {(points: any[], from: number, until: number, width: number, height: number, bounds?: any, more?: any) => any} */
export function trace(points, from, until, width, height, { low, high } = boundsOf(points), { step = Infinity, gaps = [] } = {}) {
	const x = (at) => ((width * (Math.max(at, from) - from)) / (until - from || 1)).toFixed(1);
	const y = (level) => (high === low ? height / 2 : height - (height * (level - low)) / (high - low)).toFixed(1);
	let [line, area, pen] = ["", "", null];
	points.forEach(({ at, level, min }, index) => {
		const end = Math.min(points[index + 1]?.at ?? until, min === undefined ? Infinity : at + step);
		for (const [start, stop] of without([Math.max(at, from), end], gaps)) {
			const isOn = pen === start;
			line += `${isOn ? `V${y(level)}` : `M${x(start)} ${y(level)}`}H${x(stop)}`;
			area += `${isOn ? "" : `${pen === null ? "" : `V${height}Z`}M${x(start)} ${height}`}V${y(level)}H${x(stop)}`;
			pen = stop;
		}
	});
	return { line, area: area && `${area}V${height}Z`, x, y, low, high };
}

// Return the parts of a period outside of all gaps.
function without([start, end], gaps) {
	const parts = [];
	for (const [from, until] of gaps) {
		if (until <= start || from >= end) continue;
		if (from > start) parts.push([start, from]);
		start = until;
	}
	return start < end ? [...parts, [start, end]] : parts;
}
