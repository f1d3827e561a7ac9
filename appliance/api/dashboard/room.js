// A room: its devices, and what they measured over a day.

import { get, segment } from "./api.js";
import { cards } from "./cards.js";
import { tags, use, useEffect, useState } from "./dom.js";
import { roomResults, roomSwitch } from "./home.js";
import { SeriesChart } from "./series.js";
import { inOrder } from "./preferences.js";
import { state } from "./store.js";
import { card, empty, icon, inTurn, titled } from "./ui.js";
import { attributesOf, labelOf, nameOf, numberOf, show } from "./values.js";
import { t } from "./words.js";

const { a, div, h1, p } = tags;

const DAY_MS = 86_400_000;
const MAX_VALUES = "500";
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
		devices.length ? cards(devices) : empty(t("nothing")),
		measured.length > 0 && use(Day, { key: measured.map(({ device, attribute }) => device.id + attribute).join(), measured }),
	];
}

// One picture for each sort of reading, with a line for each device that has it.
function Day({ measured }) {
	const [series, setSeries] = useState([]);
	const [until] = useState(Date.now());
	const from = until - DAY_MS;
	useEffect(() => {
		const query = new URLSearchParams({ limit: MAX_VALUES, start: new Date(from).toISOString() });
		measured.forEach(({ device, attribute }) => {
			const path = `devices/${segment(device.id)}/history/${segment(attribute)}?${query}`;
			const keep = ({ entries }) => entries.length > 0 && setSeries((old) => [...old, { device, attribute, entries }]);
			inTurn(() => get(path)).then(keep, () => {}); // then without this line
		});
	}, []);
	const kinds = [...new Set(measured.map(({ attribute }) => attribute))].filter((kind) => series.some((each) => each.attribute === kind));
	return titled(t("room.day"), kinds.length ? kinds.map((kind) => div({ key: kind }, card(use(SeriesChart, {
		label: labelOf(kind, series.find((each) => each.attribute === kind).device),
		lines: series.filter((each) => each.attribute === kind).map(({ device, entries }) => ({ name: nameOf(device), entries })),
		text: (value) => show(kind, value, series.find((each) => each.attribute === kind).device),
		from,
		until,
	})))) : empty(t("device.no_history")));
}
