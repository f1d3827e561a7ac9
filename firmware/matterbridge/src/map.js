// The table that maps devices of Lares to Matter. Only this file converts Matter's units.
//
// Names of clusters, attributes, and commands come from the Matter specification 1.4, in the spelling of matter.js.

/** @typedef {import("./hub.js").Device} Device */
/** @typedef {import("./hub.js").Command} Command */
/** @typedef {[cluster: string, attribute: string, value: any]} Update */

/**
 * A part of a device: one Matter device type.
 * `updates` converts attributes of Lares to Matter, and omits missing attributes. `commands` converts a Matter
 * request to commands. `writes` converts a controller's write of an attribute to commands.
 * @typedef {{
 *   type: string,
 *   applies: (device: Device) => boolean,
 *   updates: (attributes: Record<string, any>, device: Device) => Update[],
 *   commands?: Record<string, (request: any, device: Device) => Command[]>,
 *   writes?: Record<string, (value: any, device: Device) => Command[]>,
 * }} Part
 */

const LEVEL_MAX = 254;
const COLOR_MAX = 65279; // 0xfeff, for 1.0 in CIE 1931
const HUE_MAX = 254;
const SCENE = "scene";

/** @param {number} number @param {number} low @param {number} high */
const clamp = (number, low, high) => Math.min(high, Math.max(low, number));
/** @param {number} percent */
export const toLevel = (percent) => clamp(Math.round((percent * LEVEL_MAX) / 100), 1, LEVEL_MAX);
/** @param {number} level */
export const fromLevel = (level) => clamp(Math.round((level * 100) / LEVEL_MAX), 1, 100);
/** @param {any} measurement A bare number, or `{ value, unit }`. */
const numberOf = (measurement) => (typeof measurement === "object" && measurement !== null ? measurement.value : measurement);

/** @param {any} measurement @returns {number | null} Hundredths of a degree Celsius. */
export function toCentiCelsius(measurement) {
  const value = numberOf(measurement);
  if (typeof value !== "number") return null;
  const unit = measurement?.unit ?? "°C";
  const celsius = unit === "°F" ? ((value - 32) * 5) / 9 : unit === "K" ? value - 273.15 : value;
  return Math.round(celsius * 100);
}

/** @param {any} color @returns {number | null} */
function toMireds(color) {
  const value = numberOf(color);
  if (typeof value !== "number" || value <= 0) return null;
  return color?.unit === "mireds" ? value : Math.round(1e6 / value);
}

/** @param {Device} device @param {string} capability */
export const offers = (device, capability) => device.commands?.find((each) => each.capability === capability);
/** @param {Device} device @param {string} attribute */
const shows = (device, attribute) => device.attributes[attribute] !== undefined;

/** A scene as a device with a switch. @param {{ id: string, name: string }} scene @returns {Device} */
export const sceneAsDevice = ({ id, name }) => ({
  id: `${SCENE}:${id}`,
  name,
  room_id: null,
  kind: "Scene",
  attributes: { state: "online", power: "off" },
  commands: [{ capability: SCENE, actions: ["run"], schema: {} }],
});

/** @param {Device} device @returns {string | null} The scene that the device's switch runs. */
export const sceneOf = (device) => (offers(device, SCENE) ? device.id.slice(SCENE.length + 1) : null);

/** @param {Device} device */
const classOf = (device) => device.info?.class ?? "";
/** @param {Device} device */
const isLight = (device) => device.kind === "Light" && offers(device, "power") !== undefined;

/** @type {Record<string, (request: any, device: Device) => Command[]>} */
const POWER_COMMANDS = {
  on: () => [{ capability: "power", action: "on" }],
  off: () => [{ capability: "power", action: "off" }],
  toggle: () => [{ capability: "power", action: "toggle" }],
};

/** @param {any} request */
const fade = (request) => (request.transitionTime > 0 ? { transition_secs: request.transitionTime / 10 } : {});

