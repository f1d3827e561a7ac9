// Favourites, order, and hidden devices. The hub stores these preferences for this page's key. If the key is
// read-only, the browser stores the preferences.

import { get, replace } from "./api.js";
import { stored } from "./storage.js";
import { act, changed, mayWrite, state } from "./store.js";

const KEPT = "lares_preferences";
const SAVE_DELAY_MS = 500;

let saveTimer = null;
let saving = Promise.resolve();
let unsaved = []; // local changes: a list's name, and a function from the old list to the new list

const listIn = (preferences, name) => (Array.isArray(preferences[name]) ? preferences[name] : []);
const listOf = (name) => listIn(state.preferences, name);
const edited = (preferences, [name, edit]) => ({ ...preferences, [name]: edit(listIn(preferences, name)) });
export const isIn = (name, id) => listOf(name).includes(id);
export const favourites = () => listOf("favourites").map((id) => state.devices.get(id)).filter(Boolean);

// Use the preferences in a new overview. If a change has not been saved yet, ignore the overview's preferences.
export function takePreferences({ caller, preferences }) {
	if (saveTimer !== null || state.pending.has("preferences")) return;
	state.preferences = caller.role === "read" ? readStored() : preferences;
}

function readStored() {
	try {
		const found = JSON.parse(stored(KEPT) ?? "{}");
		return found?.constructor === Object ? found : {};
	} catch {
		return {};
	}
}

function change(name, edit) {
	state.preferences = edited(state.preferences, [name, edit]);
	unsaved.push([name, edit]);
	changed();
	clearTimeout(saveTimer);
	saveTimer = setTimeout(save, SAVE_DELAY_MS);
}

export function flip(name, id) {
	const added = isIn(name, id) ? [] : [id];
	change(name, (ids) => [...ids.filter((each) => each !== id), ...added]);
}

function save() {
	clearTimeout(saveTimer);
	saveTimer = null;
	if (mayWrite()) {
		saving = saving.then(() => act("preferences", "save", replaceChanged));
		return;
	}
	stored(KEPT, JSON.stringify(state.preferences));
	unsaved = [];
}

// Fetch and merge the preferences before saving, because another page with the same key may have changed them. When
// the page closes, there is no time to fetch the preferences.
async function replaceChanged() {
	const kept = document.hidden ? state.preferences : await get("preferences");
	const edits = unsaved;
	unsaved = [];
	state.preferences = edits.reduce(edited, kept);
	await replace("preferences", state.preferences).catch((error) => {
		unsaved = [...edits, ...unsaved]; // retry with the next change
		throw error;
	});
}

// Save changes before the page closes.
document.addEventListener("visibilitychange", () => document.hidden && saveTimer !== null && save());

// Sort devices or rooms by the chosen order. Devices without a chosen place follow in their previous order. The list
// for rooms is `rooms`.
export function inOrder(things, list = "order") {
	const rank = new Map(listOf(list).map((id, at) => [id, at]));
	const place = ({ id }) => rank.get(id) ?? rank.size;
	return [...things].sort((one, other) => place(one) - place(other));
}

export const orderedRooms = () => inOrder([...state.rooms.values()], "rooms");

// Save this order of one section's ids. `list` is "favourites", "order", or "rooms". The order of other sections
// does not change.
export const reorder = (list, ids) => change(list, (old) => [...old.filter((id) => !ids.includes(id)), ...ids]);
