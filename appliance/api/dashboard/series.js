// Several rows of values in one picture, a line each over the same time and the same scale.

import { pointsOf, trace } from "./chart.js";
import { tags } from "./dom.js";
import { time } from "./words.js";

const { div, figcaption, figure, li, path, span, strong, svg, ul } = tags;

const WIDTH = 640;
const HEIGHT = 160;

// `lines` have a name, entries, newest first, and `text`, which says what a value is; with own scales each fills the picture.
export function SeriesChart({ label, lines, from, until, hasOwnScales = false }) {
	const drawn = lines.map(({ name, entries, text }) => ({ name, text, points: pointsOf(entries), now: entries[0].value }));
	const all = drawn.flatMap(({ points, text }) => points.map((point) => ({ ...point, text })));
	const lineOf = (points) => trace(points, from, until, WIDTH, HEIGHT, bounds(hasOwnScales ? points : all)).line;
	const { low, high } = bounds(all);
	const edge = (sought) => {
		const { value, text } = all.find(({ level }) => level === sought);
		return span(text(value));
	};
	return figure({ class: "chart" },
		figcaption(strong(label)),
		svg({ viewBox: `0 -8 ${WIDTH} ${HEIGHT + 16}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
			path({ class: "grid", d: `M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}` }),
			drawn.map(({ points }, at) => path({ key: at, class: `line line${at % 6}`, d: lineOf(points) }))),
		div({ class: "axis" }, span(time(from)), span(time(until))),
		!hasOwnScales && div({ class: "edges" }, edge(high), high !== low && edge(low)),
		ul({ class: "legend" }, drawn.map(({ name, now, text }, at) => li({ key: at, class: `line${at % 6}` }, span({ dir: "auto" }, name), strong(text(now))))));
}

function bounds(points) {
	const levels = points.map((point) => point.level);
	return { low: Math.min(...levels), high: Math.max(...levels) };
}
