// Requests to the hub, and the page's key.

import { stored } from "./storage.js";
import { t } from "./words.js";

const TOKEN = "lares_token";
const TIMEOUT_MS = 15_000;
const RUN_TIMEOUT_MS = 3_600_000;
const MAX_WAITS = 20; // the hub limits the commands per second
const SLOW = /\/(execute|operations\/\w+|backup|try)$/;

const base = new URL("../../", import.meta.url);
let unsaved = null; // the token if the browser stores no data
let onUnauthorized;

class ApiError extends Error {
	constructor(status, body) {
		super(status ? sentenceOf(status, body ?? {}) : t("error.unreachable"));
		this.status = status;
	}
}

// Return the sentence for an error, in the page's language if the code is known, followed by the hub's English
// sentence.
export function sentenceOf(status, { code = "", error = t("error.status", { status }) }) {
	return t(`error.${code.replace(/^\w+_not_found$/, "not_found")}`, { sentence: error }, error);
}

// Remove a key (`#token=`, or `?token=`) and `api` from the page's address at once. If `api` is not the address of
// the hub that serves the page, return an error (the key of a text, and the text's values). A key in a link replaces
// the stored key once the hub has accepted it. When the hub accepts the key, call `onKey` with null. If the hub
// rejects the key, call `onKey` with a sentence.
export function readAddress(onKey) {
	const address = new URL(location.href);
	const [key, api] = ["token", "api"].map((name) => address.searchParams.get(name));
	const fromHash = new URLSearchParams(address.hash.slice(1)).get("token");
	address.searchParams.delete("token");
	address.searchParams.delete("api");
	if (fromHash !== null) address.hash = "";
	if (address.href !== location.href) history.replaceState(null, "", address);
	const offered = (fromHash ?? key ?? "").trim();
	if (offered && offered !== token()) tryToken(offered, onKey);
	const named = api && URL.canParse(api, base) ? new URL(api.replace(/\/*$/, "/"), base) : null;
	return !api || named?.href === base.href ? null : { key: "error.other_origin", values: { api } };
}

async function tryToken(offered, onKey) {
	if (token()) {
		const headers = { authorization: `Bearer ${offered}` };
		const answer = await fetch(addressOf("overview"), { method: "HEAD", headers, cache: "no-store" }).catch(() => null);
		if (!answer?.ok) return onKey({ key: "key.rejected" });
	}
	keepToken(offered);
	onKey(null);
}

export const token = () => stored(TOKEN) ?? unsaved;

export function keepToken(value) {
	unsaved = value;
	stored(TOKEN, value);
}

export const whenUnauthorized = (listener) => (onUnauthorized = listener);

export const addressOf = (path) => new URL(path, base);

// Open the event stream with this heartbeat interval. The token is sent as a sub-protocol, so that the address does
// not contain the token.
export function openEvents(seconds) {
	const address = addressOf(`events?heartbeat_secs=${seconds}`);
	address.protocol = address.protocol.replace("http", "ws");
	return new WebSocket(address, ["lares.events", `bearer.${encodeURIComponent(token())}`]);
}

// Treat an incomplete answer like a missing answer.
const orUnreachable = (answer) => answer.catch(() => {
	throw new ApiError(0);
});

async function send(method, path, body, waits = 0) {
	const signal = AbortSignal.timeout(SLOW.test(path) ? RUN_TIMEOUT_MS : TIMEOUT_MS);
	const sent = token();
	const headers = { authorization: `Bearer ${sent}`, "content-type": "application/json" };
	/** @type {RequestInit} */
	const request = { method, headers, body: JSON.stringify(body), signal, cache: "no-store" };
	request.keepalive = method === "PUT" && document.hidden; // complete the request even if the page closes
	const response = await orUnreachable(fetch(addressOf(path), request));
	if (response.ok) return response;
	if (response.status === 429 && waits < MAX_WAITS) {
		await new Promise((go) => setTimeout(go, 1000 * Number(response.headers.get("retry-after") ?? 1)));
		return send(method, path, body, waits + 1);
	}
	if (response.status === 401 && sent === token()) onUnauthorized(); // ignore the answer to an earlier key
	throw new ApiError(response.status, await response.json().catch(() => null));
}

// Return the answer's JSON, or null for an empty answer. The message of an ApiError is a sentence for users.
async function ask(...request) {
	const response = await send(...request);
	return response.status === 204 ? null : orUnreachable(response.json());
}

export const get = (path) => ask("GET", path);
export const post = (path, body) => ask("POST", path, body);
export const replace = (path, body) => ask("PUT", path, body);
export const erase = (path) => ask("DELETE", path);
export const download = async (path) => orUnreachable((await send("GET", path)).blob());

// Let the browser save a file.
export function saveFile(name, blob) {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(blob);
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export const segment = encodeURIComponent;
