// Requests in progress and their errors, by target: a device, room, or other part of the page.

import { changed, state } from "./store.js";

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
