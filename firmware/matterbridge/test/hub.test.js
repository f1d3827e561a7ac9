import assert from "node:assert/strict";
import http from "node:http";
import { once } from "node:events";
import test from "node:test";
import { WebSocketServer } from "ws";
import { Hub, HubError } from "../src/hub.js";

const LAMP = { id: "x:lamp", name: "Lamp", room_id: null, kind: "Light", attributes: { power: "off" }, commands: [] };

/** A hub that answers as Lares does. */
async function fakeHub() {
  const server = http.createServer((request, response) => {
    const isKnown = request.headers.authorization === "Bearer good";
    const replies = /** @type {Record<string, unknown>} */ ({
      "/devices?include=commands": [LAMP],
      "/rooms": [],
      "/scenes": [{ id: "film", name: "Film" }],
      "/groups": [{ id: "voice", name: "Voice", members: ["x:lamp"] }],
    });
    const [status, body] = !isKnown
      ? [401, { error: "authentication required", code: "authentication_required" }]
      : request.url === "/devices/x%3Alamp/command"
        ? [400, { error: "no answer", code: "device_unreachable" }]
        : [200, replies[request.url ?? ""] ?? {}];
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  const sockets = new WebSocketServer({ server, path: "/events" });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}`, sockets, close: () => (sockets.clients.forEach((each) => each.terminate()), server.closeAllConnections(), server.close()) };
}

/** @param {string} url @param {string[]} log */
function follow(url, log) {
  /** @type {(() => void)[]} */
  let waiting = [];
  const note = async (/** @type {string} */ text) => {
    log.push(text);
    waiting.forEach((each) => each());
    waiting = [];
  };
  const hub = new Hub({ url, key: "good" }, {
    onSnapshot: (snapshot) => note(`snapshot ${snapshot.devices.length} ${snapshot.voice}`),
    onFrame: (frame) => note(frame.type),
    onLost: () => note("lost"),
  });
  /** @param {number} count */
  const reached = async (count) => {
    while (log.length < count) await new Promise((/** @type {(value?: unknown) => void} */ done) => waiting.push(done));
  };
  return { hub, reached };
}

test("the stream begins with a snapshot, and does so again after each loss", async () => {
  const fake = await fakeHub();
  /** @type {string[]} */
  const log = [];
  const { hub, reached } = follow(fake.url, log);
  hub.start();
  await reached(1);
  fake.sockets.clients.forEach((each) => each.send(JSON.stringify({ type: "device.removed", id: "x:lamp" })));
  await reached(2);
  fake.sockets.clients.forEach((each) => each.terminate());
  await reached(4);
  assert.deepEqual(log, ["snapshot 1 x:lamp", "device.removed", "lost", "snapshot 1 x:lamp"]);
  fake.sockets.clients.forEach((each) => each.send(JSON.stringify({ type: "system.error", message: "lagged", dropped: 5 })));
  await reached(6);
  assert.deepEqual(log.slice(4), ["lost", "snapshot 1 x:lamp"]);
  hub.stop();
  fake.close();
});

test("an error answer keeps its code and sentence", async () => {
  const fake = await fakeHub();
  const listener = { onSnapshot: async () => {}, onFrame: async () => {}, onLost: async () => {} };
  const good = new Hub({ url: fake.url, key: "good" }, listener);
  await assert.rejects(good.command("x:lamp", { capability: "power", action: "on" }), (error) => error instanceof HubError && error.code === "device_unreachable" && error.message === "no answer");
  const bad = new Hub({ url: `${fake.url}/`, key: "bad" }, listener);
  await assert.rejects(bad.snapshot(), (error) => error instanceof HubError && error.status === 401);
  fake.close();
});
