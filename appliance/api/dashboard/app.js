// The page: shows the view and the sheet for the address, and the navigation. The home view and its modules load
// first.

import { keepToken } from "./api.js";
import { connect, takeAddress } from "./connection.js";
import { Dialog, question } from "./dialog.js";
import { draw, tags, use, useEffect, useRef } from "./dom.js";
import { Home, search } from "./home.js";
import { icon } from "./icons.js";
import { state, whenChanged } from "./store.js";
import { List } from "./summary.js";
import { Field } from "./ui.js";
import { language, ready, t, time } from "./words.js";

const { a, div, fieldset, h2, header, i, main, nav, p, span } = tags;

const views = { home: Home, list: List };
const LATE = {
	automations: async () => (await import("./automations.js")).Automations,
	file: async () => (await import("./editor.js")).FilePage,
	new: async () => (await import("./recipes.js")).NewPage,
	settings: async () => (await import("./settings.js")).Settings,
	device: async () => (await import("./device.js")).Device,
	room: async () => (await import("./room.js")).RoomPage,
	wall: async () => (await import("./wall.js")).Wall,
	sheet: async () => (await import("./sheet.js")).Sheet,
	group: async () => (await import("./sheet.js")).GroupSheet,
};
const SHEETS = ["sheet", "group"]; // these open over the previous view
const MOVED = { box: "settings", arrange: "settings/rooms" }; // addresses of earlier versions
const LATE_MS = 1000;
const RETRY_MS = 2000;
const UNREACHABLE = { key: "error.unreachable" };
const NAVIGATION = ["home", "automations", "settings"];
const WITHIN = { device: "home", room: "home", list: "home", file: "automations", new: "automations" }; // the navigation entry to mark for each view

const KEEPING = ["home", "room", "list", "automations", "settings"]; // these views keep their scroll position
const places = new Map(); // address → scroll position
let shown = { view: null, id: "", sheet: null };
let retry = 0;
history.scrollRestoration = "manual";

const hashOf = ({ view, id }) => `#/${view === "home" ? "" : view}${id && `/${encodeURIComponent(id)}`}`;

function readRoute() {
	const [, view, id] = /^#?\/?(\w*)\/?(.*)$/.exec(location.hash) ?? [];
	const moved = MOVED[view];
	if (moved) {
		history.replaceState(null, "", `#/${moved}`);
		return readRoute();
	}
	try {
		const found = { view, id: decodeURIComponent(id), sheet: null };
		if (SHEETS.includes(view)) return { ...below(), sheet: found };
		if (view !== "home" && (Object.hasOwn(LATE, view) || Object.hasOwn(views, view))) return found;
	} catch {
		// treat a malformed address as unknown
	}
	return { view: "home", id: "", sheet: null, isUnknown: ![undefined, "", "home"].includes(view) || Boolean(id) };
}

// The view below a sheet. The browser's history entry stores this view, so that the Back button returns to the view.
function below() {
	if (!history.state?.below) history.replaceState({ below: { view: shown.view ?? "home", id: shown.id }, isOver: shown.view !== null }, "");
	return history.state.below;
}

function closeSheet() {
	if (history.state?.isOver) history.back();
	else location.replace(hashOf(shown));
}

const load = async (view) => (views[view] ??= await LATE[view]());

// Show the view for the address. The previous view remains visible until the new view is loaded.
async function show() {
	const { view, sheet, isUnknown } = readRoute();
	if (isUnknown) {
		state.notice = { key: "error.no_page", values: { address: location.hash } };
		history.replaceState(null, "", "#/");
	}
	const wanted = location.hash;
	const isThere = await Promise.all([load(view), sheet && load(sheet.view)]).then(() => true, () => false);
	if (wanted !== location.hash && !isUnknown) return;
	clearTimeout(retry);
	if (isThere) shown = readRoute();
	else retry = setTimeout(show, RETRY_MS);
	if (!isThere) state.notice = UNREACHABLE;
	else if (state.notice === UNREACHABLE) state.notice = null;
	drawSoon();
}

