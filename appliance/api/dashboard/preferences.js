// What a person likes to see first, or not at all: kept on the hub under the key of this page, or, where the key may only
// read, in this browser.

import { put, stored } from "./api.js";
import { act, changed, mayWrite, state } from "./store.js";

const KEPT = "lares_preferences";
const DELAY_MS = 500;

let timer = null;

const listOf = (name) => (Array.isArray(state.preferences[name]) ? state.preferences[name] : []);
export const isIn = (name, id) => listOf(name).includes(id);
export const favourites = () => listOf("favourites");

// The preferences that hold now that this overview has come: a change that is still on its way is newer.
export function preferencesOf({ caller, preferences }) {
	if (timer !== null || state.pending.has("preferences")) return state.preferences;
	return caller.role === "read" ? readStored() : preferences;
}

function readStored() {
	try {
		const found = JSON.parse(stored(KEPT) ?? "{}");
		return found?.constructor === Object ? found : {};
	} catch {
		return {};
	}
}

export function change(name, ids) {
	state.preferences = { ...state.preferences, [name]: ids };
	changed();
	clearTimeout(timer);
	timer = setTimeout(save, DELAY_MS);
}

export const flip = (name, id) => change(name, isIn(name, id) ? listOf(name).filter((each) => each !== id) : [...listOf(name), id]);

function save() {
	timer = null;
	if (mayWrite()) act("preferences", "save", () => put("preferences", state.preferences));
	else stored(KEPT, JSON.stringify(state.preferences));
}

// These devices in the order that somebody gave them, the others behind them as they are.
export function inOrder(devices, list = "order") {
	const rank = new Map(listOf(list).map((id, at) => [id, at]));
	const place = ({ id }) => rank.get(id) ?? rank.size;
	return [...devices].sort((one, other) => place(one) - place(other));
}

// Put the ids of one section into this order, `list` being "favourites" or "order", and leave all others where they are.
export const reorder = (list, ids) => change(list, [...listOf(list).filter((id) => !ids.includes(id)), ...ids]);
