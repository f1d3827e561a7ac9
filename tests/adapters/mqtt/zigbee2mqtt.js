// Prints, for every model in zigbee-herdsman-converters, the announcement of Zigbee2MQTT as one JSON line, without a radio.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { createRequire } = require("node:module");

const root = process.argv[2]; // npm's folder; ZIGBEE2MQTT_DATA is the folder of Zigbee2MQTT's settings
const load = createRequire(path.join(root, "package.json"));
fs.writeFileSync(
    path.join(process.env.ZIGBEE2MQTT_DATA, "configuration.yaml"),
    "version: 5\nhomeassistant: {enabled: true, experimental_event_entities: true}\navailability: {enabled: true}\n" +
        "mqtt: {base_topic: zigbee2mqtt, server: 'mqtt://127.0.0.1'}\nserial: {port: none}\n" +
        "advanced: {log_output: []}\n",
);
const settings = load("zigbee2mqtt/dist/util/settings.js");
settings.reRead();
load("zigbee2mqtt/dist/util/logger.js").default.init();
const { default: HomeAssistant } = load("zigbee2mqtt/dist/extension/homeassistant.js");
const { default: Device } = load("zigbee2mqtt/dist/model/device.js");
const { prepareDefinition } = load("zigbee-herdsman-converters");

const folder = path.join(path.dirname(load.resolve("zigbee-herdsman-converters")), "devices");
const definitions = fs
    .readdirSync(folder)
    .filter((file) => file.endsWith(".js") && file !== "index.js")
    .flatMap((file) => load(path.join(folder, file)).definitions ?? []);

let sent = [];
const bus = new Proxy({}, { get: () => () => {} });
const mqtt = {
    publish: async (topic, payload) => sent.push([`homeassistant/${topic}`, payload]),
    subscribe: async () => {},
    unsubscribe: async () => {},
};
const zigbee = {
    getCoordinatorVersion: async () => ({ type: "none", meta: { revision: "0" } }),
    firstCoordinatorEndpoint: () => ({ deviceIeeeAddress: "0x00" }),
    devicesIterator: () => [],
    groupsIterator: () => [],
    devicesAndGroupsIterator: () => [],
};

class Endpoint {
    ID = 1;
    binds = [];
    clusters = {};
    inputClusters = [];
    outputClusters = [];
    meta = {};
    supportsInputCluster() {
        return true;
    }
    supportsOutputCluster() {
        return true;
    }
    getClusterAttributeValue() {}
}

async function main() {
    const extension = new HomeAssistant(zigbee, mqtt, {}, null, bus);
    await extension.start();
    for (const [number, raw] of definitions.entries()) {
        const ieeeAddr = `0x${(number + 0x1000).toString(16).padStart(16, "0")}`;
        const endpoint = new Endpoint();
        endpoint.deviceIeeeAddress = ieeeAddr;
        const zh = { ieeeAddr, type: "Router", isDummyDevice: true, interviewState: "SUCCESSFUL", endpoints: [endpoint],
            getEndpoint: () => endpoint, meta: {}, customClusters: {}, modelID: raw.model, manufacturerName: "", softwareBuildID: "", hardwareVersion: 0 };
        sent = [];
        let error;
        try {
            const device = new Device(zh);
            const options = { ID: ieeeAddr, friendly_name: `device ${number}` };
            Object.defineProperties(device, { options: { value: options }, name: { value: options.friendly_name } });
            device.definition = prepareDefinition(raw);
            await extension.discover(device);
        } catch (fault) {
            error = `${fault.stack}`.slice(0, 500);
        }
        process.stdout.write(`${JSON.stringify({ model: `${raw.vendor} ${raw.model}`, sent, error })}\n`);
    }
    process.exit(0);
}
main();
