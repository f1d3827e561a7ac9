// What devices showed over time: a small line on a card, and a large picture that tells its values.

import { tags, useState } from "./dom.js";
import { numberOf, show } from "./values.js";
import { time } from "./words.js";

const { div, figcaption, figure, path, small, span, strong, svg } = tags;

const WIDTH = 640;
const HEIGHT = 200;

// Entries newest first become points oldest first; words become levels in the order in which they came.
export function pointsOf(entries) {
	const words = [];
	const level = (value) => {
		const known = numberOf(value);
		if (known !== null) return known;
		const text = JSON.stringify(value);
		if (!words.includes(text)) words.push(text);
		return words.indexOf(text);
	};
	const points = entries.map(({ observed_at: at, value }) => ({ at: Date.parse(at), value })).reverse();
	return points.map((point) => ({ ...point, level: level(point.value) }));
}

// A line in a box of this size that keeps each value until the next, and where a moment and a level lie in it.
function trace(points, from, until, width, height) {
	const levels = points.map((point) => point.level);
	const [low, high] = [Math.min(...levels), Math.max(...levels)];
	const x = (at) => ((width * (at - from)) / (until - from || 1)).toFixed(1);
	const y = (level) => (high === low ? height / 2 : height - (height * (level - low)) / (high - low)).toFixed(1);
	const steps = points.map(({ at, level }, index) => (index ? `H${x(at)}V${y(level)}` : `M${x(at)} ${y(level)}`));
	return { line: `${steps.join("")}H${width}`, x, y, low, high };
}

export function sparkline(entries, now) {
	const points = pointsOf(entries);
	const until = Date.now();
	const level = numberOf(now);
	if (level !== null) points.push({ at: until, level });
	if (points.length < 2) return null;
	const { line } = trace(points, points[0].at, until, 240, 28);
	return svg({ viewBox: "0 -2 240 32", preserveAspectRatio: "none", "aria-hidden": "true" }, path({ d: line }));
}

export function Chart({ attribute, entries, from, until, label }) {
	const [chosen, setChosen] = useState(null);
	const points = pointsOf(entries);
	const { line, x, y, low, high } = trace(points, from, until, WIDTH, HEIGHT);
	const choose = ({ currentTarget, clientX }) => {
		const box = currentTarget.getBoundingClientRect();
		const at = from + ((clientX - box.left) / box.width) * (until - from);
		setChosen(points.findLast((point) => point.at <= at) ?? points[0]);
	};
	const told = chosen ?? points.at(-1);
	const edge = (level) => span(show(attribute, points.find((point) => point.level === level).value));
	return figure({ class: "chart" },
		figcaption(strong(show(attribute, told.value)), small(time(told.at))),
		svg({
			viewBox: `0 -8 ${WIDTH} ${HEIGHT + 16}`,
			preserveAspectRatio: "none",
			role: "img",
			"aria-label": label,
			onpointermove: choose,
			onpointerdown: choose,
			onpointerleave: () => setChosen(null),
		},
			path({ class: "grid", d: `M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}` }),
			path({ class: "area", d: `${line}V${HEIGHT}H${x(points[0].at)}Z` }),
			path({ class: "line", d: line }),
			chosen && path({ class: "cursor", d: `M${x(chosen.at)} -8V${HEIGHT + 8}` }),
			chosen && path({ class: "dot", d: `M${x(chosen.at)} ${y(chosen.level)}h.01` })),
		div({ class: "axis" }, span(time(from)), span(time(until))),
		div({ class: "edges" }, edge(high), high !== low && edge(low)));
}
