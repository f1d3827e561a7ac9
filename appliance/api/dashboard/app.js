// The page: what is shown for which address, and everything around it. It names every module but the late ones of
// `ui.js`, so that the browser asks for all of them at once.

import { keepToken, readAddress } from "./api.js";
import { Arrange } from "./arrange.js";
import { Automations } from "./automations.js";
import { Box } from "./box.js";
import { connect, start } from "./connection.js";
import { Device } from "./device.js";
import { draw, tags, use, useEffect, useRef } from "./dom.js";
import "./chart.js";
import "./controls.js";
import "./cards.js";
import "./executions.js";
import { Home } from "./home.js";
import "./preferences.js";
import "./qr.js";
import { RoomPage } from "./room.js";
import { state, whenChanged } from "./store.js";
import { Dialog, Field, icon, question } from "./ui.js";
import "./values.js";
import "./vendor/lean_qr.js";
import { Wall } from "./wall.js";
import { language, t, time } from "./words.js";

const { a, fieldset, h2, header, main, nav, p, span } = tags;

const VIEWS = { home: Home, automations: Automations, arrange: Arrange, box: Box };
const PAGES = { ...VIEWS, device: Device, room: RoomPage, wall: Wall };
const WITHIN = { device: "home", room: "home" }; // what the navigation shows meanwhile

const KEEPING = ["home", "room", "automations", "arrange"]; // to come back there is to come back to the same place
const places = new Map(); // address → how far down somebody was
let shown = readRoute();
history.scrollRestoration = "manual";

function readRoute() {
	const [, view, id] = /^#?\/?(\w*)\/?(.*)$/.exec(location.hash) ?? [];
	try {
		return { view: view in PAGES ? view : "home", id: decodeURIComponent(id) };
	} catch {
		return { view: "home", id: "" };
	}
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
		const name = ref.current.querySelector("h1")?.textContent;
		document.title = name && view !== "home" ? `${name} · Lares` : "Lares";
	}, [{}]);
	return main({ ref, class: `${view} ${state.isOnline ? "" : "offline"}` },
		fieldset({ disabled: !state.isOnline }, use(PAGES[view], { key: view, id })));
}

const navigation = (shown) => nav({ "aria-label": t("nav") }, Object.keys(VIEWS).map((each) =>
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
	const { view, id } = readRoute();
	return [
		view !== "wall" && header({ class: "top" }, span({ class: "brand" }, icon("home"), "Lares"), navigation(WITHIN[view] ?? view)),
		state.notice && p({ class: "banner", role: "alert" }, state.notice),
		banner(),
		state.isLoaded && use(View, { view, id }),
		state.keyRequest && keyRequest(state.keyRequest),
		state.question && question(state.question),
	];
}

function takeAddress() {
	state.notice = readAddress((refusal) => {
		state.notice = refusal;
		if (refusal) drawSoon();
		else connect();
	});
}

let isDue = false;

// Draw what has changed in the next frame, once, however much it is.
function drawSoon() {
	if (isDue) return;
	isDue = true;
	requestAnimationFrame(() => {
		isDue = false;
		draw(use(App), document.body, drawSoon, () => p({ class: "error" }, t("broken")));
	});
}

function registerWorker() {
	const address = new URL("../worker.js", import.meta.url).href;
	const policy = globalThis.trustedTypes?.createPolicy("lares", { createScriptURL: () => address });
	navigator.serviceWorker?.register(policy?.createScriptURL("") ?? address).catch(() => {}); // only over https
}

document.documentElement.lang = language;
document.body.replaceChildren();
whenChanged(drawSoon);
addEventListener("hashchange", () => {
	places.set(`${shown.view} ${shown.id}`, scrollY);
	document.body.classList.remove("first"); // to come back to a place, all above it has to have its height
	shown = readRoute();
	takeAddress();
	drawSoon();
});
takeAddress();
start();
drawSoon();
registerWorker();
