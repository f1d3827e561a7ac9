// The appearance of a device: a symbol with a tone, the state in one line, readings, and the action for a tap.

import { commandsOf } from "./controls.js";
import { attributesOf, classOf, isAway, labelOf, nameOf, numberOf, show, word } from "./values.js";
import { isPicture } from "./pictures.js";
import { number, t, time } from "./words.js";

const LOW_BATTERY = 20; // percent
const OPEN = ["open", "opening"];
const MAX_READINGS = 3;

const isOn = ({ power }) => power === "on";
const lockLook = ({ lock }) => (lock === "locked" ? { symbol: "lock", tone: "good" } : { symbol: "unlocked", tone: "bad" });
const doorLook = (attributes) => (isOpen(attributes.door ?? attributes.garage_door) ? { symbol: "ajar", tone: "warn" } : { symbol: "door", tone: "good" });
const HEAT = { heating: "warm", cooling: "cool" };

function heatLook({ hvac_state: doing, hvac_mode: mode, target_temperature: target, temperature: now, power }) {
	if (doing) return { symbol: "climate", tone: HEAT[doing] };
	const isHeating = mode !== "off" && power !== "off" && numberOf(target) > numberOf(now ?? target);
	return { symbol: "climate", tone: mode === "cool" ? "cool" : isHeating && "warm" };
}

function alarmLook({ alarm_control_panel: own, ...others }) {
	const mode = own ?? Object.values(others).find((value) => typeof value === "string" && /arm|triggered|pending/.test(value)) ?? "";
	if (mode === "triggered") return { tone: "bad" };
	if (mode === "pending" || mode === "arming") return { tone: "warn" };
	return { tone: mode.startsWith("armed") && "good" };
}

const LOOKS = {
	light: (shown) => ({ tone: isOn(shown) && "light" }),
	lock: lockLook,
	door: doorLook,
	garage_door: doorLook,
	climate: heatLook,
	water_heater: heatLook,
	alarm_control_panel: alarmLook,
	siren: (shown) => ({ tone: isOn(shown) && "bad" }),
	cover: ({ cover_position: position }) => ({ symbol: position > 0 ? "raised" : "cover", tone: position > 0 && "cool" }),
	media_player: (shown) => ({ tone: (isOn(shown) || shown.media_playback === "playing") && "play" }),
};

// Symbols of sensors. A sensor gets the symbol of the first attribute in this list that the sensor has.
const SENSED = {
	smoke: "siren", water_leak: "leak", contact: "door", motion: "person", occupancy: "person", presence: "person",
	temperature: "sensor", humidity: "humidifier", co2: "fan", power_consumption: "plug", battery: "battery",
};

// The symbol of a device, and a tone if the device is in use or needs attention.
export function lookOf(device) {
	const { attributes } = device;
	const name = "lock" in attributes ? "lock" : "target_temperature" in attributes ? "climate" : classOf(device).replace(/^mediaplayer$|^tv$/, "media_player");
	if (LOOKS[name]) return { symbol: name, ...LOOKS[name](attributes) };
	if (device.kind === "Sensor" || name === "sensor") return sensorLook(device);
	const isRunning = isOn(attributes) || isOpen(openable(device)) || ["cleaning", "mowing"].some((each) => Object.values(attributes).includes(each));
	return { symbol: name, tone: isRunning && "cool" };
}

function sensorLook(device) {
	const { attributes } = device;
	const found = Object.keys(SENSED).find((name) => name in attributes);
	const symbol = found === "contact" ? contactSymbol(device) : (SENSED[found] ?? "gauge");
	return { symbol, tone: alertOf(device)?.tone };
}

function contactSymbol(device) {
	const [shut, open] = classOf(device) === "window" ? ["window", "window_open"] : ["door", "ajar"];
	return device.attributes.contact === "open" ? open : shut;
}

const isOpen = (value) => OPEN.includes(value) || (numberOf(value) ?? 0) > 0;
const openable = ({ attributes, commands = [] }) => attributes[commands.find(({ actions }) => actions.includes("open")
	&& actions.includes("close"))?.capability];

// --- what needs attention --------------------------------------------------------------------------

export const isLow = ({ attributes: { battery } }) => (numberOf(battery) ?? 100) <= LOW_BATTERY;
export const isAlarm = ({ attributes }) => attributes.smoke === true || attributes.water_leak === true || Object.values(attributes).includes("triggered");
export const isUnlocked = ({ attributes: { lock } }) => lock === "unlocked" || lock === "jammed";
export const isLeftOpen = ({ attributes }) => ["contact", "door", "garage_door"].some((name) => OPEN.includes(attributes[name]));

function alertOf(device) {
	if (isAlarm(device)) return { tone: "bad" };
	if (isUnlocked(device)) return { tone: "bad" };
	if (isLeftOpen(device) || isLow(device)) return { tone: "warn" };
	return null;
}

// --- words -----------------------------------------------------------------------------------------

const asRoom = (value) => show("temperature", value);

