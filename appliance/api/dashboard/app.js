// The page: what is shown for which address, and everything around it. It needs what the home needs; all other views are
// fetched once that stands.

import { keepToken } from "./api.js";
import { connect, takeAddress } from "./connection.js";
import { draw, tags, use, useEffect, useRef } from "./dom.js";
import { Home } from "./home.js";
import { state, whenChanged } from "./store.js";
import { Dialog, Field, icon, question } from "./ui.js";
import { language, ready, t, time } from "./words.js";

const { a, fieldset, h2, header, main, nav, p, span } = tags;

const views = { home: Home };
const LATE = {
	automations: async () => (await import("./automations.js")).Automations,
	arrange: async () => (await import("./arrange.js")).Arrange,
	box: async () => (await import("./box.js")).Box,
	device: async () => (await import("./device.js")).Device,
	room: async () => (await import("./device.js")).RoomPage,
	wall: async () => (await import("./wall.js")).Wall,
};
const LATE_MS = 1000;
const RETRY_MS = 2000;
const UNREACHABLE = { key: "error.unreachable" };
const NAVIGATION = ["home", "automations", "arrange", "box"];
const WITHIN = { device: "home", room: "home" }; // what the navigation shows meanwhile

const KEEPING = ["home", "room", "automations", "arrange"]; // to come back there is to come back to the same place
const places = new Map(); // address → how far down somebody was
let shown = { view: null, id: "" };
let retry = 0;
history.scrollRestoration = "manual";

function readRoute() {
	const [, view, id] = /^#?\/?(\w*)\/?(.*)$/.exec(location.hash) ?? [];
	try {
		if (Object.hasOwn(LATE, view)) return { view, id: decodeURIComponent(id) };
	} catch {
		// no such address either
	}
	return { view: "home", id: "", isUnknown: ![undefined, "", "home"].includes(view) || Boolean(id) };
}

const load = async (view) => (views[view] ??= await LATE[view]());

// Show what the address names; what was shown stays until that is there.
async function show() {
	const { view, isUnknown } = readRoute();
	if (isUnknown) {
		state.notice = { key: "error.no_page", values: { address: location.hash } };
		history.replaceState(null, "", "#/");
	}
	const isThere = await load(view).then(() => true, () => false);
	if (view !== readRoute().view) return;
	clearTimeout(retry);
	if (isThere) shown = readRoute();
	else retry = setTimeout(show, RETRY_MS);
	if (!isThere) state.notice = UNREACHABLE;
	else if (state.notice === UNREACHABLE) state.notice = null;
	drawSoon();
}

// A view; while the hub is away, all of it can be read and nothing be changed.
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
		const timer = setTimeout(() => Object.keys(LATE).forEach((each) => load(each).catch(() => {})), LATE_MS); // else when it is asked for
		return () => clearTimeout(timer);
	}, []);
	useEffect(() => {
		const heading = view === "wall" ? t("wall") : ref.current.querySelector("h1")?.textContent; // the wall's is a clock
		const name = heading?.replaceAll("\u00AD", ""); // where its word may be parted
		document.title = name && view !== "home" ? `${name} · Lares` : "Lares";
	}, [{}]);
	return main({ ref, class: `${view} ${state.isOnline ? "" : "offline"}` },
		fieldset({ disabled: !state.isOnline }, use(views[view], { key: view, id })));
}

const navigation = (shown) => nav({ "aria-label": t("nav") }, NAVIGATION.map((each) =>
	a({ key: each, href: `#/${each === "home" ? "" : each}`, "aria-current": each === shown && "page" }, icon(each), span(t(`nav.${each}`)))));

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

function App() {
	const { view, id } = shown;
	return [
		view !== "wall" && header({ class: "top" }, span({ class: "brand" }, icon("home"), "Lares"), navigation(WITHIN[view] ?? view)),
		state.notice && p({ class: "banner", role: "alert" }, t(state.notice.key, state.notice.values)),
		banner(),
		state.isLoaded && view && use(View, { view, id }),
		state.keyRequest && keyRequest(state.keyRequest),
		state.question && question(state.question),
	];
}

let isDue = false;

// Draw what has changed in the next frame, once, however much it is.
function drawSoon() {
	if (isDue) return;
	isDue = true;
	requestAnimationFrame(() => {
		isDue = false;
		if (state.question?.stands() === false) state.question.close(false);
		draw(use(App), document.body, drawSoon, () => p({ class: "error" }, t("broken")));
	});
}

function registerWorker() {
	const address = new URL("../worker.js", import.meta.url).href;
	const policy = globalThis.trustedTypes?.createPolicy("lares", { createScriptURL: () => address });
	navigator.serviceWorker?.register(policy?.createScriptURL("") ?? address).catch(() => {}); // only over https
}

document.documentElement.lang = language;
await ready;
document.body.replaceChildren();
whenChanged(drawSoon);
addEventListener("hashchange", () => {
	places.set(`${shown.view} ${shown.id}`, scrollY);
	state.question?.close(false); // it was asked of what is left behind
	document.body.classList.remove("first"); // to come back to a place, all above it has to have its height
	takeAddress();
	show();
});
show();
registerWorker();
