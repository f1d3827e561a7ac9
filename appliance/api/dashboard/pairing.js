// Pairs devices by a code, shares them with other apps, identifies them, and unpairs them.

import { get, post, segment } from "./api.js";
import { toCopy } from "./copy.js";
import { confirm, Dialog } from "./dialog.js";
import { tags, use, useEffect, useRef, useState } from "./dom.js";
import { useLoaded } from "./loading.js";
import { act, state } from "./store.js";
import { actions, Button, card, errorLine, Field, row, titled } from "./ui.js";
import { nameOf } from "./values.js";
import { t } from "./words.js";
import { generate } from "./vendor/lean_qr.js";

const { div, h2, input, p, path, span, svg, video } = tags;

const LOOK_MS = 250;
const CODE = /^MT:/;

const canScan = () => "BarcodeDetector" in globalThis && Boolean(navigator.mediaDevices);
const namesOf = (ids) => ids.map((id) => nameOf(state.devices.get(id) ?? { id })).join(", ");
const operation = (adapter, name, payload) => post(`adapters/${segment(adapter)}/operations/${name}`, payload);

// For a bridge or device with a pairing button: show the returned key as a line for the adapter's section.
export function KeyPairing({ adapter }) {
	const [given, setGiven] = useState(undefined);
	const target = `pairing ${adapter}`;
	const pair = async () => setGiven((await act(target, "pair", () => operation(adapter, "pair", {})))?.result);
	return div(
		row(span(t("pairing.press")), use(Button, { label: t("pairing.pair"), isBusy: state.pending.has(target), onClick: pair })),
		errorLine(target),
		given !== undefined && [p({ role: "status" }, t("pairing.paste", { name: adapter })),
			toCopy(adapter, typeof given === "string" ? given : JSON.stringify(given))]);
}

// The devices that are paired by a code, one block per device.
export function CodePairing({ adapter }) {
	const [isScanning, setScanning] = useState(false);
	const [paired, setPaired] = useState(null);
	const target = `pairing ${adapter}`;
	const isBusy = state.pending.has(target);
	const pair = async (code) => {
		setPaired(null);
		const done = await act(target, "pair", () => operation(adapter, "pair", { code }));
		setPaired(done?.result.devices ?? null);
		return done !== undefined;
	};
	const onCode = (code) => {
		setScanning(false);
		pair(code);
	};
	return div({ class: "pairing" },
		use(Field, { label: t("pairing.code"), action: t("pairing.pair"), maxlength: "200", disabled: isBusy, onSend: pair }),
		canScan() && use(Button, { label: t("pairing.scan"), isBusy, onClick: () => setScanning(true) }),
		errorLine(target),
		paired && p({ role: "status" }, t("pairing.done", { names: namesOf(paired) })),
		isScanning && use(Scanner, { onCode, onClose: () => setScanning(false) }));
}

// Show the camera's picture until a pairing code is recognised.
function Scanner({ onCode, onClose }) {
	const ref = useRef();
	const [problem, setProblem] = useState(null);
	useEffect(() => {
		let [isOver, timer, stream] = [false, 0, null];
		/** @type {any} */
		const Detector = globalThis["BarcodeDetector"];
		const look = async (detector) => {
			const seen = await detector.detect(ref.current).catch(() => []); // detection fails before the first picture
			const found = seen.map(({ rawValue }) => rawValue.trim()).find((text) => CODE.test(text));
			if (isOver) return;
			if (found) onCode(found);
			else timer = setTimeout(look, LOOK_MS, detector);
		};
		const begin = async () => {
			stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
			if (isOver) return stop();
			ref.current.srcObject = stream;
			await ref.current.play();
			await look(new Detector({ formats: ["qr_code"] }));
		};
		const stop = () => stream?.getTracks().forEach((track) => track.stop());
		begin().catch(({ message }) => isOver || setProblem(message));
		return () => {
			isOver = true;
			clearTimeout(timer);
			stop();
		};
	}, []);
	const told = problem === null ? t("pairing.hold") : t("pairing.no_camera", { reason: problem });
	return use(Dialog, { label: t("pairing.scan"), onClose, content: [
		p(told),
		video({ ref, class: "camera", muted: true, playsinline: true, "aria-label": t("pairing.scan") }),
		actions(use(Button, { label: t("cancel"), onClick: onClose })),
	] });
}

// Actions on a paired device.
export function Paired({ device }) {
	const adapter = device.metadata.source;
	const [shared, setShared] = useState(null);
	const known = useLoaded(() => get(`adapters/${segment(adapter)}`), []).data?.operations ?? [];
	const target = `paired ${device.id}`;
	const run = (name) => act(target, name, () => operation(adapter, name, { device_id: device.id }));
	const { node_id } = device.metadata.vendor_specific;
	const others = [...state.devices.values()].filter(({ metadata }) => metadata?.source === adapter && metadata.vendor_specific.node_id === node_id);
	const doing = {
		identify: () => run("identify"),
		share: async () => setShared((await run("share"))?.result ?? null),
		unpair: async () => (await confirm(t("pairing.confirm", { names: namesOf(others.map(({ id }) => id)) }), t("pairing.unpair"))) && run("unpair"),
	};
	const pending = state.pending.get(target) ?? {};
	const buttons = Object.entries(doing).filter(([name]) => known.includes(name)).map(([name, onClick]) =>
		use(Button, { key: name, label: t(`pairing.${name}`), isBusy: name in pending, onClick }));
	return buttons.length > 0 && titled(t("pairing.title"), card(row(buttons), errorLine(target),
		shared && code(shared, () => setShared(null))));
}

function code({ code: digits, qr, secs }, onClose) {
	return use(Dialog, { label: t("pairing.share"), onClose, content: [
		h2(t("pairing.share")),
		p(t("pairing.shared", { minutes: Math.round(secs / 60) })),
		qrCode(qr, t("pairing.qr")),
		input({ readonly: true, "aria-label": t("pairing.qr"), value: digits, onfocus: ({ target }) => target.select() }),
		actions(use(Button, { label: t("done"), isMain: true, onClick: onClose })),
	] });
}

// A text as a QR code for a phone's camera.
export function qrCode(text, label) {
	/** @type {any} */
	const code = generate(/** @type {never} */ (text));
	const places = Array.from({ length: code.size ** 2 }, (_, at) => [at % code.size, Math.floor(at / code.size)]);
	const dots = places.filter(([x, y]) => code.get(x, y)).map(([x, y]) => `M${x} ${y}h1v1h-1z`);
	const size = code.size + 8;
	return svg({ class: "qr", viewBox: `-4 -4 ${size} ${size}`, role: "img", "aria-label": label, "shape-rendering": "crispEdges" },
		path({ d: `M-4-4h${size}v${size}h-${size}z`, fill: "#fff" }), path({ d: dots.join(""), fill: "#000" }));
}
