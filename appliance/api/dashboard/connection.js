// The connection to the hub: fetches an overview, then receives event frames. The connection is restored after an
// outage or a sleep. Loading this script opens the connection, so that the home's data and the other scripts load in
// parallel.

import { get, openEvents, readAddress, token, whenUnauthorized } from "./api.js";
import { stored } from "./storage.js";
import { takePreferences } from "./preferences.js";
import { changed, signOfChanges, state, takeFrame, takeOverview } from "./store.js";

const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 30_000;
const RELOAD_DELAY_MS = 200;
const RELOAD_GAP_MS = 2000;
const HEARTBEAT_SECS = 15;
const SILENCE_MS = 45_000;
const OPENING_MS = 15_000;
const LOOK_MS = 5000;
const SLEEP_MS = 5000;
const NOTE_MS = 5000; // limits the browser's writes to disk
const LAST_CONTACT = "lares_last_contact";

let socket = null;
let retryMs = MIN_RETRY_MS;
let retryTimer = null;
let reloadTimer = null;
let loading = null;
let loadedAt = 0; // monotonic time
const held = []; // frames that arrived while an overview was loading
let lastHeard = Date.now();
let lastNoted = 0;
let isHeard = false;
let isFetched = false; // whether an overview has arrived since the stream opened
let hiddenAt = Infinity;

// Remove a key from the page's address, and use the key. If the hub rejects the key, store the reason.
export function takeAddress() {
	state.notice = readAddress((refusal) => {
		state.notice = refusal;
		if (refusal) changed();
		else connect();
	});
}

// Connect again at once, for example with a new key.
export function connect() {
	disconnect();
	if (!token()) return requestKey();
	lastHeard = Date.now();
	isHeard = isFetched = false;
	socket = openEvents(HEARTBEAT_SECS);
	socket.onmessage = ({ data }) => takeOrHold(JSON.parse(data));
	socket.onopen = () => {
		socket.onclose = onLost;
		Promise.resolve(loading).then(load); // an overview requested earlier may be older than the first frame
	};
	socket.onclose = () => load().then(onLost); // the answer shows whether the key, the stream, or the hub failed
}

// Fetch the overview. Concurrent callers share one request.
export function load() {
	clearTimeout(reloadTimer);
	reloadTimer = null;
	loadedAt = performance.now();
	loading ??= fetchOverview().finally(() => (loading = null));
	return loading;
}

async function fetchOverview() {
	try {
		const overview = await get("overview");
		takePreferences(overview);
		takeOverview(overview);
	} catch (error) {
		if (error.status !== 401) onLost();
		return;
	} finally {
		held.splice(0).forEach(takeOrReload);
		state.overviewSign = signOfChanges();
	}
	isFetched = true;
	state.keyRequest = null;
	showOnline();
}

// Show the hub as reachable only if both the overview and the stream arrive, because a proxy may forward only the
// overview or only the stream.
function showOnline() {
	if (isHeard && isFetched) {
		retryMs = MIN_RETRY_MS;
		Object.assign(state, { isOnline: true, offlineSince: null });
	}
	changed();
}

function takeOrHold(frame) {
	noteContact();
	if (!isHeard) {
		isHeard = true;
		showOnline();
	}
	if (frame.type === "heartbeat") return;
	if (loading) held.push(frame);
	else takeOrReload(frame);
}

function takeOrReload(frame) {
	if (takeFrame(frame)) reloadTimer ??= setTimeout(load, Math.max(RELOAD_DELAY_MS, loadedAt + RELOAD_GAP_MS - performance.now()));
}

function disconnect() {
	clearTimeout(retryTimer);
	retryTimer = null;
	if (socket) socket.onopen = socket.onmessage = socket.onclose = null;
	socket?.close();
	socket = null;
}

function onLost() {
	if (retryTimer || state.keyRequest) return;
	disconnect();
	state.offlineSince ??= state.isLoaded ? Date.now() : Number(stored(LAST_CONTACT));
	state.isOnline = false;
	changed();
	retryTimer = setTimeout(connect, retryMs * (0.75 + Math.random() / 2));
	retryMs = Math.min(retryMs * 2, MAX_RETRY_MS);
}

function requestKey() {
	disconnect();
	state.keyRequest = token() ? "rejected" : "missing";
	changed();
}

// Fetch the overview once after a sleep. If the stream broke during the sleep, first reopen the stream.
function wake() {
	hiddenAt = Infinity;
	retryMs = MIN_RETRY_MS;
	if (state.keyRequest) return;
	if (socket?.readyState === WebSocket.OPEN && Date.now() - lastHeard < SILENCE_MS) load();
	else connect();
}

// Treat the stream as closed if heartbeats are missing, because the socket remains open if the network is lost, or if
// a proxy no longer reaches the hub.
function checkSilence() {
	const patienceMs = isHeard ? SILENCE_MS : OPENING_MS;
	if (socket && !document.hidden && Date.now() - lastHeard > patienceMs) onLost();
}

function noteContact() {
	lastHeard = Date.now();
	if (lastHeard - lastNoted < NOTE_MS) return;
	lastNoted = lastHeard;
	stored(LAST_CONTACT, String(lastHeard));
}

whenUnauthorized(requestKey);
addEventListener("online", wake);
document.addEventListener("resume", wake);
document.addEventListener("visibilitychange", () => {
	if (document.hidden) hiddenAt = Date.now();
	else if (Date.now() - hiddenAt > SLEEP_MS) wake();
});
setInterval(checkSilence, LOOK_MS);
takeAddress();
if (!socket) connect(); // a key in the address has already started the connection
