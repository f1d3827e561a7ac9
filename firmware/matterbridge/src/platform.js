// The platform: keeps one Matter endpoint per device and scene of the hub.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import * as types from "matterbridge";
import { MatterbridgeDynamicPlatform, MatterbridgeEndpoint, bridgedNode, powerSource } from "matterbridge";
import { Hub, HubError } from "./hub.js";
import { PRESSES, isReachable, nameOf, offers, partsOf, sceneAsDevice, sceneOf, shapeOf } from "./map.js";

/** @typedef {import("./hub.js").Device} Device */
/** @typedef {import("./map.js").Part} Part */
/**
 * @typedef {{ device: Device, shape: string, name: string, endpoint: MatterbridgeEndpoint,
 *   parts: { part: Part, endpoint: MatterbridgeEndpoint }[] }} Shown
 */

const VENDOR_ID = 0xfff1; // the test vendor of the Matter specification
/** Time without the hub after which its devices are reported as unreachable. */
const PATIENCE_MS = 10000;
const LOW_BATTERY = 20;
/** Time after which a scene's switch goes off again. */
const SCENE_ON_MS = 500;
/** Time limit for the answer to a controller. After this time, a scene with pauses continues to run. */
const SCENE_ANSWER_MS = 4000;

export class LaresPlatform extends MatterbridgeDynamicPlatform {
  /**
   * @param {import("matterbridge").PlatformMatterbridge} matterbridge
   * @param {import("matterbridge/logger").AnsiLogger} log
   * @param {import("matterbridge").PlatformConfig} config
   */
  constructor(matterbridge, log, config) {
    super(matterbridge, log, config);
    this.verifyMatterbridgeVersion("3.9.0");
    /** @type {Map<string, Shown>} */
    this.shown = new Map();
    /** @type {Map<string, string>} */
    this.rooms = new Map();
    /** @type {Set<string> | null} */
    this.voice = null;
    /** @type {import("./hub.js").Snapshot | undefined} */
    this.last = undefined;
    const key = config.keyFile ? readFileSync(String(config.keyFile), "utf8").trim() : String(config.key ?? "");
    if (!key) log.error("no key is set; create one with `lares key create --label matter --role write`, then set `key`");
    this.hub = new Hub(
      { url: String(config.url ?? "http://127.0.0.1:3000"), key },
      {
        onSnapshot: (snapshot) => this.#takeSnapshot(snapshot).then(() => this.#remember()),
        onFrame: (frame) => this.#takeFrame(frame),
        onLost: (reason) => this.#lose(reason),
      },
    );
    /** @type {NodeJS.Timeout | undefined} */
    this.lostTimer = undefined;
    this.isLost = false;
  }

  /** @override @param {string} [reason] */
  async onStart(reason) {
    this.log.info(`following ${this.hub.url} (${reason ?? "start"})`);
    await this.ready;
    await this.clearSelect();
    try {
      await this.#takeSnapshot(await this.hub.snapshot());
    } catch (error) {
      this.log.warn(`the hub does not answer yet: ${this.#sentence(error)}`);
      await this.#showLast();
    }
    this.hub.start();
  }

