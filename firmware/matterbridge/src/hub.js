// The client of a Lares hub: REST, and the event stream with a snapshot and reconnects.

import WebSocket from "ws";

export const MIN_PAUSE_MS = 1000;
export const MAX_PAUSE_MS = 60000;
/** Longer than the hub's time limit for a command (5 s). */
export const REQUEST_TIMEOUT_MS = 10000;
/** A scene may have pauses. */
export const SCENE_TIMEOUT_MS = 3600000;
/** The hub pings every 20 s. */
export const SILENCE_MS = 60000;

/**
 * @typedef {{ capability: string, actions: string[], schema: Record<string, any> }} CommandSpec
 * @typedef {{ id: string, name: string, alias?: string, room_id: string | null, kind: string,
 *   attributes: Record<string, any>, info?: Record<string, string>, commands?: CommandSpec[] }} Device
 * @typedef {{ capability: string, action: string, value?: unknown, transition_secs?: number }} Command
 * @typedef {{ devices: Device[], rooms: { id: string, name: string }[], scenes: { id: string, name: string }[],
 *   voice: string[] | null }} Snapshot
 */

/** An error response of the hub. `code` is stable (`device_unreachable`, `device_refused` …). */
export class HubError extends Error {
  /** @param {number} status @param {string} code @param {string} message */
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export class Hub {
  /**
   * @param {{ url: string, key: string }} options
   * @param {{ onSnapshot: (snapshot: Snapshot) => Promise<void>, onFrame: (frame: any) => Promise<void>,
   *   onLost: (reason: string) => Promise<void> }} listener The listener's functions are never called concurrently.
   */
  constructor({ url, key }, listener) {
    this.url = url.replace(/\/+$/, "");
    this.key = key;
    this.listener = listener;
    this.pauseMs = MIN_PAUSE_MS;
    this.isStopped = false;
    /** @type {WebSocket | null} */
    this.socket = null;
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    this.queue = Promise.resolve();
  }

  /**
   * @param {string} method @param {string} path @param {unknown} [body] @param {number} [timeoutMs]
   * @returns {Promise<any>} The JSON of the response. Rejects with `HubError` if the hub refuses the request, or with
   *   another error if there is no response.
   */
  async request(method, path, body, timeoutMs = REQUEST_TIMEOUT_MS) {
    const response = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${this.key}` },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    let reply = null;
    try {
      reply = text === "" ? null : JSON.parse(text);
    } catch {
      throw new HubError(response.status, "invalid_answer", `${this.url} does not answer as a Lares hub`);
    }
    if (!response.ok) throw new HubError(response.status, reply?.code ?? "internal", reply?.error ?? response.statusText);
    return reply;
  }

  /** Resolves when the device reports the result. @param {string} id @param {Command} command */
  command(id, command) {
    return this.request("POST", `/devices/${encodeURIComponent(id)}/command`, command);
  }

  /** @param {string} id */
  device(id) {
    return this.request("GET", `/devices/${encodeURIComponent(id)}?include=commands`);
  }

  /** Resolves when the scene has ended. @param {string} id */
  runScene(id) {
    return this.request("POST", `/scenes/${encodeURIComponent(id)}/execute`, undefined, SCENE_TIMEOUT_MS);
  }

  /** @returns {Promise<Snapshot>} */
  async snapshot() {
    const [devices, rooms, scenes, groups] = await Promise.all([
      this.request("GET", "/devices?include=commands"),
      this.request("GET", "/rooms"),
      this.request("GET", "/scenes"),
      this.request("GET", "/groups"),
    ]);
    const voice = groups.find((/** @type {{ id: string }} */ group) => group.id === "voice");
    return { devices, rooms, scenes, voice: voice ? voice.members : null };
  }

  start() {
    this.isStopped = false;
    this.#connect();
  }

  stop() {
    this.isStopped = true;
    clearTimeout(this.timer);
    this.socket?.terminate();
  }

  /** Connect before fetching the snapshot, so that no change is missed. */
  #connect() {
    const socket = new WebSocket(`${this.url.replace(/^http/, "ws")}/events`, {
      headers: { authorization: `Bearer ${this.key}` },
      handshakeTimeout: REQUEST_TIMEOUT_MS,
    });
    this.socket = socket;
    let reason = "the connection was closed";
    /** @type {NodeJS.Timeout | undefined} */
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => socket.terminate(), SILENCE_MS);
    };
    /** @type {any[] | null} Frames that arrive before the snapshot. */
    let early = [];
    socket.on("open", () => {
      heard();
      this.#next(async () => {
        const snapshot = await this.snapshot();
        await this.listener.onSnapshot(snapshot);
        this.pauseMs = MIN_PAUSE_MS;
        for (const frame of early ?? []) await this.listener.onFrame(frame);
        early = null;
      }, socket);
    });
    socket.on("ping", heard);
    socket.on("message", (data) => {
      heard();
      const frame = JSON.parse(data.toString());
      if (frame.type === "system.error" && frame.dropped) {
        socket.terminate(); // frames are missing: begin again with a snapshot
      } else if (early !== null) {
        early.push(frame);
      } else {
        this.#next(() => this.listener.onFrame(frame), socket);
      }
    });
    socket.on("error", (error) => (reason = error.message));
    socket.on("close", () => {
      clearTimeout(silence);
      if (this.isStopped) return;
      this.#next(() => this.listener.onLost(reason), null);
      this.timer = setTimeout(() => this.#connect(), this.pauseMs);
      this.pauseMs = Math.min(this.pauseMs * 2, MAX_PAUSE_MS);
    });
  }

  /** @param {() => Promise<void>} work @param {WebSocket | null} socket Closed if the work fails. */
  #next(work, socket) {
    this.queue = this.queue.then(work).catch(() => socket?.terminate());
  }
}
