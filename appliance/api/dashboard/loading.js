// Loads data for a view. Loads the data again after changes, and limits the number of concurrent requests.

import { useEffect, useRef, useState } from "./dom.js";
import { state } from "./store.js";

// Return the last result of `load`, and a sentence if the last attempt failed. Load again after a change of
// `reasons`, and after an outage.
export function useLoaded(load, reasons) {
	const [loaded, setLoaded] = useState({});
	const [round, setRound] = useState(0);
	useEffect(() => {
		let isCurrent = true;
		const keep = (value) => isCurrent && setLoaded(value);
		load().then((data) => keep({ data }), ({ message }) => keep((old) => ({ ...old, error: message })));
		return () => (isCurrent = false);
	}, [...reasons, round]);
	const reload = () => setRound((count) => count + 1);
	useEffect(() => void (state.isOnline && loaded.error && reload()), [state.isOnline]);
	return { ...loaded, reload };
}

const REFRESH_MS = 5000;
const SOON_MS = 500;

// Like `useLoaded`, but load every few seconds while the page is visible and the hub is reachable. Also load soon
// after `sign` changes, at most twice per second. If `sign` is `knownSign`, the result is already known, so do not
// load. An error does not clear the last result.
export function useRefreshed(load, sign, knownSign) {
	const way = useRef({ loads: 0, timer: undefined }).current;
	way.isKnown = sign === knownSign;
	const loaded = useLoaded(() => {
		way.loads += 1;
		return load().finally(() => (way.loads -= 1));
	}, []);
	const refresh = () => document.hidden || !state.isOnline || way.loads || loaded.reload(); // do not load again while a request is in progress
	useEffect(() => {
		const timer = setInterval(refresh, REFRESH_MS);
		return () => clearInterval(timer);
	}, []);
	useEffect(() => {
		if (way.timer === 0) way.timer = setTimeout(() => {
			way.timer = 0;
			if (!way.isKnown) refresh();
		}, SOON_MS);
		way.timer ??= 0; // the first value is not a change
	}, [sign]);
	return loaded;
}

const MAX_LOADS = 3;
const waiting = [];
let running = 0;

// Run at most three `work` functions at a time, so that pictures do not delay commands.
export async function inTurn(work) {
	if (running >= MAX_LOADS) await new Promise((go) => waiting.push(go));
	else running += 1;
	try {
		return await work();
	} finally {
		if (waiting.length) waiting.shift()();
		else running -= 1;
	}
}
