// The state of the page: the home, requests in progress, and errors. Devices, rooms, and groups are replaced, never
// changed, so that components can compare them by identity.

const MAX_EVENTS = 50;

export const state = {
	isLoaded: false,
	isOnline: false,
	offlineSince: null, // milliseconds
	keyRequest: null, // "missing" or "rejected"
	notice: null, // a sentence's key and values
	role: null,
	version: "",
	devices: new Map(),
	rooms: new Map(),
	groups: new Map(),
	automations: new Map(),
	scenes: new Map(),
	executions: [],
	adapters: [],
	safe: null, // why no automation runs
	faults: [], // faults of Lua files
	units: {}, // capability → unit of numbers without a unit
	preferences: {},
	pending: new Map(), // target → { what: wish }
	errors: new Map(), // target → sentence
	outcomes: new Map(), // target → results
	search: null, // the search text, or null
	isEditing: false, // whether the home is being rearranged
	question: null,
	events: [], // newest first
	eventCount: 0,
	overviewSign: "", // `signOfChanges()` at the last overview
};

// A text that changes with each event and request, because either may start an execution.
export const signOfChanges = () => `${state.eventCount} ${state.pending.size}`;

let listener = () => {};

export const whenChanged = (draw) => (listener = draw);

// Draw the page in the next animation frame. Several calls before the frame draw the page only once.
export const changed = () => listener();

export const mayWrite = () => state.isLoaded && state.role !== "read";
export const mayAdmin = () => ["admin", "automation"].includes(state.role);

// In the map `name` of the page's state, set the entry for `target`. Null removes the entry.
export function note(name, target, value) {
	if (value === null) state[name].delete(target);
	else state[name].set(target, value);
	changed();
}

// Run `work`. Show the progress at `target`, and a sentence after a failure. Meanwhile, controls show the value
// `wish`. Return the result of `work`, or undefined.
export async function act(target, what, work, wish = true) {
	note("errors", target, null);
	note("pending", target, { ...state.pending.get(target), [what]: wish });
	try {
		return await work();
	} catch (error) {
		note("errors", target, error.message);
		return undefined;
	} finally {
		const { [what]: _, ...others } = state.pending.get(target) ?? {};
		note("pending", target, Object.keys(others).length ? others : null);
	}
}

const LISTS = ["devices", "rooms", "groups", "automations", "scenes"];

export function takeOverview(overview) {
	if (state.isLoaded && overview.version !== state.version) location.reload(); // a new version has a new page
	for (const name of LISTS) state[name] = new Map(overview[name].map((each) => [each.id, each]));
	const { adapters, executions, faults, safe, timezone, units, version } = overview;
	Object.assign(state, { adapters, executions, faults, safe, timezone, units, version, role: overview.caller.role, isLoaded: true });
	changed();
}

// Insert or replace a device, room, or group by id. Keep the order of ids.
export function put(name, thing) {
	const isNew = !state[name].has(thing.id);
	state[name].set(thing.id, { ...state[name].get(thing.id), ...thing });
	if (isNew) state[name] = new Map([...state[name]].sort(([one], [other]) => (one < other ? -1 : 1)));
	changed();
}

export function drop(name, id) {
	state[name].delete(id);
	changed();
}

function edit(name, thing) {
	const isKnown = state[name].has(thing.id);
	if (isKnown) put(name, thing);
	return isKnown;
}

const RELOAD = () => false;

// Functions that apply each type of frame. Each function returns false if a new overview is
// necessary.
const FRAMES = {
	"device.state_changed": ({ id, state: attributes }) => edit("devices", { id, attributes, updated_at: new Date() }),
	"device.updated": ({ type, ...device }) => edit("devices", { alias: undefined, ...device }),
	"device.room_changed": ({ id, room_id }) => edit("devices", { id, room_id }),
	"device.removed": ({ id }) => drop("devices", id),
	"room.added": ({ room }) => put("rooms", room),
	"room.updated": ({ room }) => put("rooms", room),
	"room.removed": ({ id }) => drop("rooms", id),
	"group.added": ({ group }) => put("groups", group),
	"group.updated": ({ group }) => put("groups", group),
	"group.removed": ({ id }) => drop("groups", id),
	"group.members_changed": ({ id, members }) => edit("groups", { id, members }),
	"adapter.started": RELOAD,
	"system.error": RELOAD,
	"scene.catalog_reloaded": RELOAD,
	"scene.catalog_reload_failed": RELOAD,
	"automation.catalog_reloaded": RELOAD,
	"automation.catalog_reload_failed": RELOAD,
	"adapters.reloaded": RELOAD,
	"adapters.reload_failed": RELOAD,
};

// Apply a frame. Return true if the overview must be fetched again.
export function takeFrame(frame) {
	state.eventCount += 1;
	state.events = [{ ...frame, at: Date.now(), number: state.eventCount }, ...state.events].slice(0, MAX_EVENTS);
	changed();
	return FRAMES[frame.type]?.(frame) === false;
}