// A view. While the hub is unreachable, the view is read-only.
function View({ view, id }) {
	const ref = useRef();
	const isFirst = useRef(true);
	useEffect(() => {
		const heading = ref.current.querySelector("h1");
		if (!isFirst.current) {
			scrollTo(0, KEEPING.includes(view) ? places.get(`${view} ${id}`) ?? 0 : 0);
			heading?.focus({ preventScroll: true });
		}
		isFirst.current = false;
	}, [view, id]);
	useEffect(() => {
		const timer = setTimeout(() => Object.keys(LATE).forEach((each) => load(each).catch(() => {})), LATE_MS);
		return () => clearTimeout(timer);
	}, []);
	useEffect(() => {
		const heading = view === "wall" ? t("wall") : ref.current.querySelector("h1")?.textContent; // the heading of the wall is a clock
		const name = heading?.replaceAll("\u00AD", ""); // soft hyphens
		document.title = name && view !== "home" ? `${name} · Lares` : "Lares";
	}, [{}]);
	return main({ ref, "data-id": id, class: `${view} ${state.isOnline ? "" : "offline"}` },
		fieldset({ disabled: !state.isOnline }, use(views[view], { key: view, id })));
}

const navigation = (shown) => nav({ "aria-label": t("nav") }, NAVIGATION.map((each) =>
	a({ key: each, href: `#/${each === "home" ? "" : each}`, "aria-current": each === shown && "page", onclick: () => search(null) },
		icon(each), span(t(`nav.${each}`)))));

function banner() {
	const isLost = !state.isOnline && !state.keyRequest && state.offlineSince !== null;
	const told = state.offlineSince ? t("offline.since", { time: time(state.offlineSince) }) : t("offline");
	return p({ role: "status", class: isLost ? "banner" : "hidden" }, isLost && told);
}

function keyRequest(reason) {
	const onSend = (token) => {
		keepToken(token);
		state.keyRequest = null;
		connect();
	};
	const field = { label: t("key.secret"), action: t("key.use"), type: "password", onSend };
	return use(Dialog, { key: reason, label: t("key.ask"), content: [h2(t("key.ask")), p(t(`key.${reason}`)), use(Field, field)] });
}

// Placeholders until the first answer arrives. `index.html` contains the same placeholders.
const skeleton = () => div({ class: "skeleton", "aria-hidden": "true" }, p("Lares"), [0, 1, 2, 3, 4, 5].map((key) => i({ key })));

function App() {
	const { view, id, sheet } = shown;
	return [
		view !== "wall" && header({ class: "top" }, navigation(WITHIN[view] ?? view)),
		state.notice && p({ class: "banner", role: "alert" }, t(state.notice.key, state.notice.values)),
		banner(),
		!state.isLoaded && !state.keyRequest && skeleton(),
		state.isLoaded && view && use(View, { view, id }),
		state.isLoaded && sheet && use(views[sheet.view], { key: `${sheet.view} ${sheet.id}`, id: sheet.id, onClose: closeSheet }),
		state.keyRequest && keyRequest(state.keyRequest),
		state.question && question(state.question),
	];
}

let isDue = false;

// Draw all changes together in the next animation frame.
function drawSoon() {
	if (isDue) return;
	isDue = true;
	requestAnimationFrame(() => {
		isDue = false;
		if (state.question?.isValid() === false) state.question.close(false);
		draw(use(App), document.body, drawSoon, () => p({ class: "error" }, t("broken")));
	});
}

function registerWorker() {
	const address = new URL("../worker.js", import.meta.url).href;
	const policy = globalThis.trustedTypes?.createPolicy("lares", { createScriptURL: () => address });
	navigator.serviceWorker?.register(policy?.createScriptURL("") ?? address).catch(() => {});
}

document.documentElement.lang = language;
await ready;
document.body.replaceChildren();
whenChanged(drawSoon);
addEventListener("hashchange", () => {
	places.set(`${shown.view} ${shown.id}`, scrollY);
	state.question?.close(false); // the question belongs to the previous view
	takeAddress();
	show();
});
addEventListener("keydown", (event) => {
	const { key, target, ctrlKey, metaKey, altKey } = event;
	if (key !== "/" || ctrlKey || metaKey || altKey || document.querySelector("dialog[open]")
		|| /** @type {Element} */ (target).closest("input, textarea, select, [contenteditable]")) return;
	event.preventDefault();
	search("");
	if (shown.view !== "home") location.hash = "#/";
});
show();
registerWorker();