/** @type {Record<string, (request: any, device: Device) => Command[]>} */
const LEVEL_COMMANDS = {
  moveToLevel: (request) => [{ capability: "brightness", action: "set", value: fromLevel(request.level), ...fade(request) }],
  moveToLevelWithOnOff: (request) =>
    request.level <= 1
      ? [{ capability: "power", action: "off", ...fade(request) }]
      : [
          { capability: "brightness", action: "set", value: fromLevel(request.level), ...fade(request) },
          { capability: "power", action: "on" },
        ],
};

/** @type {Record<string, (request: any, device: Device) => Command[]>} */
const TEMPERATURE_COMMANDS = {
  moveToColorTemperature: (request, device) => {
    const schema = offers(device, "color_temperature")?.schema ?? {};
    const kelvin = clamp(Math.round(1e6 / request.colorTemperatureMireds), schema.min ?? 2200, schema.max ?? 7000);
    return [{ capability: "color_temperature", action: "set", value: { value: kelvin, unit: "kelvin" }, ...fade(request) }];
  },
};

/** @type {Record<string, (request: any, device: Device) => Command[]>} */
const COLOR_COMMANDS = {
  moveToHueAndSaturation: (request, device) => color(device, request.hue, request.saturation, request),
  moveToHue: (request, device) => color(device, request.hue, undefined, request),
  moveToSaturation: (request, device) => color(device, undefined, request.saturation, request),
  moveToColor: (request, device) => {
    const x = request.colorX / COLOR_MAX;
    const y = request.colorY / COLOR_MAX;
    if (offers(device, "color_xy")) {
      return [{ capability: "color_xy", action: "set", value: { x: round(x, 4), y: round(y, 4) }, ...fade(request) }];
    }
    const rgb = xyToRgb(x, y);
    if (offers(device, "color_rgb")) return [{ capability: "color_rgb", action: "set", value: rgb, ...fade(request) }];
    return [{ capability: "color_hs", action: "set", value: rgbToHs(rgb), ...fade(request) }];
  },
};

/** @param {number} value @param {number} digits */
const round = (value, digits) => Number(value.toFixed(digits));

/**
 * @param {Device} device @param {number | undefined} hue @param {number | undefined} saturation @param {any} request
 * @returns {Command[]}
 */
function color(device, hue, saturation, request) {
  const now = hueAndSaturation(device.attributes) ?? { hue: 0, saturation: 100 };
  const wanted = {
    hue: hue === undefined ? now.hue : Math.round((hue * 360) / HUE_MAX) % 360,
    saturation: saturation === undefined ? now.saturation : Math.round((saturation * 100) / HUE_MAX),
  };
  if (offers(device, "color_hs")) return [{ capability: "color_hs", action: "set", value: wanted, ...fade(request) }];
  if (offers(device, "color_rgb")) {
    return [{ capability: "color_rgb", action: "set", value: hsToRgb(wanted), ...fade(request) }];
  }
  return [{ capability: "color_xy", action: "set", value: rgbToXy(hsToRgb(wanted)), ...fade(request) }];
}

/** @param {Record<string, any>} attributes */
function hueAndSaturation(attributes) {
  if (attributes.color_hs) return attributes.color_hs;
  if (attributes.color_rgb) return rgbToHs(attributes.color_rgb);
  if (attributes.color_xy) return rgbToHs(xyToRgb(attributes.color_xy.x, attributes.color_xy.y));
  return null;
}

/** @param {{ hue: number, saturation: number }} color */
export function hsToRgb({ hue, saturation }) {
  const part = (/** @type {number} */ n) => {
    const k = (n + hue / 60) % 6;
    return Math.round(255 * (1 - (saturation / 100) * Math.max(0, Math.min(k, 4 - k, 1))));
  };
  return { r: part(5), g: part(3), b: part(1) };
}

/** @param {{ r: number, g: number, b: number }} color */
export function rgbToHs({ r, g, b }) {
  const high = Math.max(r, g, b);
  const range = high - Math.min(r, g, b);
  if (range === 0) return { hue: 0, saturation: 0 };
  const sector = high === r ? ((g - b) / range + 6) % 6 : high === g ? (b - r) / range + 2 : (r - g) / range + 4;
  return { hue: Math.round(sector * 60) % 360, saturation: Math.round((range / high) * 100) };
}

