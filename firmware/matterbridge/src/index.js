import { LaresPlatform } from "./platform.js";

/**
 * Matterbridge's entry point.
 * @param {import("matterbridge").PlatformMatterbridge} matterbridge
 * @param {import("matterbridge/logger").AnsiLogger} log
 * @param {import("matterbridge").PlatformConfig} config
 */
export default function initializePlugin(matterbridge, log, config) {
  return new LaresPlatform(matterbridge, log, config);
}
