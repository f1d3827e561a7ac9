// Sends commands to a device, a room, or a group.

import { get, post, segment } from "./api.js";
import { confirm } from "./dialog.js";
import { act, note, put, state } from "./store.js";
import { actionWord, classOf, isAway, nameOf } from "./values.js";
import { t } from "./words.js";

const ASK_FIRST = ["unlock", "open"]; // actions that give access to the home
const GUARDED = ["lock", "door", "garage_door"];
const WITH_CODE = ["lock", "alarm_control_panel"];

// The target for commands to the device. The target is also the key for progress and errors.
export const toDevice = (device) =>
	({ target: device.id, path: `devices/${segment(device.id)}`, name: nameOf(device), isDevice: true });
export const toMany = (kind, { id, name }, devices) => ({ target: `${kind}/${id}`, path: `${kind}/${segment(id)}`, name, devices });

const queued = new Map();

// Send a command. Ask for a confirmation first if necessary.
export async function send(to, capability, action, value, wish = value ?? action) {
	const letsIn = ASK_FIRST.includes(action) && GUARDED.includes(capability.split(".").pop());
	if ((letsIn && !to.simulate) || (to.isGuarded && action === "off")) {
		const what = actionWord(action);
		if (!(await confirm(t("confirm.command", { action: what, name: to.name }), what, null, asItWas(to, capability)))) return;
	}
	const ids = to.isDevice ? null : await choose(to, capability, action);
	if (ids?.length !== 0) await inOrderOf(to, { capability, action, value }, ids, wish);
}

// Return whether a device is unchanged since the confirmation dialog opened.
function asItWas({ target, isDevice }, capability) {
	const shown = () => state.isOnline && (!isDevice || (state.devices.has(target) && !isAway(state.devices.get(target))
		&& JSON.stringify(state.devices.get(target).attributes[capability])));
	const before = shown();
	return () => shown() === before;
}

// While a command of the same capability is in progress, show the latest command as pending, and send it afterwards.
// Send the action `stop` at once.
async function inOrderOf(to, command, ids, wish) {
	const { capability, action } = command;
	const key = `${to.target}|${capability}`;
	const pending = state.pending.get(to.target);
	if (action === "stop") queued.delete(key); // a queued command would start the movement again
	else if (pending?.[capability] !== undefined) {
		queued.set(key, [to, command, ids, wish]);
		note("pending", to.target, { ...pending, [capability]: wish });
		return;
	}
	await act(to.target, capability, () => deliver(to, command, ids).catch((error) => withCode(to, command, error)), wish);
	const next = queued.get(key);
	queued.delete(key);
	if (next) await inOrderOf(...next);
}

// If a lock or alarm panel requires a code, ask for the code and send the command again. For other errors, show a
// sentence with the device's name.
async function withCode(to, command, error) {
	const device = state.devices.get(to.target);
	const asksCode = error.status === 400 && device && WITH_CODE.includes(classOf(device)) && /\bcode\b/.test(error.message);
	const code = asksCode && (await confirm(t("code.ask", { name: to.name }), actionWord(command.action), t("code"), asItWas(to, command.capability)));
	if (code) return deliver(to, { ...command, code }).catch((other) => withCode(to, command, other));
	if (!asksCode) throw new Error(`${to.name}: ${error.message}`);
	return undefined;
}

// Return the devices for a command to a room or group: its lights, and after a confirmation also its other devices.
async function choose({ devices }, capability, action) {
	const able = devices.filter((each) => each.commands?.some((one) => one.capability === capability && one.actions.includes(action)));
	const others = able.filter((each) => each.kind !== "Light");
	const what = actionWord(action);
	const names = others.map(nameOf).join(", ");
	const isAll = others.length > 0 && (await confirm(t("confirm.others", { action: what, names }), what));
	return able.filter((each) => isAll || !others.includes(each)).map(({ id }) => id);
}

const one = (id, command) => post(`devices/${segment(id)}/command`, command)
	.then(({ status }) => ({ device_id: id, status }), ({ message }) => ({ device_id: id, status: "error", message }));

// Send the command. Resolve once the page has received the resulting state.
async function deliver({ target, path, isDevice, simulate }, command, ids) {
	const before = state.devices.get(target);
	if (!isDevice) {
		note("outcomes", target, null);
		const results = await Promise.all(ids.map((id) => one(id, command)));
		return note("outcomes", target, results.every((each) => each.status === "ok") ? null : results);
	}
	if (simulate) await post(simulate, { device_id: target, attributes: { [command.capability]: command.value } });
	else await post(`${path}/command`, command);
	if (state.devices.get(target) !== before) return;
	const found = await get(`${path}?include=commands`);
	if (state.devices.get(target) === before) put("devices", found); // otherwise, a newer frame has already arrived
}

// Execute the action for a tap. If `isGuarded` is true, ask before a plug is switched off.
export const tap = (device, { capability, action }, isGuarded = false) =>
	send({ ...toDevice(device), isGuarded: isGuarded && device.kind === "Switch" }, capability, action);
