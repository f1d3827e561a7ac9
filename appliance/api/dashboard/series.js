// Several rows of values in one picture, a line each over the same time and the same scale.

import { pointsOf } from "./chart.js";
import { tags } from "./dom.js";
import { time } from "./words.js";

const { div, figcaption, figure, li, path, span, strong, svg, ul } = tags;

const WIDTH = 640;
const HEIGHT = 160;

// `lines` have a name and entries, newest first; `text` says what a value is.
export function SeriesChart({ label, lines, text, from, until }) {
	const drawn = lines.map(({ name, entries }) => ({ name, points: pointsOf(entries), now: entries[0].value }));
	const levels = drawn.flatMap(({ points }) => points.map((point) => point.level));
	const [low, high] = [Math.min(...levels), Math.max(...levels)];
	const x = (at) => ((WIDTH * (Math.max(at, from) - from)) / (until - from)).toFixed(1);
	const y = (level) => (high === low ? HEIGHT / 2 : HEIGHT - (HEIGHT * (level - low)) / (high - low)).toFixed(1);
	const trace = (points) => points.map(({ at, level }, index) => (index ? `H${x(at)}V${y(level)}` : `M${x(at)} ${y(level)}`)).join("");
	const edge = (level) => span(text(drawn.flatMap(({ points }) => points).find((point) => point.level === level).value));
	return figure({ class: "chart" },
		figcaption(strong(label)),
		svg({ viewBox: `0 -8 ${WIDTH} ${HEIGHT + 16}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
			path({ class: "grid", d: `M0 0H${WIDTH}M0 ${HEIGHT}H${WIDTH}` }),
			drawn.map(({ points }, at) => path({ key: at, class: `line line${at % 6}`, d: `${trace(points)}H${WIDTH}` }))),
		div({ class: "axis" }, span(time(from)), span(time(until))),
		div({ class: "edges" }, edge(high), high !== low && edge(low)),
		ul({ class: "legend" }, drawn.map(({ name, now }, at) => li({ key: at, class: `line${at % 6}` }, span({ dir: "auto" }, name), strong(text(now))))));
}