/** sRGB with the primaries of IEC 61966-2-1. @param {number} x @param {number} y */
export function xyToRgb(x, y) {
  const height = 1 / Math.max(y, 1e-6);
  const [X, Y, Z] = [x * height, 1, (1 - x - y) * height];
  const linear = [
    3.2406 * X - 1.5372 * Y - 0.4986 * Z,
    -0.9689 * X + 1.8758 * Y + 0.0415 * Z,
    0.0557 * X - 0.204 * Y + 1.057 * Z,
  ];
  const high = Math.max(...linear, 1e-6);
  const [r, g, b] = linear.map((each) => {
    const part = Math.max(0, each / high);
    return Math.round(255 * (part <= 0.0031308 ? 12.92 * part : 1.055 * part ** (1 / 2.4) - 0.055));
  });
  return { r, g, b };
}

/** @param {{ r: number, g: number, b: number }} color */
export function rgbToXy({ r, g, b }) {
  const [R, G, B] = [r, g, b].map((each) => {
    const part = each / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const X = 0.4124 * R + 0.3576 * G + 0.1805 * B;
  const Y = 0.2126 * R + 0.7152 * G + 0.0722 * B;
  const Z = 0.0193 * R + 0.1192 * G + 0.9505 * B;
  const sum = X + Y + Z;
  return sum === 0 ? { x: 0.3127, y: 0.329 } : { x: round(X / sum, 4), y: round(Y / sum, 4) };
}

/** @param {Record<string, any>} attributes @returns {Update[]} */
const powerUpdates = (attributes) => (attributes.power === undefined ? [] : [["onOff", "onOff", attributes.power === "on"]]);
/** @param {Record<string, any>} attributes @returns {Update[]} */
const levelUpdates = (attributes) =>
  attributes.brightness === undefined ? [] : [["levelControl", "currentLevel", toLevel(attributes.brightness)]];

/** @param {Record<string, any>} attributes @returns {Update[]} */
function colorUpdates(attributes) {
  const mireds = toMireds(attributes.color_temperature);
  const hs = hueAndSaturation(attributes);
  const isWhite = attributes.color_mode ? attributes.color_mode === "color_temp" : mireds !== null && hs === null;
  /** @type {Update[]} */
  const updates = [];
  if (mireds !== null) updates.push(["colorControl", "colorTemperatureMireds", mireds]);
  if (isWhite) return [...updates, ["colorControl", "colorMode", 2], ["colorControl", "enhancedColorMode", 2]];
  if (hs !== null) {
    updates.push(["colorControl", "currentHue", Math.round((hs.hue * HUE_MAX) / 360)]);
    updates.push(["colorControl", "currentSaturation", Math.round((hs.saturation * HUE_MAX) / 100)]);
    updates.push(["colorControl", "colorMode", 0], ["colorControl", "enhancedColorMode", 0]);
  }
  return updates;
}

/** In Matter, 0 is open and 10,000 is closed. In Lares, 0 is closed and 100 is open. @param {number} percent */
export const toLift = (percent) => Math.round((100 - percent) * 100);
/** @param {number} lift */
export const fromLift = (lift) => clamp(Math.round(100 - lift / 100), 0, 100);

const MODES = /** @type {const} */ ({ off: 0, auto: 1, heat_cool: 1, cool: 3, heat: 4, fan_only: 7, dry: 8 });
const LOCKS = /** @type {const} */ ({ locked: 1, unlocked: 2, jammed: 0 });
const AIR = /** @type {const} */ ({ unknown: 0, excellent: 1, good: 1, moderate: 3, poor: 4, unhealthy: 5, hazardous: 6 });
const DOORS = /** @type {const} */ ({ open: 100, opening: 50, stopped: 50, closing: 50, jammed: 50, closed: 0 });

/** @param {Device} device */
const doorOf = (device) => ["garage_door", "door"].find((each) => offers(device, each) !== undefined);
/** @param {Device} device @param {string} action @returns {Command[]} */
const coverCommand = (device, action) => [{ capability: doorOf(device) ?? "cover_position", action }];

/** @param {string} attribute @param {string} type @param {(value: any) => Update | null} update @returns {Part} */
const sensor = (attribute, type, update) => ({
  type,
  applies: (device) => shows(device, attribute),
  updates: (attributes) => {
    const made = attributes[attribute] === undefined ? null : update(attributes[attribute]);
    return made === null ? [] : [made];
  },
});

/** @param {any} value @param {number} factor @returns {number | null} */
const scaled = (value, factor) => (typeof numberOf(value) === "number" ? Math.round(numberOf(value) * factor) : null);

/** @returns {Command[]} */
const runScene = () => [{ capability: SCENE, action: "run" }];

/** The controls. A device gets the first control that applies. @type {Part[]} */
export const CONTROLS = [
  {
    type: "onOffOutlet",
    applies: (device) => sceneOf(device) !== null,
    updates: powerUpdates,
    commands: { on: runScene, toggle: runScene },
  },
  {
    type: "extendedColorLight",
    applies: (device) => isLight(device) && ["color_hs", "color_rgb", "color_xy"].some((each) => offers(device, each)),
    updates: (attributes) => [...powerUpdates(attributes), ...levelUpdates(attributes), ...colorUpdates(attributes)],
    commands: { ...POWER_COMMANDS, ...LEVEL_COMMANDS, ...TEMPERATURE_COMMANDS, ...COLOR_COMMANDS },
  },
  {
    type: "colorTemperatureLight",
    applies: (device) => isLight(device) && offers(device, "color_temperature") !== undefined,
    updates: (attributes) => [...powerUpdates(attributes), ...levelUpdates(attributes), ...colorUpdates(attributes)],
    commands: { ...POWER_COMMANDS, ...LEVEL_COMMANDS, ...TEMPERATURE_COMMANDS },
  },
  {
    type: "dimmableLight",
    applies: (device) => isLight(device) && offers(device, "brightness") !== undefined,
    updates: (attributes) => [...powerUpdates(attributes), ...levelUpdates(attributes)],
    commands: { ...POWER_COMMANDS, ...LEVEL_COMMANDS },
  },
  { type: "onOffLight", applies: isLight, updates: powerUpdates, commands: POWER_COMMANDS },
  {
    type: "doorLock",
    applies: (device) => offers(device, "lock") !== undefined,
    updates: ({ lock }) => (lock in LOCKS ? [["doorLock", "lockState", LOCKS[/** @type {keyof LOCKS} */ (lock)]]] : []),
    commands: {
      lockDoor: () => [{ capability: "lock", action: "lock" }],
      unlockDoor: () => [{ capability: "lock", action: "unlock" }],
    },
  },
  {
    type: "windowCovering",
    applies: (device) => offers(device, "cover_position") !== undefined || doorOf(device) !== undefined,
    updates: (attributes, device) => {
      const door = doorOf(device);
      const position = attributes.cover_position ?? (door ? DOORS[/** @type {keyof DOORS} */ (attributes[door])] : undefined);
      /** @type {Update[]} */
      const updates = [];
      if (position !== undefined) {
        updates.push(["windowCovering", "currentPositionLiftPercent100ths", toLift(position)]);
        updates.push(["windowCovering", "targetPositionLiftPercent100ths", toLift(position)]);
      }
      if (attributes.cover_tilt !== undefined) {
        updates.push(["windowCovering", "currentPositionTiltPercent100ths", toLift(attributes.cover_tilt)]);
        updates.push(["windowCovering", "targetPositionTiltPercent100ths", toLift(attributes.cover_tilt)]);
      }
      return updates;
    },
    commands: {
      upOrOpen: (_, device) => coverCommand(device, "open"),
      downOrClose: (_, device) => coverCommand(device, "close"),
      stopMotion: (_, device) => coverCommand(device, "stop"),
      goToLiftPercentage: (request, device) => {
        const value = fromLift(request.liftPercent100thsValue);
        if (offers(device, "cover_position")?.actions.includes("set")) {
          return [{ capability: "cover_position", action: "set", value }];
        }
        return coverCommand(device, value >= 50 ? "open" : "close");
      },
      goToTiltPercentage: (request) => [
        { capability: "cover_tilt", action: "set", value: fromLift(request.tiltPercent100thsValue) },
      ],
    },
  },
  {
    type: "thermostat",
    applies: (device) => offers(device, "target_temperature") !== undefined,
    updates: ({ temperature, target_temperature, hvac_mode }) => {
      /** @type {Update[]} */
      const updates = [];
      const [now, goal] = [toCentiCelsius(temperature), toCentiCelsius(target_temperature)];
      if (now !== null) updates.push(["thermostat", "localTemperature", now]);
      if (goal !== null) updates.push(["thermostat", "occupiedHeatingSetpoint", goal]);
      if (goal !== null) updates.push(["thermostat", "occupiedCoolingSetpoint", goal]);
      const mode = MODES[/** @type {keyof MODES} */ (hvac_mode)];
      if (mode !== undefined) updates.push(["thermostat", "systemMode", mode]);
      return updates;
    },
    writes: {
      "thermostat.occupiedHeatingSetpoint": (value, device) => target(device, value),
      "thermostat.occupiedCoolingSetpoint": (value, device) => target(device, value),
      "thermostat.systemMode": (value, device) => {
        const options = offers(device, "hvac_mode")?.schema.values ?? Object.keys(MODES);
        const mode = options.find((/** @type {keyof MODES} */ each) => MODES[each] === value);
        return mode === undefined ? [] : [{ capability: "hvac_mode", action: "set", value: mode }];
      },
    },
  },
  {
    type: "fan",
    applies: (device) => classOf(device) === "fan" && offers(device, "power") !== undefined,
    updates: (attributes) => {
      const speed = attributes["custom.mqtt.percentage"] ?? 100;
      const percent = attributes.power === "off" ? 0 : speed;
      return attributes.power === undefined
        ? []
        : [
            ["fanControl", "percentCurrent", percent],
            ["fanControl", "percentSetting", percent],
            ["fanControl", "fanMode", percent === 0 ? 0 : percent < 34 ? 1 : percent < 67 ? 2 : 3],
          ];
    },
    writes: {
      "fanControl.percentSetting": (value, device) => fanCommands(device, value ?? 0),
      "fanControl.fanMode": (value, device) => fanCommands(device, [0, 33, 66, 100, 100, 100, 100][value] ?? 100),
    },
  },
  {
    type: "onOffOutlet",
    applies: (device) => offers(device, "power") !== undefined,
    updates: powerUpdates,
    commands: POWER_COMMANDS,
  },
  {
    type: "genericSwitch",
    applies: (device) => classOf(device) === "button" || classOf(device) === "remote",
    updates: () => [],
  },
];

/** @param {Device} device @param {number} centiCelsius @returns {Command[]} */
function target(device, centiCelsius) {
  const schema = offers(device, "target_temperature")?.schema ?? {};
  const unit = schema.unit ?? device.attributes.target_temperature?.unit ?? "°C";
  const exact = unit === "°F" ? (centiCelsius / 100) * 1.8 + 32 : centiCelsius / 100;
  const step = schema.step ?? 0.5;
  const value = clamp(round(Math.round(exact / step) * step, 2), schema.min ?? -100, schema.max ?? 200);
  return [{ capability: "target_temperature", action: "set", value: { value, unit } }];
}

/** @param {Device} device @param {number} percent @returns {Command[]} */
function fanCommands(device, percent) {
  if (percent === 0) return [{ capability: "power", action: "off" }];
  /** @type {Command[]} */
  const speed = offers(device, "custom.mqtt.percentage")
    ? [{ capability: "custom.mqtt.percentage", action: "set", value: percent }]
    : [];
  return [{ capability: "power", action: "on" }, ...speed];
}

/** The sensors. A device gets every sensor that applies. @type {Part[]} */
export const SENSORS = [
  sensor("temperature", "temperatureSensor", (value) => update("temperatureMeasurement", "measuredValue", toCentiCelsius(value))),
  sensor("humidity", "humiditySensor", (value) => update("relativeHumidityMeasurement", "measuredValue", scaled(value, 100))),
  sensor("pressure", "pressureSensor", (value) => update("pressureMeasurement", "measuredValue", toHectopascal(value))),
  sensor("illuminance", "lightSensor", (value) =>
    update("illuminanceMeasurement", "measuredValue", value > 0 ? clamp(Math.round(10000 * Math.log10(value) + 1), 1, 0xfffe) : 0),
  ),
  sensor("contact", "contactSensor", (value) => ["booleanState", "stateValue", value === "closed"]),
  {
    type: "occupancySensor",
    applies: (device) => shows(device, "occupancy") || shows(device, "motion"),
    updates: ({ occupancy, motion }) =>
      occupancy === undefined && motion === undefined
        ? []
        : [["occupancySensing", "occupancy", { occupied: occupancy === "occupied" || motion === "detected" }]],
  },
  sensor("smoke", "smokeCoAlarm", (value) => ["smokeCoAlarm", "smokeState", value ? 2 : 0]),
  sensor("water_leak", "waterLeakDetector", (value) => ["booleanState", "stateValue", value === true]),
  sensor("air_quality", "airQualitySensor", (value) => ["airQuality", "airQuality", AIR[/** @type {keyof AIR} */ (value)] ?? 0]),
];

/** @param {string} cluster @param {string} attribute @param {number | null} value @returns {Update | null} */
const update = (cluster, attribute, value) => (value === null ? null : [cluster, attribute, value]);

/** @param {any} measurement @returns {number | null} */
function toHectopascal(measurement) {
  const factors = { hPa: 1, mbar: 1, kPa: 10, mmHg: 1.33322, inHg: 33.8639, psi: 68.9476, bar: 1000, Pa: 0.01 };
  const factor = factors[/** @type {keyof factors} */ (measurement?.unit)] ?? 1;
  return scaled(measurement, factor);
}

/** @param {Device} device @returns {Part[]} The control, then the sensors. Empty if Matter has no equivalent. */
export function partsOf(device) {
  const control = CONTROLS.find((each) => each.applies(device));
  const sensors = SENSORS.filter((each) => each.applies(device));
  // No separate sensor is needed, because a thermostat already reports a temperature.
  const rest = control?.type === "thermostat" ? sensors.filter((each) => each.type !== "temperatureSensor") : sensors;
  return control ? [control, ...rest] : rest;
}

/** If the result changes, the device must be announced again. @param {Device} device */
export function shapeOf(device) {
  const tilt = offers(device, "cover_tilt") ? "+tilt" : "";
  return partsOf(device).map((each) => each.type).join("+") + tilt + (device.attributes.battery === undefined ? "" : "+battery");
}

/** @param {Device} device */
export const isReachable = (device) => !["offline", "unavailable"].includes(device.attributes.state);

/** @type {Record<string, "Single" | "Double" | "Long">} */
export const PRESSES = { single: "Single", double: "Double", long: "Long", hold: "Long" };

const MAX_NAME = 32;

/**
 * @param {Device} device @param {Map<string, string>} rooms Names by id. @param {boolean} withRoom
 * @returns {string} At most 32 characters, which is Matter's limit.
 */
export function nameOf(device, rooms, withRoom) {
  const room = device.room_id === null ? undefined : rooms.get(device.room_id);
  const isNamed = !withRoom || !room || device.name.toLowerCase().includes(room.toLowerCase());
  return [...(isNamed ? device.name : `${room} ${device.name}`)].slice(0, MAX_NAME).join("").trim();
}