// The state of a device in one line.
export function stateOf(device) {
	const { attributes } = device;
	const { power, lock, state: presence, temperature, target_temperature: target, cover_position: position } = attributes;
	if (isAway(device)) return t("away", { state: word(presence), time: time(device.last_seen) });
	if (lock) return word(lock);
	if (target !== undefined) return heatState(device);
	if (typeof position === "number") return position > 0 && position < 100
		? t("state.open", { share: show("cover_position", position) }) : word(position ? "open" : "closed");
	if (power === "off") return word("off");
	const parts = [];
	if (power === "on") parts.push(...onState(attributes));
	else if (temperature !== undefined) parts.push(asRoom(temperature));
	if (parts.length) return parts.join(" · ");
	const commands = commandsOf(device);
	const isUnknown = commands.some(({ capability }) => capability === "power");
	const command = commands.find(({ capability }) => attributes[capability] !== undefined && !(isUnknown && capability === "brightness"));
	if (command) return show(command.capability, attributes[command.capability], device);
	return isUnknown ? word("unknown") : (device.info?.model ?? "");
}

function onState({ brightness, percentage, media_title: title, media_app: app, media_source: source, power_consumption: watts, color_temperature: warmth }) {
	if (brightness !== undefined) return [show("brightness", brightness), warmth && show("color_temperature", warmth)].filter(Boolean);
	if (title || app) return [title || app];
	return [word("on"), watts !== undefined && show("power_consumption", watts),
		percentage !== undefined && show("percentage", percentage), source].filter(Boolean);
}

function heatState({ attributes: { temperature, target_temperature: target, hvac_mode: mode, power } }) {
	if (mode === "off" || power === "off") return [word("off"), temperature && asRoom(temperature)].filter(Boolean).join(" · ");
	return temperature === undefined ? asRoom(target) : `${number(numberOf(temperature))} → ${asRoom(target)}`;
}

// --- readings of sensors ---------------------------------------------------------------------------

const PLAIN = ["temperature", "temperature_outdoor", "humidity", "illuminance", "co2", "pressure", "power_consumption",
	"weather_condition"]; // the unit is enough to recognise these readings
const QUIET = ["battery", "color_mode", "power", "state", "voltage", "current"];
const STATES = ["contact", "motion", "occupancy", "presence", "smoke", "water_leak"];

const sayState = (device, name) => {
	const value = device.attributes[name];
	if (name === "contact") return `${nameOf(device)}: ${word(value).toLowerCase()}`;
	if (name === "motion" || name === "occupancy") return t(`reading.${value}`, {}, word(value));
	return `${nameOf(device)}: ${show(name, value, device).toLowerCase()}`;
};

// A sensor's readings in a few words, with a tone.
export function readingOf(device) {
	const { attributes } = device;
	if (isAway(device)) return { text: `${nameOf(device)}: ${word(attributes.state).toLowerCase()}`, tone: "away" };
	const shown = attributesOf(device).filter(([name, value]) => !QUIET.includes(name) && !isPicture(value)).slice(0, MAX_READINGS);
	const texts = shown.map(([name, value]) =>
		STATES.includes(name) ? sayState(device, name) : PLAIN.includes(name) ? show(name, value, device) : `${labelOf(name, device)} ${show(name, value, device)}`);
	if (isLow(device)) texts.push(`${labelOf("battery", device)} ${show("battery", attributes.battery, device)}`);
	return { text: texts.join(" · ") || nameOf(device), tone: alertOf(device)?.tone };
}

// --- the action of a tap ----------------------------------------------------------------------------

const LOUD = ["siren", "lawn_mower", "alarm_control_panel"]; // a tap must not start these by accident

// The command that a tap on a tile sends, or null. If the command switches the device on or off, the result contains
// `isOn`, which is null if the state is unknown.
export function obviousOf(device) {
	const { attributes } = device;
	const commands = commandsOf(device);
	const taking = (...actions) => commands.find((each) => actions.every((action) => each.actions.includes(action)));
	if (LOUD.includes(classOf(device))) return null;
	const power = commands.find(({ capability, actions }) => capability === "power" && actions.includes("on") && actions.includes("off"));
	if (power) return { capability: "power", action: isOn(attributes) ? "off" : "on", isOn: attributes.power ? isOn(attributes) : null };
	const order = (command, action) => command && { capability: command.capability, action };
	const lock = taking("lock", "unlock");
	if (lock) return order(lock, attributes[lock.capability] === "locked" ? "unlock" : "lock");
	if ("target_temperature" in attributes) return null;
	const shutter = taking("open", "close");
	if (shutter) return order(shutter, isOpen(attributes[shutter.capability]) ? "close" : "open");
	const player = taking("play", "pause");
	if (player) return order(player, attributes[player.capability] === "playing" ? "pause" : "play");
	const vacuum = taking("start", "return_to_base");
	if (vacuum) return order(vacuum, attributes[vacuum.capability] === "cleaning" ? "return_to_base" : "start");
	return commands.length === 1 ? (order(taking("press"), "press") ?? null) : null;
}