  /** Store the published devices for a start without the hub. */
  async #remember() {
    const devices = [...this.shown.values()].map((each) => each.device);
    await this.context?.set("snapshot", { ...this.last, devices, scenes: [] });
  }

  /** Publish the devices of the last snapshot as unreachable, so that no ecosystem forgets them while the hub is away. */
  async #showLast() {
    const last = /** @type {import("./hub.js").Snapshot | undefined} */ (await this.context?.get("snapshot"));
    if (!last) return;
    const devices = last.devices.map((each) => ({ ...each, attributes: { ...each.attributes, state: "offline" } }));
    await this.#takeSnapshot({ ...last, devices });
  }

  /** @override */
  async onConfigure() {
    await super.onConfigure();
    for (const each of this.shown.values()) await this.#report(each);
  }

  /** @override @param {string} [reason] */
  async onShutdown(reason) {
    this.hub.stop();
    clearTimeout(this.lostTimer);
    await super.onShutdown(reason);
    if (this.config.unregisterOnShutdown === true) await this.unregisterAllDevices();
  }

  /** @param {import("./hub.js").Snapshot} snapshot */
  async #takeSnapshot(snapshot) {
    clearTimeout(this.lostTimer);
    if (this.isLost) this.log.info("the hub answers again");
    this.isLost = false;
    this.last = snapshot;
    this.rooms = new Map(snapshot.rooms.map((room) => [room.id, room.name]));
    this.voice = snapshot.voice === null ? null : new Set(snapshot.voice);
    const scenes = this.config.scenes === false ? [] : snapshot.scenes.map(sceneAsDevice);
    const devices = [...snapshot.devices, ...scenes];
    const ids = new Set(devices.map((device) => device.id));
    for (const id of [...this.shown.keys()]) if (!ids.has(id)) await this.#remove(id);
    for (const device of devices) await this.#show(device);
  }

  /** @param {any} frame */
  async #takeFrame(frame) {
    switch (frame.type) {
      case "device.state_changed": {
        const known = this.shown.get(frame.id);
        const device = known ? { ...known.device, attributes: frame.state } : null;
        if (device && shapeOf(device) === known?.shape) {
          known.device = device;
          await this.#report(known);
        } else {
          await this.#fetch(frame.id);
        }
        break;
      }
      case "device.updated":
      case "device.room_changed":
        await this.#fetch(frame.id);
        break;
      case "device.removed":
        await this.#remove(frame.id);
        await this.#remember();
        break;
      case "device.event":
        await this.#press(frame);
        break;
      case "room.added":
      case "room.updated":
      case "room.removed":
      case "scene.catalog_reloaded":
        await this.#refresh();
        break;
      case "group.added":
      case "group.removed":
      case "group.members_changed":
        if ((frame.id ?? frame.group?.id) === "voice") await this.#refresh();
        break;
    }
  }

  async #refresh() {
    await this.#takeSnapshot(await this.hub.snapshot());
    await this.#remember();
  }

  /** @param {string} reason */
  async #lose(reason) {
    if (this.isLost) return;
    this.isLost = true;
    this.log.warn(`lost the hub: ${reason}; trying again`);
    this.lostTimer = setTimeout(async () => {
      for (const each of this.shown.values()) await this.#setReachable(each, false);
    }, PATIENCE_MS);
  }

  /** @param {string} id */
  async #fetch(id) {
    try {
      await this.#show(await this.hub.device(id));
    } catch (error) {
      if (!(error instanceof HubError && error.status === 404)) throw error;
      await this.#remove(id);
    }
    await this.#remember();
  }

  /** Publish the current device. Announce the device if it is new, or if its shape or name has changed. Otherwise, report its values. @param {Device} device */
  async #show(device) {
    const [shape, name] = [shapeOf(device), nameOf(device, this.rooms, this.config.roomsInNames !== false)];
    const isWanted = shape !== "" && (this.voice === null || this.voice.has(device.id) || sceneOf(device) !== null);
    const known = this.shown.get(device.id);
    if (known && (!isWanted || known.shape !== shape || known.name !== name)) await this.#remove(device.id);
    if (!isWanted) return;
    const present = this.shown.get(device.id);
    if (present) present.device = device;
    else await this.#announce(device, shape, name);
    const shown = this.shown.get(device.id);
    if (shown) await this.#report(shown);
  }

  /** @param {Device} device @param {string} shape @param {string} name */
  async #announce(device, shape, name) {
    if (!this.validateDevice([device.id, device.name, name])) return;
    const unique = this.#free(name);
    const serial = serialOf(device);
    const [first, ...more] = partsOf(device);
    const hasBattery = device.attributes.battery !== undefined;
    const endpoint = new MatterbridgeEndpoint(
      [typeOf(first), bridgedNode, ...(hasBattery ? [powerSource] : [])],
      { id: serial },
      this.config.debug === true,
    );
    const { manufacturer, model, firmware } = device.info ?? {};
    endpoint.createDefaultBridgedDeviceBasicInformationClusterServer(
      unique, serial, VENDOR_ID, (manufacturer ?? "Lares").slice(0, 32), (model ?? device.kind).slice(0, 32), 1, (firmware ?? "1").slice(0, 64),
    );
    if (hasBattery) endpoint.createDefaultPowerSourceReplaceableBatteryClusterServer();
    prepare(endpoint, first, device);
    endpoint.addRequiredClusterServers();
    /** @type {Shown} */
    const shown = { device, shape, name, endpoint, parts: [{ part: first, endpoint }] };
    for (const part of more) {
      const child = endpoint.addChildDeviceType(part.type, typeOf(part), { id: part.type });
      prepare(child, part, device);
      child.addRequiredClusterServers();
      shown.parts.push({ part, endpoint: child });
    }
    for (const each of shown.parts) this.#listen(shown, each);
    this.setSelectDevice(serial, unique);
    await this.registerDevice(endpoint);
    for (const each of shown.parts) this.#listenToWrites(shown, each);
    this.shown.set(device.id, shown);
  }

  /** Return a unique name, because Matterbridge refuses duplicates. @param {string} name */
  #free(name) {
    for (let number = 1; ; number += 1) {
      const tail = number === 1 ? "" : ` ${number}`;
      const candidate = name.slice(0, 32 - tail.length) + tail;
      if (!this.hasDeviceName(candidate)) return candidate;
    }
  }

  /** @param {Shown} shown @param {{ part: Part, endpoint: MatterbridgeEndpoint }} place */
  #listen(shown, { part, endpoint }) {
    for (const [name, make] of Object.entries(part.commands ?? {})) {
      endpoint.addCommandHandler(/** @type {any} */ (name), async (/** @type {any} */ data) => {
        await this.#send(shown, make(data.request, shown.device));
      });
    }
  }

  /** Handle attributes that a controller writes. The hub's reports also change these attributes, but have no controller. @param {Shown} shown @param {{ part: Part, endpoint: MatterbridgeEndpoint }} place */
  #listenToWrites(shown, { part, endpoint }) {
    for (const [path, make] of Object.entries(part.writes ?? {})) {
      const [cluster, attribute] = path.split(".");
      if (!endpoint.hasAttributeServer(cluster, attribute)) continue;
      endpoint.subscribeAttribute(cluster, attribute, async (value, _before, context) => {
        if (/** @type {any} */ (context).offline === true || !("fabric" in context)) return;
        try {
          await this.#send(shown, make(value, shown.device));
        } catch {
          await this.#report(shown); // report the device's values again
        }
      });
    }
  }

  /** Send commands in order. Rejects if the hub or the device rejects a command. @param {Shown} shown @param {import("./hub.js").Command[]} commands */
  async #send(shown, commands) {
    const scene = sceneOf(shown.device);
    if (scene !== null) return this.#run(shown, scene);
    const offered = commands.filter((each) => offers(shown.device, each.capability));
    try {
      for (const each of offered) await this.hub.command(shown.device.id, each);
    } catch (error) {
      this.log.warn(`${shown.device.name}: ${this.#sentence(error)}`);
      throw error;
    }
  }

  /** @param {Shown} shown */
  async #report(shown) {
    const { device, endpoint } = shown;
    await this.#setReachable(shown, isReachable(device));
    for (const { part, endpoint: place } of shown.parts) {
      for (const [cluster, attribute, value] of part.updates(device.attributes, device)) {
        if (place.hasAttributeServer(cluster, attribute)) await place.updateAttribute(cluster, attribute, value, this.log);
      }
    }
    const battery = device.attributes.battery;
    if (battery !== undefined && endpoint.hasClusterServer("powerSource")) {
      await endpoint.updateAttribute("powerSource", "batPercentRemaining", battery * 2, this.log);
      await endpoint.updateAttribute("powerSource", "batChargeLevel", battery < LOW_BATTERY ? 1 : 0, this.log);
    }
  }

  /** @param {Shown} shown @param {boolean} value */
  async #setReachable({ endpoint }, value) {
    const cluster = "bridgedDeviceBasicInformation";
    if (endpoint.getAttribute(cluster, "reachable") === value) return;
    await endpoint.setAttribute(cluster, "reachable", value, this.log);
    await endpoint.triggerEvent(cluster, "reachableChanged", { reachableNewValue: value }, this.log);
  }

  /** @param {{ id: string, event: string }} frame */
  async #press(frame) {
    const known = this.shown.get(frame.id);
    const press = PRESSES[frame.event];
    const place = known?.parts.find(({ part }) => part.type === "genericSwitch");
    if (place && press) await place.endpoint.triggerSwitchEvent(press, this.log);
  }

  /** @param {string} id */
  async #remove(id) {
    const known = this.shown.get(id);
    if (!known) return;
    this.shown.delete(id);
    await this.unregisterDevice(known.endpoint);
  }

  /** Run a scene. Rejects if the scene fails within the time limit for the answer. @param {Shown} shown @param {string} scene */
  async #run(shown, scene) {
    const run = this.hub.runScene(scene).catch((error) => {
      this.log.warn(`scene ${shown.device.name}: ${this.#sentence(error)}`);
      throw error;
    });
    const due = new Promise((resolve) => setTimeout(resolve, SCENE_ANSWER_MS));
    run.catch(() => {});
    await Promise.race([run, due]);
    setTimeout(() => this.#report(shown), SCENE_ON_MS);
  }

  /** @param {unknown} error */
  #sentence(error) {
    if (error instanceof HubError && error.status === 401) return "the hub does not know this key; create one of role write";
    return error instanceof Error ? error.message : String(error);
  }
}

