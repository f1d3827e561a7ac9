// A text as a QR code, for the camera of a phone.

import { tags } from "./dom.js";
import { generate } from "./vendor/lean_qr.js";

const { path, svg } = tags;

export function qrCode(text, label) {
	/** @type {any} */
	const code = generate(/** @type {never} */ (text));
	const places = Array.from({ length: code.size ** 2 }, (_, at) => [at % code.size, Math.floor(at / code.size)]);
	const dots = places.filter(([x, y]) => code.get(x, y)).map(([x, y]) => `M${x} ${y}h1v1h-1z`);
	const size = code.size + 8;
	return svg({ class: "qr", viewBox: `-4 -4 ${size} ${size}`, role: "img", "aria-label": label, "shape-rendering": "crispEdges" },
		path({ d: `M-4-4h${size}v${size}h-${size}z`, fill: "#fff" }), path({ d: dots.join(""), fill: "#000" }));
}
