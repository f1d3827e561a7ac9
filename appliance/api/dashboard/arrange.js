// Editing of rooms and groups, and of the devices in them.

import { erase, post, segment } from "./api.js";
import { Alias, idFor, renameDevice } from "./device_names.js";
import { confirm } from "./dialog.js";
import { tags, use, useState } from "./dom.js";
import { orderedRooms } from "./preferences.js";
import { act, drop, mayWrite, put, state } from "./store.js";
import { busy, card, Editable, errorLine, Field, iconButton, row, titled } from "./ui.js";
import { nameOf } from "./values.js";
import { t } from "./words.js";

const { div, input, option, select, small, span } = tags;

export function Arrange() {
	const devices = [...state.devices.values()];
	return [
		titled(t("rooms"), card(orderedRooms().map((room) => named("rooms", room)), newOne("rooms"))),
		titled(t("arrange.places"), use(Places, { devices })),
		titled(t("groups"), [[...state.groups.values()].map(groupCard), mayWrite() && card(newOne("groups"))]),
	];
}

function newOne(kind) {
	if (!mayWrite()) return null;
	const make = async (name) => put(kind, await post(kind, { id: idFor(name, state[kind]), name }));
	const onSend = (name) => act(`new ${kind}`, "make", () => make(name).then(() => true));
	return [use(Field, { label: t(`arrange.new_${kind}`), action: t("create"), maxlength: "1000", onSend }), errorLine(`new ${kind}`)];
}

// A room or group with its buttons to rename it, or to delete it after a confirmation.
function named(kind, { id, name }) {
	const target = `${kind}/${id}`;
	const onSave = (wanted) => wanted && act(target, "name", async () => put(kind, await post(kind, { id, name: wanted })));
	const remove = async () => {
		if (!(await confirm(t("confirm.delete", { name }), t("delete"), null, () => state[kind].get(id)?.name === name))) return;
		await act(target, "delete", () => erase(`${kind}/${segment(id)}`).then(() => drop(kind, id)));
	};
	const canEdit = mayWrite();
	return div({ key: id },
		row(use(Editable, { text: name, level: "h3", label: t("rename", { name }), canEdit, onSave }),
			canEdit && iconButton("remove", t("delete.what", { name }), remove)),
		errorLine(target));
}

const listRooms = () => [{ id: "", name: t("home.unassigned") }, ...state.rooms.values()];
const assign = (id, room) => act(`place ${id}`, "room", async () => put("devices", await post(`devices/${segment(id)}/room`, { room_id: room || null })));

// The room, name, and short id of each device. Selected devices can be moved, or added to a group, together.
function Places({ devices }) {
	const [chosen, setChosen] = useState([]);
	const flip = (id) => setChosen(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
	const move = async ({ target }) => {
		const room = target.value;
		setChosen([]);
		for (const id of chosen) await assign(id, room === "-" ? null : room);
	};
	const join = ({ target }) => {
		const { id, members } = state.groups.get(target.value);
		setChosen([]);
		setMembers(id, [...members, ...chosen.filter((each) => !members.includes(each))]);
	};
	const forChosen = (label, onchange, things) => row(span(label), select({ "aria-label": label, value: "", onchange },
		option({ value: "" }, "…"), things.map(({ id, name }) => option({ key: id, value: id || "-" }, name))));
	const count = chosen.length;
	return card(
		mayWrite() && count > 0 && [forChosen(t("arrange.move", { count }), move, listRooms()),
			state.groups.size > 0 && forChosen(t("arrange.join", { count }), join, [...state.groups.values()])],
		devices.map((device) => use(Place, { key: device.id, device,
			box: mayWrite() && input({ type: "checkbox", "aria-label": t("arrange.choose", { name: nameOf(device) }),
			checked: chosen.includes(device.id), onchange: () => flip(device.id) }) })));
}

function Place({ device, box }) {
	const target = `place ${device.id}`;
	const [isOpen, setOpen] = useState(false);
	const name = nameOf(device);
	const rooms = listRooms();
	return div(
		row(span({ class: "chosen-one" }, box, span(name, device.alias && small({ class: "hint" }, ` ${device.alias}`)),
			mayWrite() && iconButton("edit", t("rename", { name }), () => setOpen(!isOpen))), select({
			"aria-label": name,
			disabled: !mayWrite(),
			"aria-busy": busy(state.pending.has(target)),
			value: device.room_id ?? "",
			onchange: ({ target: chosen }) => assign(device.id, chosen.value),
		}, rooms.map(({ id, name }) => option({ key: id, value: id }, name)))),
		errorLine(target),
		isOpen && [use(Field, { label: t("rename", { name }), action: t("save"), initial: name, canBeEmpty: true, isFocused: true,
			onSend: async (text) => void (await renameDevice(device.id, text)) }),
			errorLine(device.id), use(Alias, { device, isOffered: !device.alias, onDone: () => setOpen(false) })]);
}

const setMembers = (id, members) => act(`groups/${id}`, "members", async () => put("groups", await post(`groups/${segment(id)}/members`, { members })));

function groupCard(group) {
	const { id, name, members } = group;
	const save = (wanted) => setMembers(id, wanted);
	const move = (at, by) => {
		const wanted = [...members];
		wanted.splice(at + by, 0, ...wanted.splice(at, 1));
		save(wanted);
	};
	const member = (deviceId, at) => {
		const called = { name: nameOf(state.devices.get(deviceId) ?? { id: deviceId }) };
		return div({ key: deviceId, class: "row member" }, span(called.name), mayWrite() && span({ class: "buttons" },
			iconButton("up", t("arrange.up", called), () => move(at, -1), at === 0),
			iconButton("down", t("arrange.down", called), () => move(at, 1), at === members.length - 1),
			iconButton("close", t("arrange.leave", called), () => save(members.filter((each) => each !== deviceId)))));
	};
	const others = [...state.devices.values()].filter((device) => !members.includes(device.id));
	const add = t("arrange.add", { name });
	return div({ key: id, class: "card", role: "group", "aria-label": name },
		named("groups", group),
		members.map(member),
		mayWrite() && others.length > 0 && select({ "aria-label": add, value: "", onchange: ({ target }) => save([...members, target.value]) },
			option({ value: "" }, add), others.map((device) => option({ key: device.id, value: device.id }, nameOf(device)))));
}
