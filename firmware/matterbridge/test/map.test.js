import assert from "node:assert/strict";
import test from "node:test";
import * as map from "../src/map.js";

/** @param {string} capability @param {string[]} actions @param {Record<string, any>} [schema] */
const command = (capability, actions, schema = {}) => ({ capability, actions, schema });
const POWER = command("power", ["on", "off", "toggle"]);

/**
 * @param {Partial<import("../src/hub.js").Device>} fields
 * @returns {import("../src/hub.js").Device}
 */
const device = (fields) => ({ id: "x:y", name: "Lamp", room_id: null, kind: "Light", attributes: {}, commands: [], ...fields });

const COLOR = device({ commands: [POWER, command("brightness", ["set"]), command("color_temperature", ["set"]), command("color_hs", ["set"])] });
const COVER = device({ kind: "Switch", commands: [command("cover_position", ["open", "close", "stop", "set"])] });
const HEATER = device({
  kind: "Switch",
  attributes: { temperature: { value: 20.5, unit: "°C" }, target_temperature: { value: 21, unit: "°C" }, hvac_mode: "heat" },
  commands: [command("target_temperature", ["set"], { min: 5, max: 30, step: 0.5, unit: "°C" }), command("hvac_mode", ["set"], { values: ["off", "heat"] })],
});

test("each device has the types of the table", () => {
  /** @type {[Partial<import("../src/hub.js").Device>, string][]} */
  const rows = [
    [{ commands: [POWER] }, "onOffLight"],
    [{ commands: [POWER, command("brightness", ["set"])] }, "dimmableLight"],
    [{ commands: [POWER, command("brightness", ["set"]), command("color_temperature", ["set"])] }, "colorTemperatureLight"],
    [COLOR, "extendedColorLight"],
    [{ kind: "Switch", commands: [POWER], info: { class: "plug" } }, "onOffOutlet"],
    [{ kind: "Switch", commands: [POWER], info: { class: "fan" } }, "fan"],
    [COVER, "windowCovering"],
    [{ kind: "Switch", commands: [command("garage_door", ["open", "close"])] }, "windowCovering"],
    [{ kind: "Switch", commands: [command("lock", ["lock", "unlock"])] }, "doorLock"],
    [HEATER, "thermostat"],
    [{ kind: "Sensor", info: { class: "button" } }, "genericSwitch"],
    [{ kind: "Sensor", attributes: { temperature: {}, humidity: {}, battery: 80 } }, "temperatureSensor+humiditySensor+battery"],
    [{ kind: "Sensor", attributes: { contact: "open" } }, "contactSensor"],
    [{ kind: "Sensor", attributes: { motion: "clear", illuminance: 5 } }, "lightSensor+occupancySensor"],
    [{ kind: "Sensor", attributes: { smoke: false, water_leak: false, air_quality: "good" } }, "smokeCoAlarm+waterLeakDetector+airQualitySensor"],
    [{ kind: "Sensor", attributes: { "custom.x.y": 5 } }, ""],
  ];
  for (const [fields, expected] of rows) assert.equal(map.shapeOf(device(fields)), expected);
});

/** @param {import("../src/hub.js").Device} of @param {Record<string, any>} attributes */
const updates = (of, attributes) =>
  Object.fromEntries(map.partsOf(of).flatMap((part) => part.updates(attributes, of)).map(([cluster, name, value]) => [`${cluster}.${name}`, value]));

