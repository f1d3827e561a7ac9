// Camera pictures.

import { download, segment } from "./api.js";
import { tags, use, useEffect, useRef, useState } from "./dom.js";
import { inTurn } from "./loading.js";
import { classOf, nameOf } from "./values.js";
import { t } from "./words.js";

const { div, img, p } = tags;

const REFRESH_MS = 10_000;
const TYPES = /^image\/(jpeg|png|gif|webp)$/;
const CAMERAS = ["camera", "image"];

export const isPicture = (value) => TYPES.test(value);

// Draw the picture of each picture attribute. A visible picture is fetched again every few seconds, with the page's
// key. For a camera without pictures, show a sentence.
export function stills(device) {
	const shown = Object.keys(device.attributes).filter((name) => isPicture(device.attributes[name]));
	const attributes = shown.length || !CAMERAS.includes(classOf(device)) ? shown : [null];
	return attributes.map((attribute) => use(Still, { key: `still ${attribute}`, device, attribute }));
}

export const isCamera = (device) => CAMERAS.includes(classOf(device));
export const cameraStills = (device) => isCamera(device) && stills(device);

function Still({ device, attribute }) {
	const ref = useRef();
	const [address, setAddress] = useState(undefined); // null if there is no picture
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
			await inTurn(() => download(path)).then(keep, ({ status }) => status === 404 && keep(null)); // otherwise, keep the last picture
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