/** @param {Part} part */
function typeOf(part) {
  return /** @type {Record<string, any>} */ (types)[part.type];
}

/** Return a permanent serial number that is unique on the bridge. @param {Device} device */
export function serialOf(device) {
  return `lares-${createHash("sha256").update(device.id).digest("hex").slice(0, 20)}`;
}

/** Create the clusters whose features depend on the device. @param {MatterbridgeEndpoint} endpoint @param {Part} part @param {Device} device */
function prepare(endpoint, part, device) {
  if (part.type === "windowCovering") {
    if (offers(device, "cover_tilt")) endpoint.createDefaultLiftTiltWindowCoveringClusterServer();
    else endpoint.createDefaultWindowCoveringClusterServer();
  } else if (part.type === "thermostat") {
    const { min = 5, max = 30 } = offers(device, "target_temperature")?.schema ?? {};
    const modes = offers(device, "hvac_mode")?.schema.values ?? ["off", "heat"];
    if (modes.includes("cool")) endpoint.createDefaultThermostatClusterServer(20, 20, 20, 0, 0, 50, 0, 50);
    else endpoint.createDefaultHeatingThermostatClusterServer(20, 20, Math.max(min, 0), Math.min(max, 50));
  } else if (part.type === "genericSwitch") {
    endpoint.createDefaultSwitchClusterServer();
  } else if (part.type === "contactSensor") {
    endpoint.createDefaultBooleanStateClusterServer(device.attributes.contact === "closed");
  } else if (part.type === "waterLeakDetector") {
    endpoint.createDefaultBooleanStateClusterServer(device.attributes.water_leak === true);
  }
}