test("attributes are converted to Matter's units", () => {
  assert.deepEqual(updates(COLOR, { power: "on", brightness: 50, color_temperature: { value: 2700, unit: "kelvin" }, color_mode: "color_temp" }), {
    "onOff.onOff": true,
    "levelControl.currentLevel": 127,
    "colorControl.colorTemperatureMireds": 370,
    "colorControl.colorMode": 2,
    "colorControl.enhancedColorMode": 2,
  });
  assert.equal(updates(COLOR, { color_hs: { hue: 180, saturation: 100 }, color_mode: "hs" })["colorControl.currentHue"], 127);
  assert.equal(updates(COVER, { cover_position: 30 })["windowCovering.currentPositionLiftPercent100ths"], 7000);
  assert.deepEqual(updates(HEATER, HEATER.attributes), {
    "thermostat.localTemperature": 2050,
    "thermostat.occupiedHeatingSetpoint": 2100,
    "thermostat.occupiedCoolingSetpoint": 2100,
    "thermostat.systemMode": 4,
  });
  const sensor = device({ kind: "Sensor", attributes: { temperature: { value: 68, unit: "°F" }, contact: "open", smoke: true } });
  assert.deepEqual(updates(sensor, sensor.attributes), {
    "temperatureMeasurement.measuredValue": 2000,
    "booleanState.stateValue": false,
    "smokeCoAlarm.smokeState": 2,
  });
});

test("an unknown value changes nothing", () => {
  for (const of of [COLOR, COVER, HEATER]) assert.deepEqual(updates(of, {}), {});
});

test("requests of Matter become commands of Lares", () => {
  /** @type {[import("../src/hub.js").Device, string, any, any][]} */
  const rows = [
    [COLOR, "on", {}, [{ capability: "power", action: "on" }]],
    [COLOR, "moveToLevel", { level: 127, transitionTime: 20 }, [{ capability: "brightness", action: "set", value: 50, transition_secs: 2 }]],
    [COLOR, "moveToLevelWithOnOff", { level: 1 }, [{ capability: "power", action: "off" }]],
    [COLOR, "moveToColorTemperature", { colorTemperatureMireds: 370 }, [{ capability: "color_temperature", action: "set", value: { value: 2703, unit: "kelvin" } }]],
    [COLOR, "moveToHueAndSaturation", { hue: 127, saturation: 254 }, [{ capability: "color_hs", action: "set", value: { hue: 180, saturation: 100 } }]],
    [COVER, "goToLiftPercentage", { liftPercent100thsValue: 7000 }, [{ capability: "cover_position", action: "set", value: 30 }]],
    [COVER, "stopMotion", {}, [{ capability: "cover_position", action: "stop" }]],
  ];
  for (const [of, name, request, expected] of rows) assert.deepEqual(map.partsOf(of)[0].commands?.[name](request, of), expected);
});

test("attributes that a controller writes become commands of Lares", () => {
  const { writes } = map.partsOf(HEATER)[0];
  assert.deepEqual(writes?.["thermostat.occupiedHeatingSetpoint"](2130, HEATER), [
    { capability: "target_temperature", action: "set", value: { value: 21.5, unit: "°C" } },
  ]);
  assert.deepEqual(writes?.["thermostat.systemMode"](0, HEATER), [{ capability: "hvac_mode", action: "set", value: "off" }]);
  assert.deepEqual(writes?.["thermostat.systemMode"](3, HEATER), []);
});

test("colours survive the way there and back", () => {
  for (const rgb of [{ r: 255, g: 0, b: 0 }, { r: 0, g: 255, b: 0 }, { r: 30, g: 60, b: 255 }, { r: 255, g: 255, b: 255 }]) {
    const { x, y } = map.rgbToXy(rgb);
    const back = map.xyToRgb(x, y);
    for (const part of /** @type {const} */ (["r", "g", "b"])) assert.ok(Math.abs(back[part] - rgb[part]) < 12, JSON.stringify([rgb, back]));
    assert.deepEqual(map.hsToRgb({ hue: 0, saturation: 100 }), { r: 255, g: 0, b: 0 });
  }
});

test("a name has the room, unless it names it already, and at most 32 characters", () => {
  const rooms = new Map([["hall", "Hall"]]);
  assert.equal(map.nameOf(device({ room_id: "hall" }), rooms, true), "Hall Lamp");
  assert.equal(map.nameOf(device({ room_id: "hall", name: "Hall lamp" }), rooms, true), "Hall lamp");
  assert.equal(map.nameOf(device({ room_id: "hall" }), rooms, false), "Lamp");
  assert.equal(map.nameOf(device({ name: "x".repeat(50) }), rooms, true).length, 32);
});
