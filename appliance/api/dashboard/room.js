// The page of a room, with the room's devices and a day of measurements.

import { roomResults, roomSwitch } from "./controls.js";
import { tags, use } from "./dom.js";
import { Day } from "./history.js";
import { icon } from "./icons.js";
import { inOrder } from "./preferences.js";
import { state } from "./store.js";
import { Devices } from "./summary.js";
import { empty } from "./ui.js";
import { attributesOf, numberOf } from "./values.js";
import { t } from "./words.js";

const { a, div, h1, p } = tags;

const MAX_SERIES = 12;

export function RoomPage({ id }) {
	const room = state.rooms.get(id);
	if (!room) return [h1({ tabindex: "-1" }, t("room.gone")), p(id)];
	const devices = inOrder([...state.devices.values()].filter((device) => device.room_id === id));
	const measured = devices.flatMap((device) => attributesOf(device)
		.filter(([attribute, value]) => typeof value !== "boolean" && numberOf(value) !== null
			&& !device.commands?.some(({ capability }) => capability === attribute))
		.map(([attribute]) => ({ device, attribute }))).slice(0, MAX_SERIES);
	return [
		a({ class: "back", href: "#/" }, icon("back"), t("nav.home")),
		div({ class: "heading" }, h1({ tabindex: "-1", dir: "auto", class: "title" }, room.name), roomSwitch(room, devices)),
		roomResults(id),
		devices.length ? use(Devices, { devices }) : empty(t("nothing")),
		measured.length > 0 && use(Day, { key: measured.map(({ device, attribute }) => device.id + attribute).join(), measured }),
	];
}
